"""A platform whose labels are of several kinds says so."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tlp_tvm.dataset.building.kinds_of_labels import mixed_labels
from tlp_tvm.records.source import DatasetSource


def source(folder: Path, **platforms: dict[str, Any]) -> DatasetSource:
    folder.mkdir()
    (folder / "collection.json").write_text(json.dumps({"platforms": platforms}))
    return DatasetSource(str(folder), (), table_file=str(folder / "tasks.json"))


def test_labels_of_one_kind_need_no_word(tmp_path: Path) -> None:
    found = [
        source(tmp_path / "a", here={"caches": "cold", "addresses": "folded"}, there={}),
        source(tmp_path / "b", here={"caches": "cold", "code": "folded"}, there={"caches": "warm"}),
        DatasetSource("log.json", ()),
    ]

    assert mixed_labels(found) == []


def test_labels_of_several_kinds_are_named(tmp_path: Path) -> None:
    found = [
        source(tmp_path / "a", here={"caches": "cold", "addresses": "folded"}),
        source(tmp_path / "b", here={"caches": "cold", "code": "llvm-22"}),
    ]

    assert mixed_labels(found) == [
        "platform here: has labels of 2 kinds: cold caches, code folded; cold caches, code llvm-22"
    ]


def test_what_is_no_collection_counts_as_alike(tmp_path: Path) -> None:
    broken = source(tmp_path / "a")
    (tmp_path / "a" / "collection.json").write_text("[1]")

    assert mixed_labels([broken]) == []
