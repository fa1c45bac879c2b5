from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

from tlp_tvm.errors import TuningError
from tlp_tvm.tuning.network.tuned_library import Tensor, line_that_runs, read_description, write_description


def described(folder: Path, name: str = "data") -> Path:
    folder.mkdir()
    (folder / "tuned.so").touch()
    tensor = Tensor((1, 4), "float32")
    write_description(folder / "tuned.so", "ansor", "net", "llvm", {name: tensor}, [tensor])
    return folder


@pytest.mark.parametrize("library", ["../elsewhere.so", "/tmp/elsewhere.so", "elsewhere.so", "", 3])
def test_a_description_leads_to_no_other_library(tmp_path: Path, library: object) -> None:
    folder = described(tmp_path / "run")
    (tmp_path / "elsewhere.so").touch()
    (folder / "elsewhere.so").touch()
    told = json.loads((folder / "tuned.json").read_text())
    (folder / "tuned.json").write_text(json.dumps({**told, "library": library}))
    with pytest.raises(TuningError) as refused:
        read_description(folder)
    assert str(refused.value) == (
        f"{folder}: expected tuned.json and the library that it names, found: no library tuned.so or "
        f"tuned.tar, but {str(library)!r}; choose the folder of a tuning that ended"
    )


@pytest.mark.parametrize("name", ["data", "a b", 'a"b', "a'b"])
def test_the_line_that_runs_is_python_whatever_the_names(tmp_path: Path, name: str) -> None:
    folder = described(tmp_path / """it's a "run" """, name)
    strings = {
        node.value for node in ast.walk(ast.parse(line_that_runs(folder))) if isinstance(node, ast.Constant)
    }
    assert str(folder) in strings
