"""What compiled the programs that others join."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tlp_tvm.collection.folder import code_of_folder
from tlp_tvm.measuring.code_kinds import PREFETCHING, code_as_before, noted_code


@pytest.mark.parametrize(
    ("noted", "code"),
    [({}, "plain"), ({"addresses": "folded"}, "folded"), ({"code": "llvm-22", "addresses": "x"}, "llvm-22")],
)
def test_files_of_before_say_it_by_another_word_or_not(noted: dict[str, Any], code: str) -> None:
    assert noted_code(noted) == code


@pytest.mark.parametrize(("before", "now"), [("plain", "plain"), ("folded", "folded"), ("llvm-9", "llvm-22")])
def test_tvms_own_llvm_is_everywhere(before: str, now: str) -> None:
    assert code_as_before({"code": before}, "llvm-22") == now


def test_programs_that_fetched_no_weights_are_joined_by_such() -> None:
    best = f"llvm-22{PREFETCHING}"

    assert code_as_before({"code": "llvm-22"}, best) == "llvm-22"
    assert code_as_before({"code": best}, best) == best
    assert code_as_before({"code": "llvm-9"}, best) == best
    assert code_as_before({"code": f"llvm-9{PREFETCHING}"}, best) == best


def test_a_collection_goes_on_as_it_began(tmp_path: Path) -> None:
    assert code_of_folder(tmp_path, "here", "llvm-22") == "llvm-22"

    content = {"platforms": {"here": {"addresses": "folded"}}}
    (tmp_path / "collection.json").write_text(json.dumps(content))

    assert code_of_folder(tmp_path, "here", "llvm-22") == "folded"
    assert code_of_folder(tmp_path, "elsewhere", "llvm-22") == "llvm-22"

    (tmp_path / "collection.json").write_text("[]")
    assert code_of_folder(tmp_path, "here", "llvm-22") == "llvm-22"
