"""Comparing cost models: real searches that take turns, and what is said of them."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from places import ROOT
from tlp_tvm.comparison import CompareObserver, CompareSettings, Comparison, compare, read_comparison
from tlp_tvm.comparison.compare_settings import contender
from tlp_tvm.comparison.comparison_plot import draw_comparison
from tlp_tvm.comparison.matched_plot import draw_matched, matched_shares
from tlp_tvm.comparison.stopwatch import PARTS
from tlp_tvm.errors import ComparisonError
from tlp_tvm.folder_lock import held
from tlp_tvm.machine.code import code_digest
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.measuring.stopping import Stopped
from tlp_tvm.metrics.bootstrap import Interval
from tlp_tvm.model.checkpoint import weights_digest
from tlp_tvm.planned_task import largest

TRIALS = 8
MODELS = ("tlp-online", "tlp-top", "xgb", "random")


def settings(out: Path, **changes: Any) -> CompareSettings:
    given: dict[str, Any] = {
        "contenders": tuple(contender(name, 4, 32) for name in MODELS),
        "target": "llvm -num-cores=1",
        "tasks": 1,
        "trials": TRIALS,
        "measure": MeasureSettings(threads=0, timing=Timing(repeat=1, min_repeat_ms=1)),
        **changes,
    }
    return CompareSettings(("mlp",), out, **given)


class Turns(CompareObserver):
    """Notes whose turn it was."""

    def __init__(self) -> None:
        self.turns: list[str] = []
        self.rounds: list[tuple[str, int]] = []

    def measured(self, group: str, model: str, best_s: float) -> None:
        self.turns.append(model)

    def round(self, group: str, model: str, programs: int, best_s: float) -> None:
        assert 0 < best_s < np.inf
        self.rounds.append((model, programs))


@pytest.fixture(scope="module")
def compared(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Turns]:
    out = tmp_path_factory.mktemp("compared")
    observer = Turns()
    compare(settings(out), observer)
    return out, observer


def test_what_is_spent_follows_no_wall_clock(tmp_path: Path, shifting_clock: Callable[[], float]) -> None:
    (run,) = compare(settings(tmp_path, contenders=(contender("random", 4, 32),), trials=4)).runs()

    assert run.clock[0] > 0
    assert (np.diff(run.clock) >= 0).all()
    assert min(run.spent["search"], run.spent["compile"], run.spent["run"]) > 0
    assert sum(run.spent.values()) <= shifting_clock()


def test_models_take_turns_round_by_round(compared: tuple[Path, Turns]) -> None:
    observer = compared[1]
    names = [f"{name}:4:32" for name in MODELS]

    assert observer.turns == [name for _ in range(TRIALS // 4) for name in names for _ in range(4)]
    assert observer.rounds == [(name, count) for count in range(4, TRIALS + 1, 4) for name in names]


def test_every_search_has_its_programs_and_its_own_clock(compared: tuple[Path, Turns]) -> None:
    runs = read_comparison(compared[0]).runs()

    assert [run.contender for run in runs] == [f"{name}:4:32" for name in MODELS]
    for run in runs:
        assert len(run.best) == len(run.clock) == TRIALS
        assert np.isfinite(run.best[-1])
        assert 0 < run.last < np.inf
        assert (np.diff(run.clock) >= 0).all()
        assert set(run.spent) == set(PARTS)
        assert sum(run.spent.values()) >= run.clock[-1] - 0.01
        assert run.spent["compile"] > 0
        assert run.spent["run"] > 0
        assert run.spent["score"] > 0


def test_a_whole_comparison_is_not_searched_again(compared: tuple[Path, Turns]) -> None:
    observer = Turns()
    before = (compared[0] / "comparison.json").read_bytes()

    again = compare(settings(compared[0]), observer)

    assert observer.turns == []
    assert (compared[0] / "comparison.json").read_bytes() == before
    assert len(again.runs()) == len(MODELS)


def test_an_interrupt_keeps_whole_searches_and_the_same_command_resumes(tmp_path: Path) -> None:
    class Impatient(Turns):
        def measured(self, group: str, model: str, best_s: float) -> None:
            super().measured(group, model, best_s)
            if len(self.turns) == 7:
                os.kill(os.getpid(), signal.SIGINT)

    asked = settings(tmp_path, contenders=(contender("tlp-online", 4, 32),), trials=4, seeds=2)
    before = signal.getsignal(signal.SIGINT)
    with pytest.raises(Stopped) as error:
        compare(asked, Impatient())

    words = f", seed 1; {tmp_path} holds the complete searches, and the same command resumes"
    assert str(error.value).startswith("stopped in ")
    assert str(error.value).endswith(words)
    assert signal.getsignal(signal.SIGINT) is before
    assert [run.seed for run in read_comparison(tmp_path).runs()] == [0]

    observer = Turns()
    assert [run.seed for run in compare(asked, observer).runs()] == [0, 1]
    assert len(observer.turns) == 4


def test_another_comparison_in_the_same_folder_is_refused(compared: tuple[Path, Turns]) -> None:
    with pytest.raises(ComparisonError, match="expected a comparison with trials 9, found 8; choose another"):
        compare(settings(compared[0], trials=9))


def test_two_comparisons_in_one_folder_are_refused(compared: tuple[Path, Turns]) -> None:
    with (
        held(compared[0], ComparisonError, ""),
        pytest.raises(ComparisonError, match="expected nobody else to write there, found process"),
    ):
        compare(settings(compared[0]))


@pytest.mark.parametrize("entry", ["weights", "cpu", "measure", "code", "versions"])
def test_conditions_that_changed_are_refused(
    compared: tuple[Path, Turns], tmp_path: Path, entry: str
) -> None:
    shutil.copytree(compared[0], tmp_path / "run")
    path = tmp_path / "run" / "comparison.json"
    content = json.loads(path.read_text())
    assert entry in content
    assert (content["weights"], content["code"]) == (weights_digest("x86"), code_digest())
    path.write_text(json.dumps({**content, entry: "another"}))
    with pytest.raises(ComparisonError) as refused:
        compare(settings(tmp_path / "run"))
    text = str(refused.value)
    assert text.startswith(f"{path}: expected a comparison with {entry} ")
    assert text.endswith(", found another; choose another `out`")


def test_an_older_comparison_that_does_not_say_its_conditions_is_resumed(
    compared: tuple[Path, Turns], tmp_path: Path
) -> None:
    shutil.copytree(compared[0], tmp_path / "run")
    path = tmp_path / "run" / "comparison.json"
    content = json.loads(path.read_text())
    for entry in ("weights", "measure", "code"):
        del content[entry]
    path.write_text(json.dumps(content))
    assert len(compare(settings(tmp_path / "run")).runs()) == len(MODELS)


def test_the_picture_is_drawn(compared: tuple[Path, Turns], tmp_path: Path) -> None:
    draw_comparison(read_comparison(compared[0]), tmp_path / "curves.png")

    assert (tmp_path / "curves.png").read_bytes().startswith(b"\x89PNG")


def comparison(**latencies: list[float | None]) -> Comparison:
    """Each program takes a second of its search's clock."""
    sessions = {
        name.replace("_", ":"): {
            "latencies": values,
            "clock": [float(i + 1) for i in range(len(values))],
            "spent": dict.fromkeys(PARTS, 1.0),
        }
        for name, values in latencies.items()
    }
    group = {"task": "t", "desc": "d", "seed": 0, "sessions": sessions}
    return Comparison({"contenders": list(sessions), "groups": [group]})


