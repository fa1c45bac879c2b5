"""Comparing cost models in MetaSchedule's search: real searches that take turns."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from collected import QUICK, TARGET
from programs import tiny_config
from tlp_tvm.comparison import CompareSettings, compare, read_comparison
from tlp_tvm.comparison.compare_settings import contender
from tlp_tvm.comparison.stopwatch import PARTS
from tlp_tvm.errors import ComparisonError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.checkpoint import save_checkpoint

TRIALS, ROUND = 6, 3
MODELS = ("tlp-online", "xgb", "mlp", "random")


def settings(out: Path, models: tuple[str, ...] = MODELS, **changes: Any) -> CompareSettings:
    given: dict[str, Any] = {
        "contenders": tuple(contender(name, ROUND, 16, "metaschedule") for name in models),
        "target": TARGET, "tasks": 1, "trials": TRIALS, "measure": QUICK, "framework": "metaschedule",
        **changes,
    }  # fmt: skip
    return CompareSettings(("mlp",), out, **given)


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("compared")
    config, network = tiny_config(FeatureLayout.preset("metaschedule"))
    save_checkpoint(folder / "tiny", config, network.state_dict())
    compare(settings(folder / "run", model=str(folder / "tiny")))
    return folder


def test_every_search_measures_its_programs_on_its_own_clock(compared: Path) -> None:
    comparison = read_comparison(compared / "run")

    assert comparison.content["framework"] == "metaschedule"
    assert [run.contender for run in comparison.runs()] == [f"{name}:{ROUND}:16" for name in MODELS]
    for run in comparison.runs():
        assert len(run.best) == len(run.clock) == TRIALS
        assert np.isfinite(run.best[-1])
        assert (np.diff(run.clock) >= 0).all()
        assert set(run.spent) == set(PARTS)
        assert all(run.spent[part] > 0 for part in ("search", "score", "compile", "run"))
        assert sum(run.spent.values()) >= run.clock[-1] - 0.01
    assert len(comparison.against_baseline()) == len(MODELS) - 1


def test_a_whole_comparison_is_not_searched_again_and_another_is_refused(compared: Path) -> None:
    before = (compared / "run" / "comparison.json").read_bytes()

    compare(settings(compared / "run", model=str(compared / "tiny")))

    assert (compared / "run" / "comparison.json").read_bytes() == before
    with pytest.raises(ComparisonError, match="expected a comparison with trials 9, found 6; choose another"):
        compare(settings(compared / "run", model=str(compared / "tiny"), trials=9))


def test_a_model_must_be_one_of_metaschedules() -> None:
    with pytest.raises(ComparisonError, match="expected one of tlp, tlp-online, xgb, mlp, random"):
        contender("tlp-top", framework="metaschedule")


def test_tvms_mlp_learns_from_a_round_of_one_program() -> None:
    from tlp_tvm.metaschedule.search.tvms_mlp import working_mlp

    trainer = working_mlp().trainer
    rng = np.random.default_rng(0)
    for count in (4, 1):
        features = [rng.random((2, 172)).astype(np.float32) for _ in range(count)]
        trainer.update(features, rng.random(count) + 0.1, "task")
    assert trainer.predict_incremental(features).shape == (1,)


def test_tvms_mlp_learns_from_all_tasks_of_a_network(monkeypatch: pytest.MonkeyPatch) -> None:
    from tlp_tvm.metaschedule.search.tvms_mlp import mlp_model, working_mlp

    class Enough(Exception):
        pass

    sizes = []

    def loader(_features: Any, results: Any, **_: Any) -> None:
        sizes.append(len(results))
        if len(sizes) == 2:
            raise Enough

    monkeypatch.setattr(mlp_model, "SegmentDataLoader", loader)
    trainer = working_mlp().trainer
    one = [np.ones((2, 172), np.float32)]
    trainer.state.data.update({n: mlp_model.FeatureGroup(n, one, np.ones(1)) for n in ("a", "b", "c")})
    with pytest.raises(Enough):
        trainer.train_full()
    assert sizes == [3, 3]  # to learn from, and to test by
    assert len(trainer.state.data) == 3
