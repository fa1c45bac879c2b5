"""What becomes of a network that is slower tuned, and of runs from before networks were prepared."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from scorers import LinearScorer
from tlp_tvm.ansor.compiling import newer_llvm, pass_settings
from tlp_tvm.ansor.graph.pipeline import ALL
from tlp_tvm.ansor.networks import end_to_end
from tlp_tvm.ansor.networks.library import load_tuned
from tlp_tvm.ansor.search.tuner import RelayTuner
from tlp_tvm.errors import TuningError
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.network.turns import EndToEnd
from tlp_tvm.tuning.tune_settings import TuneSettings

TASKS = 4


def settings(out: Path, **changes: Any) -> TuneSettings:
    measure = MeasureSettings(timing=Timing(repeat=1, min_repeat_ms=1), threads=0)
    values = {"model": LinearScorer(), "target": "llvm -mcpu=core-avx2 -num-cores=2", "trials": TASKS}
    return TuneSettings(
        **{
            "network": "mlp",
            "out": out,
            "measure": measure,
            "population": 64,
            "turns": 3,
            **values,
            **changes,
        }
    )


def test_a_network_that_is_slower_tuned_stays_untuned(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RelayTuner, "compare", lambda *_: EndToEnd((1.0,), (2.0,), 0.0))
    slower = tune_network(settings(tmp_path / "run", trials=TASKS))

    assert slower.kept_untuned
    assert slower.library is not None
    assert load_tuned(tmp_path / "run").outputs[0].shape == (16, 10)


def test_a_run_from_before_the_passes_is_resumed_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    built: list[str] = []

    def of_a_network(tvm: Any, target: Any, needless: tuple[str, ...], code: str) -> dict[str, Any]:
        built.append(code)
        return pass_settings.of_a_network(tvm, target, needless, code)

    monkeypatch.setattr(end_to_end, "of_a_network", of_a_network)
    monkeypatch.setattr(newer_llvm, "newer_llvm", lambda tvm: "")  # TVM's own LLVM folds nothing by itself
    run = tmp_path / "run"
    newer = tune_network(settings(run))
    assert set(built) == {"folded"}
    built.clear()
    report = json.loads((run / "run.json").read_text())
    del report["graph"], report["measure"]["timing"]["caches"], report["measure"]["code"]
    (run / "run.json").write_text(json.dumps(report))
    (run / "log.json").unlink()

    older = tune_network(settings(run))

    noted = json.loads((run / "run.json").read_text())
    assert noted["graph"] == {"passes": [], "left_out": list(ALL), "known": list(ALL)}
    assert noted["measure"]["timing"]["caches"] == "warm"
    assert noted["measure"]["code"] == "plain"
    assert set(built) == {"plain"}
    assert {t.workload_key for t in older.tasks} != {t.workload_key for t in newer.tasks}


def test_a_run_whose_compiler_is_not_here_is_refused(tmp_path: Path) -> None:
    run = tmp_path / "run"
    run.mkdir()
    noted = {"format": "tlp-tvm-run", "format_version": 1, "measure": {"code": "llvm-7"}}
    (run / "run.json").write_text(json.dumps(noted))

    with pytest.raises(
        TuningError, match=r"expected llvm-7, which compiled .*; install the llvmlite that has it"
    ):
        tune_network(settings(run))
