"""A second collection into a folder, while the first is at it."""

from __future__ import annotations

from pathlib import Path

import pytest
from test_collection import settings

from tlp_tvm.collection import collect
from tlp_tvm.collection.folder import CollectionFolder
from tlp_tvm.collection.packing import pack
from tlp_tvm.errors import CollectionError


def test_the_second_is_refused_and_mends_no_log(tmp_path: Path) -> None:
    collect(settings(tmp_path, programs=1))
    with CollectionFolder(tmp_path, "here"):
        log = next((tmp_path / "here").rglob("*.json"))
        with log.open("ab") as opened:
            opened.write(b'{"i": [[')  # what the first is writing
        before = log.read_bytes()
        for second in (lambda: collect(settings(tmp_path, programs=1)), lambda: pack(tmp_path)):
            with pytest.raises(CollectionError, match="expected nobody else to write there, found process"):
                second()
            assert log.read_bytes() == before
    assert collect(settings(tmp_path, programs=1)).measured == 0
    assert log.read_bytes() == before.removesuffix(b'{"i": [[')
