"""The names that users import: there, light, and the old ones still working."""

from __future__ import annotations

import importlib

import pytest

import tlp_tvm
from processes import run_python

PUBLIC = [
    "EncodingReport",
    "FeatureLayout",
    "RecordBatch",
    "extract_records",
    "extract_states",
    "extract_traces",
    "iter_records",
    "load_model",
    "read_records",
    "tune",
]


@pytest.mark.parametrize("name", PUBLIC)
def test_a_public_name_is_there(name: str) -> None:
    assert name in tlp_tvm.__all__
    assert name in dir(tlp_tvm)
    if name != "extract_traces":  # its module needs the other TVM only when it is called
        assert callable(getattr(tlp_tvm, name))


@pytest.mark.parametrize(("leaf", "names"), [("ansor", ["TLPCostModel", "load_tvm", "steps_of"])])
def test_what_is_one_frameworks_alone_is_under_its_name(leaf: str, names: list[str]) -> None:
    for name in names:
        assert callable(getattr(getattr(tlp_tvm, leaf), name))


@pytest.mark.parametrize("name", ["load_tvm", "steps_of"])
def test_an_old_name_works_and_names_the_new_one(name: str) -> None:
    with pytest.warns(DeprecationWarning, match="the old name goes in the next version") as warned:
        old = getattr(tlp_tvm, name)
    assert old is getattr(tlp_tvm.ansor, name)
    assert str(warned[0].message) == (
        f"tlp_tvm.{name} is now tlp_tvm.ansor.{name}; the old name goes in the next version"
    )


def test_an_old_name_of_a_leaf_works_and_names_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match="tlp_tvm.ansor.this_cpu is now tlp_tvm.machine.cpu.this_cpu"):
        old = tlp_tvm.ansor.this_cpu
    assert old is importlib.import_module("tlp_tvm.machine.cpu").this_cpu


def test_importing_is_light() -> None:
    loaded = run_python(
        """
        import sys
        import tlp_tvm
        tlp_tvm.FeatureLayout.preset("ansor")
        report(loaded=sorted({"torch", "tvm", "pyarrow", "scipy", "matplotlib"} & set(sys.modules)))
        """
    )
    assert loaded == {"loaded": []}
