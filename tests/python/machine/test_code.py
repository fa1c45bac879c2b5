"""Digests of the code: they change with it, and finished trainings are found by them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tlp_tvm.machine import code


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    (tmp_path / "model").mkdir()
    (tmp_path / "pages").mkdir()
    (tmp_path / "model" / "tlp.py").write_text("width = 1\n")
    monkeypatch.setattr(code, "_SOURCES", tmp_path)
    code.rooms_digest.cache_clear()
    yield tmp_path
    code.rooms_digest.cache_clear()


def test_a_change_in_a_room_changes_its_digest_and_no_other(package: Path) -> None:
    before = code.rooms_digest(("model",)), code.rooms_digest(("pages",))
    (package / "model" / "tlp.py").write_text("width = 2\n")
    code.rooms_digest.cache_clear()

    assert code.rooms_digest(("model",)) != before[0]
    assert code.rooms_digest(("pages",)) == before[1]


def test_a_training_is_keyed_by_code_and_torch(package: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = code.training_key()
    monkeypatch.setattr("torch.__version__", "9.9")
    other_torch = code.training_key()
    (package / "model" / "tlp.py").write_text("width = 2\n")
    code.rooms_digest.cache_clear()

    assert len({tuple(key) for key in (before, other_torch, code.training_key())}) == 3


def test_the_rooms_of_the_package_are_there() -> None:
    for room in (*code.TRAINING_ROOMS, *code.FIGURE_ROOMS):
        assert list((code._SOURCES / room).rglob("*.py"))