def test_the_heaviest_tasks_of_each_network_are_chosen() -> None:
    def task(name: str, flop: float, **weights: int) -> Any:
        return SimpleNamespace(id=name, weights=weights, flop=flop)

    tasks = [
        task("a", 1, x=2),
        task("b", 1, x=1, y=9),
        task("c", 5, x=1),
        task("d", 2, y=1),
        task("e", 1, y=1),
    ]

    assert [each.id for each in largest(tasks, 2)] == ["c", "a", "b", "d"]
    assert [each.id for each in largest(tasks, 1)] == ["c", "b"]
    assert [each.id for each in largest(tasks, 0)] == ["c", "a", "b", "d", "e"]


def test_a_model_is_held_against_the_last_latency_of_tvms_own() -> None:
    (against,) = comparison(tlp_1=[3.0, 1.0, 0.5], xgb_1=[None, 4.0, 2.0, 1.0, 1.0]).against_baseline()

    assert against.latency == pytest.approx(0.5)
    assert (against.reached, against.runs) == (1, 1)
    assert against.sooner == pytest.approx(4 / 2)
    assert against.fewer == pytest.approx(4 / 2)


def test_what_the_fastest_programs_took_side_by_side_counts_in_the_end() -> None:
    both = comparison(tlp_1=[3.0, 1.0], xgb_1=[4.0, 1.0])
    sessions = both.content["groups"][0]["sessions"]
    sessions["tlp:1"]["last"], sessions["xgb:1"]["last"] = 1.2, 0.8

    (against,) = both.against_baseline()

    assert against.latency == against.slowest == pytest.approx(1.5)
    assert against.reached == 1  # in its own turns
    assert against.slowest_found == pytest.approx(1.0)


