"""Packing a collection loses no record, and refuses what it cannot pack."""

from __future__ import annotations

import gzip
import shutil
from pathlib import Path

import pytest
from test_collection import identities, settings

from tlp_tvm.collection import collect
from tlp_tvm.collection.folder import CollectionFolder
from tlp_tvm.collection.packing import pack
from tlp_tvm.errors import CollectionError, DatasetError


@pytest.fixture(scope="module")
def collected(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("collected") / "data"
    collect(settings(out))
    return out


def test_packing_keeps_every_record_even_when_it_is_cut_short(collected: Path, tmp_path: Path) -> None:
    folder = tmp_path / "data"
    shutil.copytree(collected, folder)
    found = sorted(identities(folder, "here"))
    first, *_ = sorted((folder / "here").rglob("*.json"))
    packed = first.with_name(f"{first.name}.gz")
    packed.write_bytes(gzip.compress(first.read_bytes()))  # killed before the file was removed
    second = sorted((folder / "here").rglob("*.json"))[1]
    lines = second.read_text().splitlines(keepends=True)
    second.with_name(f"{second.name}.gz").write_bytes(gzip.compress("".join(lines[:2]).encode()))
    second.write_text("".join(lines[2:]))  # packed once before, and resumed since

    pack(folder)

    assert sorted(identities(folder, "here")) == found
    assert not list((folder / "here").rglob("*.json"))
    before = {file: file.read_bytes() for file in (folder / "here").rglob("*.gz")}
    assert pack(folder) == (0, 0)
    assert {file: file.read_bytes() for file in (folder / "here").rglob("*.gz")} == before
    assert collect(settings(folder)).measured == 0
    first.write_text(lines[0])
    packed.write_bytes(packed.read_bytes()[:-9])
    with pytest.raises(CollectionError, match=r"json\.gz: expected a whole gzip file, found .*fetch or"):
        pack(folder)
    assert first.read_text() == lines[0]


def test_packing_something_else_is_refused(collected: Path, tmp_path: Path) -> None:
    with pytest.raises(DatasetError, match="expected a dataset folder with tasks.json"):
        pack(tmp_path)
    with CollectionFolder(collected, "here"), pytest.raises(CollectionError, match="pack when it ends"):
        pack(collected)
