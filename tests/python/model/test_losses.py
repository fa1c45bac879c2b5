"""Each loss beside its definition, written out in plain Python."""

from __future__ import annotations

import math

import pytest
import torch
from torch import Tensor

from tlp_tvm.model.losses import FUNCTIONS, GAIN_SCALE, Loss, lambdarank, mse, pairwise

NAN = float("nan")
RANKING = [Loss.LAMBDARANK, Loss.PAIRWISE]


def random_lists(seed: int = 0) -> tuple[Tensor, Tensor, Tensor]:
    """30 programs of 4 tasks of unlike size in mixed order, 3 heads, a third of the labels missing."""
    generator = torch.Generator().manual_seed(seed)
    groups = torch.tensor([0] * 12 + [1] * 3 + [2] * 14 + [3])[torch.randperm(30, generator=generator)]
    labels = torch.rand(30, 3, generator=generator)
    labels[torch.rand(30, 3, generator=generator) < 0.3] = NAN
    return torch.randn(30, 3, generator=generator), labels, groups


def plain_loss(kind: Loss, scores: list[float], labels: list[float]) -> float | None:
    """The loss of one list, from the definition; None where no two labels differ."""
    known = [i for i in range(len(labels)) if not math.isnan(labels[i])]
    rank = {i: r for r, i in enumerate(sorted(known, key=lambda i: -scores[i]))}
    total = weights = 0.0
    for i in known:
        for j in known:
            if labels[i] <= labels[j]:
                continue
            weight = labels[i] - labels[j]
            if kind is Loss.LAMBDARANK:
                gain = 2 ** (GAIN_SCALE * labels[i]) - 2 ** (GAIN_SCALE * labels[j])
                weight = gain * abs(1 / math.log2(rank[i] + 2) - 1 / math.log2(rank[j] + 2))
            weights += weight
            total += weight * math.log(1 + math.exp(scores[j] - scores[i]))
    return total / weights if weights else None


@pytest.mark.parametrize("kind", RANKING)
def test_ranking_losses_are_their_definition(kind: Loss) -> None:
    scores, labels, groups = random_lists()
    heads = []
    for p in range(3):
        lists = []
        for group in range(4):
            rows = [i for i in range(30) if groups[i] == group]
            lists.append(plain_loss(kind, scores[rows, p].tolist(), labels[rows, p].tolist()))
        found = [value for value in lists if value is not None]
        heads.append(sum(found) / len(found))
    assert FUNCTIONS[kind](scores, labels, groups).item() == pytest.approx(sum(heads) / 3, rel=1e-5)


def test_mse_is_its_definition() -> None:
    scores, labels, groups = random_lists()
    heads = []
    for p in range(3):
        known = [i for i in range(30) if not math.isnan(labels[i, p])]
        heads.append(sum((scores[i, p].item() - labels[i, p].item()) ** 2 for i in known) / len(known))
    assert mse(scores, labels, groups).item() == pytest.approx(sum(heads) / 3, rel=1e-5)


@pytest.mark.parametrize("kind", RANKING)
@pytest.mark.parametrize("programs", [2, 7, 200])
def test_ranking_losses_do_not_grow_with_the_list(kind: Loss, programs: int) -> None:
    labels = torch.linspace(0.1, 1, programs)[:, None]
    loss = FUNCTIONS[kind](torch.zeros(programs, 1), labels, torch.zeros(programs, dtype=torch.long))
    assert loss.item() == pytest.approx(math.log(2), rel=1e-5)


@pytest.mark.parametrize("kind", list(Loss))
def test_a_head_with_few_labels_counts_as_much_as_one_with_all(kind: Loss) -> None:
    scores, labels, groups = random_lists()
    labels = torch.rand_like(labels)
    sparse = labels.clone()
    sparse[6:, 1] = NAN
    sparse[:, 2] = NAN
    alone = [FUNCTIONS[kind](scores[:, p : p + 1], sparse[:, p : p + 1], groups).item() for p in (0, 1)]
    assert FUNCTIONS[kind](scores, sparse, groups).item() == pytest.approx(sum(alone) / 2, rel=1e-5)


