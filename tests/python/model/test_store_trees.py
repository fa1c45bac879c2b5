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
from tlp_tvm.model.trees.store_trees import FILE, STORE_WIDTH, StoreTrees, read_store_trees
from tlp_tvm.model.trees.tile_sizes import TILE_WIDTH

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
NO_TILES = np.zeros((1500, TILE_WIDTH), np.float32)


def two_trees() -> StoreTrees:
    """One of a leaf, and one that asks for the third feature and then for the second platform."""
    return StoreTrees.of_dump([json.dumps(LEAF), json.dumps(SPLIT)], ("a", "b"))


def test_a_program_is_the_sum_of_its_stores_on_a_platform() -> None:
    rows = np.zeros((4, STORE_WIDTH), np.float32)
    rows[:, 2] = [1.4, 1.5, 2.0, 0.0]
    counts = np.array([1, 0, 3])
    for platform, right in (("a", 10.0), ("b", 20.0)):
        found = two_trees().speeds(rows, counts, NO_TILES[:3], platform)
        assert found.tolist() == [1.25, -np.inf, right + right + 1.0 + 3 * 0.25]
    assert two_trees().speeds(rows[:0], counts[:0], NO_TILES[:0], "a").tolist() == []


def test_tile_sizes_are_those_of_the_program_and_come_before_platforms() -> None:
    second = {"split": f"f{STORE_WIDTH + 1}", "split_condition": 1.5, "nodeid": 0, "yes": 1, "no": 2}
    leaves = [{"nodeid": 1, "leaf": 1.0}, {"nodeid": 2, "leaf": 10.0}]
    platform = second | {"split": f"f{STORE_WIDTH + 3}", "split_condition": 0.5}
    dumped = [json.dumps(each | {"children": leaves}) for each in (second, platform)]
    trees = StoreTrees.of_dump(dumped, ("a", "b"), tiles=2)
    tiles = NO_TILES[:2].copy()
    tiles[1, 1] = 2
    rows = np.zeros((3, STORE_WIDTH), np.float32)
    assert trees.speeds(rows, np.array([1, 2]), tiles, "a").tolist() == [2.0, 22.0]
    assert trees.speeds(rows, np.array([1, 2]), tiles, "b").tolist() == [11.0, 40.0]


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
    found = trees.speeds(table[:, :-1], np.ones(1500, np.int64), NO_TILES, "only")
    np.testing.assert_allclose(found + start, expected, atol=1e-5)


def test_a_model_has_the_trees_of_its_folder(tmp_path: Path) -> None:
    config, network = tiny_config()
    save_checkpoint(tmp_path, config, network.state_dict())
    assert load_model(tmp_path).trees is None
    two_trees().save(tmp_path)
    trees = load_model(tmp_path).trees
    assert trees is not None
    assert trees.platforms == ("a", "b")
    assert trees.tiles == 0
    for name in ("features", "thresholds", "leaves"):
        np.testing.assert_array_equal(getattr(trees, name), getattr(two_trees(), name))


def test_trees_of_version_1_know_no_tile_sizes(tmp_path: Path) -> None:
    trees = two_trees()
    arrays = {"features": trees.features, "thresholds": trees.thresholds, "leaves": trees.leaves}
    said = {"format": "tlp-tvm-store-trees", "format_version": 1, "platforms": ["a", "b"]}
    (tmp_path / FILE).write_bytes(safetensors.numpy.save(arrays, {"trees": json.dumps(said)}))
    found = read_store_trees(tmp_path)
    assert found is not None
    assert (found.platforms, found.tiles) == (("a", "b"), 0)


def refused(folder: Path, **changes: Any) -> str:
    trees = two_trees()
    arrays = {"features": trees.features, "thresholds": trees.thresholds, "leaves": trees.leaves}
    said: dict[str, Any] = {"format": "tlp-tvm-store-trees", "format_version": 2, "platforms": ["a", "b"]}
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
        "expected tlp-tvm-store-trees 2 of `tlp-tvm train --trees`, found {}; restore the file, or train the "
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
    assert refused(tmp_path, format_version=3) == kept.format("the format tlp-tvm-store-trees 3")
    assert refused(tmp_path, format=None) == kept.format("the format None 2")
    for tiles in (-1, TILE_WIDTH + 1, "a"):
        assert refused(tmp_path, tiles=tiles) == kept.format(f"{tiles} tile sizes")
    (tmp_path / FILE).write_bytes((tmp_path / FILE).read_bytes()[:40])
    with pytest.raises(ModelFileError, match=r"found .*; restore the file, or train the trees again$"):
        read_store_trees(tmp_path)
