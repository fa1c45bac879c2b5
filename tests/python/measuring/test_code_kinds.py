"""What compiled the programs that others join."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tlp_tvm.collection.folder import code_of_folder
from tlp_tvm.measuring.code_kinds import IN_PARTS, POLYNOMIALS, PREFETCHING, code_as_before, noted_code


@pytest.mark.parametrize(
    ("noted", "code"),
    [({}, "plain"), ({"addresses": "folded"}, "folded"), ({"code": "llvm-22", "addresses": "x"}, "llvm-22")],
)
def test_files_of_before_say_it_by_another_word_or_not(noted: dict[str, Any], code: str) -> None:
    assert noted_code(noted) == code


@pytest.mark.parametrize(("before", "now"), [("plain", "plain"), ("folded", "folded"), ("llvm-9", "llvm-22")])
def test_tvms_own_llvm_is_everywhere(before: str, now: str) -> None:
    assert code_as_before({"code": before}, "llvm-22") == now


@pytest.mark.parametrize("before", ["llvm-22", f"llvm-22{PREFETCHING}", f"llvm-22{PREFETCHING}{IN_PARTS}"])
def test_programs_that_lack_what_ours_have_are_joined_by_such(before: str) -> None:
    best = f"llvm-22{PREFETCHING}{IN_PARTS}"

    assert code_as_before({"code": before}, best) == before
    assert code_as_before({"code": before.replace("22", "9")}, best) == best


@pytest.mark.parametrize("before", ["plain", f"plain{PREFETCHING}"])
def test_programs_that_call_a_libm_are_joined_by_such(before: str) -> None:
    assert code_as_before({"code": before}, f"plain{PREFETCHING}{POLYNOMIALS}") == before


def test_a_collection_goes_on_as_it_began(tmp_path: Path) -> None:
    assert code_of_folder(tmp_path, "here", "llvm-22") == "llvm-22"

    content = {"platforms": {"here": {"addresses": "folded"}}}
    (tmp_path / "collection.json").write_text(json.dumps(content))

    assert code_of_folder(tmp_path, "here", "llvm-22") == "folded"
    assert code_of_folder(tmp_path, "elsewhere", "llvm-22") == "llvm-22"

    (tmp_path / "collection.json").write_text("[]")
    assert code_of_folder(tmp_path, "here", "llvm-22") == "llvm-22"