def test_the_slowest_task_is_that_of_all_its_seeds() -> None:
    seeds = [comparison(tlp_1=[last], xgb_1=[1.0]).content["groups"][0] for last in (2.0, 0.5, 1.5)]
    for seed, (group, task) in enumerate(zip(seeds, ("t", "t", "u"), strict=True)):
        group.update(seed=seed, task=task)

    (against,) = Comparison({"contenders": ["tlp:1", "xgb:1"], "groups": seeds}).against_baseline()

    assert against.slowest == pytest.approx(2.0)
    assert against.slowest_task == pytest.approx(1.5)


def test_a_model_that_never_gets_there_is_counted_as_such() -> None:
    (against,) = comparison(tlp_1=[3.0, 2.0], xgb_1=[1.0, 4.0]).against_baseline()

    assert against.latency == against.slowest == pytest.approx(2.0)
    assert (against.reached, against.runs) == (0, 1)
    assert np.isnan(against.sooner)
    assert against.sooner_all == pytest.approx(1 / 2)  # both ended after two seconds


def test_an_unmatched_search_counts_until_the_longer_one_ended() -> None:
    (longer,) = comparison(tlp_1=[3.0, 2.0, 2.0, 2.0], xgb_1=[1.0, 4.0]).against_baseline()
    (shorter,) = comparison(tlp_1=[3.0], xgb_1=[4.0, 1.0, 4.0]).against_baseline()

    assert longer.sooner_all == pytest.approx(1 / 4)
    assert shorter.sooner_all == pytest.approx(2 / 3)


def test_a_search_against_itself_is_1_exactly() -> None:
    for kept in ("ansor", "metaschedule"):
        content = read_comparison(ROOT / "docs" / "results" / "searches" / kept).content
        for group in content["groups"]:
            base = next(entry for name, entry in group["sessions"].items() if name.startswith("xgb:"))
            group["sessions"] = {"xgb:1": base, "twin:1": base}
        (twin,) = Comparison({**content, "contenders": ["xgb:1", "twin:1"]}).against_baseline()

        assert twin.reached == twin.runs == len(content["groups"])
        assert (twin.sooner, twin.sooner_all, twin.fewer, twin.latency) == (1.0, 1.0, 1.0, 1.0)
        assert twin.sooner_all_interval == twin.latency_interval == Interval(1.0, 1.0)


def test_shares_of_matched_searches_end_below_1_where_one_never_did(tmp_path: Path) -> None:
    groups = [
        comparison(tlp_1=best, xgb_1=[4.0, 1.0, 1.0]).content["groups"][0] for best in ([1.0], [2.0] * 8)
    ]
    for seed, group in enumerate(groups):
        group["seed"] = seed
    both = Comparison({"contenders": ["tlp:1", "xgb:1"], "groups": groups})

    assert matched_shares(both) == {"tlp:1": ([0.5, 0.5, 4.0], [0.0, 0.5, 0.5])}

    draw_matched({"both": both}, tmp_path / "matched.png")
    assert (tmp_path / "matched.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize("text", ["tpl", "xgb:0", "xgb:x", "xgb:1:2:3", ""])
def test_a_model_that_is_none_is_refused(text: str) -> None:
    with pytest.raises(ComparisonError, match="expected one of tlp, tlp-online, tlp-top, xgb, random"):
        contender(text)


@pytest.mark.parametrize(
    "text", ["", "{}", json.dumps({"format": "tlp-tvm-comparison", "format_version": 9})]
)
def test_a_folder_without_a_comparison_is_refused(tmp_path: Path, text: str) -> None:
    if text:
        (tmp_path / "comparison.json").write_text(text)
    with pytest.raises(ComparisonError, match="expected"):
        read_comparison(tmp_path)
