"""The marks of operators that TenSet's models read."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tlp_tvm.evaluation.baselines.operator_kinds import KINDS, kinds_of, kinds_of_tasks, marked
from tlp_tvm.evaluation.baselines.xgboost_features import BOOSTINGS, summed_error

IMAGE, OUT = [1, 56, 56, 24], [1, 28, 28, 144]


@pytest.mark.parametrize(
    ("name", "shapes", "kinds"),
    [
        ("vm_mod_fused_nn_conv2d_add_clip_3", [IMAGE, [3, 3, 24, 144], OUT], {"max", "min", "add", "conv2d"}),
        ("vm_mod_fused_nn_conv2d_add", [IMAGE, [3, 3, 24, 1], IMAGE], {"add", "conv2d", "depthwise"}),
        (
            "vm_mod_fused_nn_contrib_conv2d_NCHWc_add_nn_relu",
            [[1, 3, 56, 56, 8], [3, 1, 3, 3, 1, 8], [1, 3, 56, 56, 8]],
            {"max", "add", "conv2d", "depthwise"},
        ),
        (
            "vm_mod_fused_nn_contrib_conv2d_winograd_without_weight_transform_add",
            [IMAGE, [6, 6, 24, 144], OUT],
            {"add", "conv2d", "winograd"},
        ),
        ("vm_mod_fused_nn_fast_softmax", [[1, 12, 128, 128]], {"max", "softmax"}),
        ("vm_mod_fused_nn_batch_matmul_7", [[12, 128, 64], [12, 64, 1], [12, 128, 1]], {"batch_matmul"}),
        (None, [IMAGE], set()),
    ],
)
def test_a_task_has_its_kinds(name: str | None, shapes: list[list[int]], kinds: set[str]) -> None:
    marks = kinds_of(json.dumps(["0123456789abcdef", *shapes]), name)
    assert {kind for kind, mark in zip(KINDS, marks, strict=True) if mark} == kinds


def test_a_key_that_is_no_list_has_the_kinds_of_its_name() -> None:
    assert kinds_of("somebody's key", "nn_conv2d")[KINDS.index("conv2d")] == 1


def test_marks_stand_behind_the_rows() -> None:
    rows = np.arange(6, dtype=np.float32).reshape(3, 2)
    marks = kinds_of("", "nn_dense_add")
    found = marked(rows, marks)
    np.testing.assert_array_equal(found[:, :2], rows)
    assert (found[:, 2:] == marks).all()
    assert kinds_of_tasks([]).shape == (0, len(KINDS))


def test_tvms_trees_weigh_programs_by_their_labels_and_tensets_do_not() -> None:
    owner, labels, stores = np.array([0, 0, 1]), np.array([0.5, 1.0]), np.array([0.25, 0.5, 0.5])
    gradients, weights = summed_error(owner, labels, weighted=BOOSTINGS["xgboost-tvm"].weighted)(stores, None)
    assert (gradients.tolist(), weights.tolist()) == ([0.125, 0.125, -0.5], [0.5, 0.5, 1.0])
    gradients, weights = summed_error(owner, labels, weighted=BOOSTINGS["xgboost-tenset"].weighted)(
        stores, None
    )
    assert (gradients.tolist(), weights.tolist()) == ([0.25, 0.25, -0.5], [1.0, 1.0, 1.0])
