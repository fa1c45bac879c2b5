"""One search of one task under one model, round by round, with a clock of its own."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tlp_tvm.ansor.cost_model import TLPCostModel
from tlp_tvm.ansor.locate import load_tvm
from tlp_tvm.ansor.measure import MeasuringPool
from tlp_tvm.ansor.policy import BATCH, ChoosingPolicy
from tlp_tvm.comparison.settings import CompareSettings, Contender
from tlp_tvm.latency import latency_of
from tlp_tvm.model.scoring import platform_or_mean

PARTS = ("search", "score", "learn", "compile", "run")
"""Where the time goes: choosing programs but for scoring them, scoring, learning, compiling, running."""

_NEVER = 2**31 - 1


class Session:
    """A search that can be left after each round and gone on with.

    Attributes:
        contender: whose search it is.
        latencies: seconds of each measured program, in order; infinity where it failed.
        clock: seconds of this session's own time, at each of them.
        spent: seconds by `PARTS`.
        done: whether it has measured all it may, or finds no more programs.
    """

    def __init__(
        self, contender: Contender, task: Any, seed: int, settings: CompareSettings, scorer: Any
    ) -> None:
        """Set up the search.

        Args:
            contender: whose search it is.
            task: `auto_scheduler.SearchTask`.
            seed: of the search, any non-negative integer.
            settings: of the comparison.
            scorer: the loaded model of those of "tlp".
        """
        self.contender = contender
        self.latencies: list[float] = []
        self.clock: list[float] = []
        self.spent = dict.fromkeys(PARTS, 0.0)
        self.done = False
        self._trials = settings.trials
        self._time = 0.0
        self._random = np.random.default_rng(seed)
        self._searcher = _searcher(contender, task, seed, scorer, self.spent)

    @property
    def best(self) -> float:
        """Lowest latency so far in seconds; infinity while there is none."""
        return min(self.latencies, default=float("inf"))

    def advance(self, pool: MeasuringPool) -> None:
        """One round: search, measure, learn. Nothing else may use the pool meanwhile.

        Args:
            pool: open; its `on_result` is `note`.
        """
        before = dict(pool.spent)
        inside = self.spent["score"] + self.spent["learn"]
        self._began = time.perf_counter()
        measured = len(self.latencies)
        count = min(self.contender.per_round, self._trials - measured)
        state = np.random.get_state()  # noqa: NPY002 - TVM's models draw from NumPy's global generator
        np.random.seed(self._random.integers(2**31))  # noqa: NPY002
        try:
            self._searcher(count)
        finally:
            np.random.set_state(state)  # noqa: NPY002
        seconds = time.perf_counter() - self._began
        self._time += seconds
        for part in ("compile", "run"):
            self.spent[part] += pool.spent[part] - before[part]
            seconds -= pool.spent[part] - before[part]
        self.spent["search"] += seconds - (self.spent["score"] + self.spent["learn"] - inside)
        self.done = len(self.latencies) >= self._trials or len(self.latencies) == measured

    def note(self, result: Any) -> None:
        """A program of this session was measured.

        Args:
            result: `auto_scheduler.MeasureResult`.
        """
        self.latencies.append(latency_of(result))
        self.clock.append(self._time + time.perf_counter() - self._began)


def _searcher(
    contender: Contender, task: Any, seed: int, scorer: Any, spent: dict[str, float]
) -> Callable[[int], Any]:
    """A search of a task: a function that takes how many programs to measure in a round, and does it."""
    auto_scheduler = load_tvm().auto_scheduler
    seed += 1  # TVM replaces a seed of 0 by a random one
    builder = auto_scheduler.LocalBuilder(n_parallel=BATCH // 2)  # TVM measures twice as many at a time
    runner = auto_scheduler.LocalRunner()
    if contender.model == "tlp-online":
        model = _TimedTLP(scorer, platform_or_mean(scorer, str(task.target)), online=True)
        model.spent = spent
        options = auto_scheduler.TuningOptions(builder=builder, runner=runner, verbose=0)
        population = contender.population
        return ChoosingPolicy(
            task, model, options, population=population, seed=seed, diverse=True
        ).continue_search_one_round
    policy = auto_scheduler.SketchPolicy(
        task,
        _timed_model(_model_of(contender, seed - 1, scorer, str(task.target)), spent),
        params={"evolutionary_search_population": contender.population},
        seed=seed,
        verbose=0,
    )
    # TVM gives up after 150 failures in a row; this search just goes on.
    measurer = auto_scheduler.measure.ProgramMeasurer(builder, runner, [], 0, max_continuous_error=_NEVER)
    return lambda count: policy.continue_search_one_round(count, measurer)


def _model_of(contender: Contender, seed: int, scorer: Any, target: str) -> Any:
    auto_scheduler = load_tvm().auto_scheduler
    if contender.model == "random":
        return auto_scheduler.RandomModel()
    if contender.model == "xgb":
        # As TVM's own task scheduler does: random programs in the first round, the model from then on.
        return auto_scheduler.XGBModel(num_warmup_sample=contender.per_round, seed=seed, verbose_eval=0)
    platform = platform_or_mean(scorer, target)
    return TLPCostModel(scorer, platform, online=contender.model == "tlp-top")


class _TimedTLP(TLPCostModel):
    """Our model with a stop-watch."""

    spent: dict[str, float]

    def update(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        _timed("learn", super().update, self.spent)(inputs, results)

    def scores(self, task: Any, states: Any) -> Any:
        return _timed("score", super().scores, self.spent)(task, states)


def _timed(part: str, function: Any, spent: dict[str, float]) -> Any:
    """The same function with a stop-watch."""

    def call(*arguments: Any) -> Any:
        began = time.perf_counter()
        try:
            return function(*arguments)
        finally:
            spent[part] += time.perf_counter() - began

    return call


def _timed_model(model: Any, spent: dict[str, float]) -> Any:
    """The same model with a stop-watch."""
    load_tvm()
    from tvm.auto_scheduler.cost_model.cost_model import PythonBasedModel

    class Timed(PythonBasedModel):  # type: ignore[misc]
        def update(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
            _timed("learn", model.update, spent)(inputs, results)

        def predict(self, task: Any, states: Any) -> Any:
            return _timed("score", model.predict, spent)(task, states)

    return Timed()
