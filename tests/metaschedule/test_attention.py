"""Attention's products, whose scale and mask are done to them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tlp_tvm.metaschedule.graph.prepared import prepared
from tlp_tvm.metaschedule.graph.rows.masks import with_plain_masks
from tlp_tvm.metaschedule.loading.targets import target_of
from tlp_tvm.metaschedule.networks import end_to_end
from tlp_tvm.metaschedule.networks.builtin import relax_of, tasks_of
from tlp_tvm.metaschedule.networks.planning import plan_tasks
from tlp_tvm.metaschedule.reading.store_rows import rebuilt_modules

pytestmark = pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")  # torch's own
HEADS, TOKENS, WIDTH = 4, 7, 32


class Attention(torch.nn.Module):
    """With a mask of any shape that torch repeats."""

    def __init__(self, mask: tuple[int, ...] | None) -> None:
        super().__init__()
        self.query, self.key, self.value = (torch.nn.Linear(WIDTH, WIDTH) for _ in range(3))
        self.mask = None if mask is None else torch.nn.Parameter(torch.randn(mask))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(B, TOKENS, WIDTH) -> (B, HEADS, TOKENS, WIDTH / HEADS)."""
        query, key, value = (
            layer(x).view(len(x), TOKENS, HEADS, -1).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        scores = query @ key.transpose(-1, -2) / 4.0
        if self.mask is not None:
            scores = self.mask + scores
        return torch.softmax(scores, -1) @ value


def exported(images: int, mask: tuple[int, ...] | None) -> tuple[torch.nn.Module, torch.Tensor, Any]:
    torch.manual_seed(0)
    network, x = Attention(mask).eval(), torch.randn(images, TOKENS, WIDTH)
    return network, x, torch.export.export(network, (x,))


@pytest.mark.parametrize(
    ("images", "mask", "fused"),
    [
        (1, None, {"fused_matmul1_divide"}),
        (1, (1, HEADS, TOKENS, TOKENS), {"fused_matmul1_divide_add1"}),
        (1, (HEADS, 1, TOKENS), {"fused_matmul1_divide_add1"}),
        (2, (1, 1, TOKENS, TOKENS), {"fused_matmul1_divide_add1"}),
        (2, (TOKENS, TOKENS), {"fused_matmul1_divide_add1"}),
        (2, (2, HEADS, TOKENS, TOKENS), {"fused_matmul1_divide_add1"}),
        (2, (2, 1, 1, TOKENS), {"fused_matmul1_divide", "fused_reshape4_add1"}),
        (2, (HEADS, TOKENS, TOKENS), {"fused_matmul1_divide", "fused_reshape4_add1"}),
    ],
)
def test_scale_and_mask_are_done_to_the_product(
    images: int, mask: tuple[int, ...] | None, fused: set[str]
) -> None:
    network, x, program = exported(images, mask)
    module, target = prepared(*relax_of(program)), target_of("llvm -num-cores=2")

    names = {str(task.task_name) for task in tasks_of(module, target)}
    assert {name for name in names if "divide" in name or "add1" in name} == fused
    assert not any("broadcast" in name for name in names)

    (name,) = end_to_end.random_inputs(module)
    built = end_to_end.compiled(module, {}, target)
    (found,) = end_to_end.run_once(built, {name: x.numpy()}, target)
    np.testing.assert_allclose(found, network(x).detach().numpy(), rtol=1e-4, atol=1e-5)


class Safe(torch.nn.Module):
    """Attention as torch exports it, which looks for rows in which all is masked."""

    def __init__(self, mask: torch.Tensor | None) -> None:
        super().__init__()
        self.mask = mask

    def forward(self, x: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
        """Twice (B, HEADS, TOKENS, TOKENS), of which the other one may be a mask; such again."""
        mask = (other > 0)[:, :1] if self.mask is None else self.mask
        return torch.nn.functional.scaled_dot_product_attention(x, x, other, attn_mask=mask)


def tokens_before() -> torch.Tensor:
    """A mask that is made as models make it."""
    places = torch.arange(TOKENS)
    return (places[None, :] <= places[:, None])[None, None]


@pytest.mark.parametrize(
    ("mask", "looks", "sums"),
    [
        (torch.ones(1, 1, TOKENS, TOKENS, dtype=torch.bool), False, 0),
        (torch.zeros(1, 1, TOKENS, TOKENS), False, 0),
        (tokens_before(), False, 1),
        (torch.arange(TOKENS)[None, None, :, None] > torch.arange(TOKENS), True, 1),
        (None, True, 1),
    ],
)
def test_rows_in_which_all_is_masked_are_looked_for_where_there_may_be_some(
    mask: torch.Tensor | None, looks: bool, sums: int
) -> None:
    torch.manual_seed(0)
    network, given = Safe(mask).eval(), tuple(torch.randn(1, HEADS, TOKENS, TOKENS) for _ in range(2))
    program = torch.export.export(network, given)
    module, target = prepared(*relax_of(program)), target_of("llvm -num-cores=2")

    text = with_plain_masks(module).script()
    assert ("R.equal(" in text) == looks
    assert text.count("R.add(") == sums

    names = list(end_to_end.random_inputs(module))
    arrays = {name: each.numpy() for name, each in zip(names, given, strict=True)}
    (found,) = end_to_end.run_once(end_to_end.compiled(module, {}, target), arrays, target)
    np.testing.assert_allclose(found, network(*given).detach().numpy(), rtol=1e-4, atol=1e-5)


def test_rows_in_which_one_is_masked_are_something_else() -> None:
    mask = torch.zeros(1, 1, TOKENS, TOKENS).masked_fill(~tokens_before(), -torch.inf)

    class Looking(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            """(B, HEADS, TOKENS, TOKENS), as given; nothing where a row is masked in part."""
            scores = x @ x + mask
            return torch.where((scores == -torch.inf).any(-1, keepdim=True), 0.0, torch.softmax(scores, -1))

    x = torch.randn(1, HEADS, TOKENS, TOKENS)
    module = prepared(*relax_of(torch.export.export(Looking().eval(), (x,))))
    assert "R.equal(" in with_plain_masks(module).script()


def test_tasks_of_records_of_before_are_found(tmp_path: Path) -> None:
    file, target = tmp_path / "network.pt2", target_of("llvm -num-cores=2", here=False)
    torch.export.save(exported(1, (1, 1, TOKENS, TOKENS))[2], file)
    now, before = (
        {task.workload_key for task in plan_tasks([str(file)], target, lambda _: None, usual=usual)}
        for usual in (False, True)
    )
    assert len(before - now) == 5, "a product, a sum, a softmax and two transposes, some with broadcasts"

    wanted = {key: {str(file): 1} for key in now | before}
    assert {key for key, _ in rebuilt_modules(wanted, target, lambda _: None)} == now | before
