"""Trees on store features: what XGBoost fitted, from a file, and every refusal by its text."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.numpy

from programs import tiny_config
from tlp_tvm.errors import ModelFileError
from tlp_tvm.model.checkpoint import load_model, save_checkpoint
from tlp_tvm.model.store_trees import FILE, STORE_WIDTH, StoreTrees, read_store_trees

SPLIT = {
    "nodeid": 0,
    "split": "f2",
    "split_condition": 1.5,
    "yes": 1,
    "no": 2,
    "children": [
        {"nodeid": 2, "split": f"f{STORE_WIDTH + 1}", "split_condition": 0.5, "yes": 3, "no": 4}
        | {"children": [{"nodeid": 3, "leaf": 10.0}, {"nodeid": 4, "leaf": 20.0}]},
        {"nodeid": 1, "leaf": 1.0},
    ],
}
LEAF = {"nodeid": 0, "leaf": 0.25}


def two_trees() -> StoreTrees:
    """One of a leaf, and one that asks for the third feature and then for the second platform."""
    return StoreTrees.of_dump([json.dumps(LEAF), json.dumps(SPLIT)], ("a", "b"))


def test_a_program_is_the_sum_of_its_stores_on_a_platform() -> None:
    rows = np.zeros((4, STORE_WIDTH), np.float32)
    rows[:, 2] = [1.4, 1.5, 2.0, 0.0]
    counts = np.array([1, 0, 3])
    for platform, right in (("a", 10.0), ("b", 20.0)):
        found = two_trees().speeds(rows, counts, platform)
        assert found.tolist() == [1.25, -np.inf, right + right + 1.0 + 3 * 0.25]
    assert two_trees().speeds(rows[:0], counts[:0], "a").tolist() == []


def test_many_rows_are_looked_up_as_xgboost_does() -> None:
    xgboost = pytest.importorskip("xgboost", reason="the extra `ansor` is not installed")
    rng = np.random.default_rng(0)
    table = rng.random((1500, STORE_WIDTH + 1)).astype(np.float32)
    booster = xgboost.train({"max_depth": 6}, xgboost.DMatrix(table, rng.random(1500)), 20)
    trees = StoreTrees.of_dump(booster.get_dump(dump_format="json"), ("only",))
    table[:, -1] = 1
    expected = booster.predict(xgboost.DMatrix(table), output_margin=True)
    start = float(
        json.loads(booster.save_config())["learner"]["learner_model_param"]["base_score"].strip("[]")
    )
    found = trees.speeds(table[:, :-1], np.ones(1500, np.int64), "only")
    np.testing.assert_allclose(found + start, expected, atol=1e-5)


def test_a_model_has_the_trees_of_its_folder(tmp_path: Path) -> None:
    config, network = tiny_config()
    save_checkpoint(tmp_path, config, network.state_dict())
    assert load_model(tmp_path).trees is None
    two_trees().save(tmp_path)
    trees = load_model(tmp_path).trees
    assert trees is not None
    assert trees.platforms == ("a", "b")
    for name in ("features", "thresholds", "leaves"):
        np.testing.assert_array_equal(getattr(trees, name), getattr(two_trees(), name))


def refused(folder: Path, **changes: Any) -> str:
    trees = two_trees()
    arrays = {"features": trees.features, "thresholds": trees.thresholds, "leaves": trees.leaves}
    said: dict[str, Any] = {"format": "tlp-tvm-store-trees", "format_version": 1, "platforms": ["a", "b"]}
    for name, value in changes.items():
        (arrays if name in arrays else said)[name] = value
    (folder / FILE).write_bytes(safetensors.numpy.save(arrays, {"trees": json.dumps(said)}))
    with pytest.raises(ModelFileError) as error:
        read_store_trees(folder)
    path, _, reason = str(error.value).partition(": ")
    assert path == str(folder / FILE)
    return reason


def test_what_are_no_trees_is_refused(tmp_path: Path) -> None:
    whole = two_trees()
    kept = (
        "expected tlp-tvm-store-trees 1 of `tlp-tvm train --trees`, found {}; restore the file, or train the "
        "trees again"
    )
    wide = np.full_like(whole.features, STORE_WIDTH + 2)
    assert refused(tmp_path, features=wide) == kept.format("features 166 to 166")
    assert refused(tmp_path, features=-wide) == kept.format("features -166 to -166")
    assert refused(tmp_path, leaves=whole.leaves[:, 1:]) == kept.format(
        "3 nodes, thresholds (2, 3) and leaves (2, 3)"
    )
    assert refused(tmp_path, leaves=whole.leaves * np.nan) == kept.format("numbers that are not finite")
    assert refused(tmp_path, leaves=whole.leaves.astype(np.float64)) == kept.format(
        "numbers of the types int16, float32, float64"
    )
    assert refused(tmp_path, platforms=[1, 2]) == kept.format("3 inner nodes of platforms (1, 2)")
    assert refused(tmp_path, format_version=2) == kept.format("the format tlp-tvm-store-trees 2")
    assert refused(tmp_path, format=None) == kept.format("the format None 1")
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:40])
    with pytest.raises(ModelFileError, match=r"found .*; restore the file, or train the trees again$"):
        read_store_trees(tmp_path)