@pytest.mark.parametrize("kind", list(Loss))
def test_missing_labels_pull_nothing(kind: Loss) -> None:
    scores, labels, groups = random_lists()
    scores.requires_grad_()
    FUNCTIONS[kind](scores, labels, groups).backward()
    assert scores.grad is not None
    assert bool(torch.isfinite(scores.grad).all())
    assert bool((scores.grad[torch.isnan(labels)] == 0).all())
    assert bool((scores.grad[~torch.isnan(labels)] != 0).any())


@pytest.mark.parametrize("kind", RANKING)
def test_scores_of_other_tasks_do_not_matter(kind: Loss) -> None:
    scores, labels, groups = random_lists()
    shifted = scores + 10.0 * groups[:, None]
    torch.testing.assert_close(
        FUNCTIONS[kind](shifted, labels, groups), FUNCTIONS[kind](scores, labels, groups)
    )


@pytest.mark.parametrize("kind", RANKING)
def test_the_right_order_costs_least(kind: Loss) -> None:
    labels = torch.tensor([[1.0], [0.5], [0.2]])
    groups = torch.zeros(3, dtype=torch.long)
    losses = [
        FUNCTIONS[kind](torch.tensor(scores)[:, None], labels, groups).item()
        for scores in ([3.0, 2.0, 1.0], [2.0, 3.0, 1.0], [1.0, 2.0, 3.0])
    ]
    assert losses == sorted(losses)
    assert losses[0] < losses[1] < losses[2]


@pytest.mark.parametrize("kind", list(Loss))
def test_a_batch_without_labels_is_harmless(kind: Loss) -> None:
    scores = torch.randn(3, 2, requires_grad=True)
    loss = FUNCTIONS[kind](scores, torch.full((3, 2), NAN), torch.tensor([0, 0, 1]))
    loss.backward()
    assert loss.item() == 0.0
    assert scores.grad is not None
    assert scores.grad.abs().sum().item() == 0.0


def test_lambdarank_cares_most_for_the_top() -> None:
    labels = torch.tensor([[1.0], [0.9], [0.2], [0.1]])
    groups = torch.zeros(4, dtype=torch.long)
    right = torch.tensor([[4.0], [3.0], [2.0], [1.0]])
    top, bottom = right[[1, 0, 2, 3]], right[[0, 1, 3, 2]]
    assert lambdarank(top, labels, groups) > lambdarank(bottom, labels, groups)
    assert pairwise(top, labels, groups).item() == pytest.approx(
        pairwise(bottom, labels, groups).item(), rel=1e-4
    )


@pytest.mark.parametrize("kind", list(Loss))
@pytest.mark.parametrize("shares", [[[0, 2], [1, 3]], [[0, 1, 2, 3], []]])
def test_parts_of_a_batch_add_up(kind: Loss, shares: list[list[int]]) -> None:
    scores, labels, groups = random_lists()
    scores.requires_grad_()
    whole = FUNCTIONS[kind](scores, labels, groups)
    whole.backward()
    assert scores.grad is not None
    expected, scores.grad = scores.grad, None
    rows = [torch.isin(groups, torch.tensor(share)) for share in shares]
    counts: list[Tensor] = []

    def counted(count: Tensor) -> Tensor:
        counts.append(count)
        return count

    for of in rows:
        FUNCTIONS[kind](scores[of], labels[of], groups[of], counted)
    total = counts[0] + counts[1]
    parts = [FUNCTIONS[kind](scores[of], labels[of], groups[of], lambda _: total) for of in rows]
    torch.testing.assert_close(parts[0] + parts[1], whole)
    (parts[0] + parts[1]).backward()
    torch.testing.assert_close(scores.grad, expected)
