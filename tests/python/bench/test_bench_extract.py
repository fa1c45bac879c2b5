"""The extraction benchmark, once and small: it checks its answer, prints ratios, and can fail."""

from __future__ import annotations

import json

import numpy as np
import pytest
from typer.testing import CliRunner

from tlp_tvm.ansor.benching import extract
from tlp_tvm.ansor.reading import states as ansor_states
from tlp_tvm.cli.app import app


@pytest.fixture(autouse=True)
def _few_states(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(extract, "STATES_FOR_TVM_FEATURES", {"llvm": 8, "cuda": 4})
    monkeypatch.setattr(extract, "FRESH_AT_MOST", {"cuda": 8})


def test_json_has_rates_and_ratios() -> None:
    arguments = [
        "bench",
        "extract",
        "--task",
        "dense",
        "--states",
        "20",
        "--fresh",
        "150",
        "--seconds",
        "0",
        "--json",
    ]
    result = CliRunner().invoke(app, arguments)
    assert result.exit_code == 0, result.output
    figures = json.loads(result.stdout.strip().splitlines()[-1])
    assert figures["machine"]["cores"]
    for target, layouts in zip(
        figures["extract"], (["paper-cpu", "ansor"], ["paper-gpu", "ansor"]), strict=True
    ):
        assert [native["layout"] for native in target["native"]] == layouts
        for native in target["native"]:
            assert native["warm"] > 0
            assert native["fresh"] > 0
            is_cpu = target["target"].startswith("llvm")
            assert (native["fresh_states"] >= 150) == is_cpu  # the sampler may draw some more than asked
            assert native["ratios"]["warm / TVM features"] == native["warm"] / target["tvm_features"]


def test_a_wrong_answer_stops_it(monkeypatch: pytest.MonkeyPatch) -> None:
    right = ansor_states.encode
    monkeypatch.setattr(ansor_states, "encode", lambda *a, **k: right(*a, **k) + np.float32(1))
    with pytest.raises(AssertionError, match="the two routes differ"):
        extract.bench_extract("dense", extract.CPU_TARGET, states=4, seconds=0)


def test_table_names_every_route() -> None:
    result = extract.ExtractResult(
        task="conv2d",
        target="llvm",
        states=10,
        primitives=20.0,
        native=[extract.NativeRate("ansor", 1e5, 2e5, 0.0)],
        python_route=100.0,
        tvm_features=10.0,
    )
    from rich.console import Console

    from tlp_tvm.cli.parts.bench_tables import extract_table

    console = Console(record=True, width=120)
    console.print(extract_table(result))
    text = console.export_text()
    assert "native, ansor, all threads" in text
    assert "20,000.0x" in text
    assert "2,000.0x" in text
    assert "fresh" not in text


def test_table_says_how_many_states_were_fresh() -> None:
    from rich.console import Console

    from tlp_tvm.cli.parts.bench_tables import extract_table

    result = extract.ExtractResult(
        task="conv2d",
        target="cuda",
        states=10,
        primitives=20.0,
        native=[extract.NativeRate("ansor", 1e5, 2e5, 1.5e5, 2000)],
        python_route=100.0,
        tvm_features=10.0,
    )
    console = Console(record=True, width=120)
    console.print(extract_table(result))
    assert "native, ansor, 2,000 fresh states" in console.export_text()
