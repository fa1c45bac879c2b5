"""Tasks of networks that judge leave a collection with their files; everything else stays as it is."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType

import pytest

from places import benchmark


@pytest.fixture
def without_judges(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return benchmark("without_judges", monkeypatch)


@pytest.fixture
def collection(tmp_path: Path) -> Path:
    tasks = [
        {"task": name, "workload_key": f"key of {name}", "desc": f"dense {name}", "network": "net"}
        for name in ("aa", "bb")
    ]
    (tmp_path / "tasks.json").write_text(json.dumps(tasks))
    for platform in ("here", "there"):
        (tmp_path / platform / "train").mkdir(parents=True)
        for name in ("aa", "bb"):
            (tmp_path / platform / "train" / f"net__{name}.json.gz").write_bytes(b"records")
    return tmp_path


def test_a_judging_task_leaves_every_platform(without_judges: ModuleType, collection: Path) -> None:
    assert without_judges.without(collection, {"key of bb", "another"}) == ["dense bb of net"]
    assert [task["task"] for task in json.loads((collection / "tasks.json").read_text())] == ["aa"]
    assert sorted(file.name for file in collection.glob("*/*/*")) == ["net__aa.json.gz"] * 2


def test_a_collection_without_any_stays_as_it_is(without_judges: ModuleType, collection: Path) -> None:
    before = (collection / "tasks.json").read_bytes()
    assert without_judges.without(collection, {"another"}) == []
    assert (collection / "tasks.json").read_bytes() == before
    assert len(list(collection.glob("*/*/*"))) == 4
