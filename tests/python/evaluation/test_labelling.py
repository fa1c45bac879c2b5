"""Which programs are labelled, and how many."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from programs import LAYOUT, tiny_settings, write_dataset
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import DatasetError
from tlp_tvm.evaluation.few_shot.labels import measured_on, with_labels
from tlp_tvm.evaluation.labelling import BLOCK, Choose, label_counts, label_order
from tlp_tvm.model.tlp import TLP


@pytest.fixture
def data(tmp_path: Path) -> MeasuredDataset:
    return load_measured(write_dataset(tmp_path / "few"), LAYOUT).of_split("train")


def test_label_counts() -> None:
    assert [count.of(6112) for count in label_counts("0, 50,7%,ALL,9999,2.5%")] == [
        0,
        50,
        428,
        6112,
        6112,
        153,
    ]
    for wrong in ("many", "", "7%%", "-3", "101%"):
        with pytest.raises(DatasetError, match="^`labels`: expected numbers, shares or .* found "):
            label_counts(wrong)


def ordered(choose: Choose, data: MeasuredDataset, candidates: Any, seed: int, network: TLP) -> Any:
    tasks = data.task_index[candidates]
    order = label_order(choose, tasks, lambda rows: data.features(candidates[rows]), seed, lambda: network)
    return candidates[order]


@pytest.mark.parametrize("choose", list(Choose))
def test_fewer_labels_are_part_of_more(data: MeasuredDataset, choose: Choose) -> None:
    torch.manual_seed(0)
    network = TLP(tiny_settings(heads=2, members=2)).eval()
    candidates = measured_on(data, 1)
    order = ordered(choose, data, candidates, 3, network)
    assert sorted(order) == list(candidates)
    np.testing.assert_array_equal(order, ordered(choose, data, candidates, 3, network))
    assert not np.array_equal(order, ordered(choose, data, candidates, 4, network))
    if choose is not Choose.RANDOM:
        blocks = data.task_index[order[: 4 * BLOCK]].reshape(4, BLOCK)
        assert (blocks == blocks[:, :1]).all()
        assert len(set(blocks[:, 0])) == 4
    blind = with_labels(data, 1, candidates[:0])
    np.testing.assert_array_equal(order, ordered(choose, blind, candidates, 3, network))


def test_diverse_programs_are_unlike_each_other(data: MeasuredDataset) -> None:
    torch.manual_seed(0)
    network = TLP(tiny_settings(heads=2, members=2)).eval()
    order = ordered(Choose.DIVERSE, data, data.programs_of(0), 0, network)
    x = torch.from_numpy(data.features(order))
    with torch.inference_mode():
        inputs, real = network.inputs(x)
        h = network.members[0].trunk(inputs, real) * real.unsqueeze(-1)  # type: ignore[operator]
    pooled = (h.sum(1) / real.sum(1, keepdim=True)).numpy()
    apart = np.linalg.norm(pooled[:, None] - pooled[None], axis=-1)

    def nearest(rows: Any) -> float:
        part = apart[np.ix_(rows, rows)] + 1e9 * np.eye(len(rows))
        return float(part.min(1).mean())

    rng = np.random.default_rng(0)
    chance = [nearest(rng.permutation(len(order))[:6]) for _ in range(50)]
    assert nearest(np.arange(6)) > np.mean(chance)
