"""A profile beside the labels: what of a network's latency each explains."""

from __future__ import annotations

import pytest

from tlp_tvm.tuning.network.operator_times import OperatorTime, Ran, explained, operator_times


def test_operators_have_the_label_of_their_task_and_the_heaviest_is_first() -> None:
    ran = [Ran("fused_softmax", 1, 2e-3), Ran("fused_dense", 4, 3e-3), Ran("fused_dense_1", 1, 1e-3)]

    times = operator_times(ran, {"fused_dense": "a", "fused_dense_1": "b"}, {"a": 2e-3})

    assert times == [
        OperatorTime("fused_dense", 4, 3e-3, "a", 2e-3),
        OperatorTime("fused_softmax", 1, 2e-3, "", None),
        OperatorTime("fused_dense_1", 1, 1e-3, "b", None),
    ]


def test_the_parts_are_the_whole() -> None:
    times = [OperatorTime("dense", 4, 3e-3, "a", 2e-3), OperatorTime("softmax", 1, 2e-3, "", None)]

    parts = explained(times, 15e-3)

    assert parts == pytest.approx({"labels": 8e-3, "inside": 4e-3, "others": 2e-3, "between": 1e-3})
    assert sum(parts.values()) == pytest.approx(15e-3)
