"""Ansor's searches, as a comparison sees them (`framework.Framework`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO, Any

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring.pools import StatePool
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.policy import ChoosingPolicy
from tlp_tvm.breeding.rounds import BATCH
from tlp_tvm.comparison.stopwatch import timed
from tlp_tvm.framework import Contender
from tlp_tvm.latency import latency_of
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.model.scoring import platform_or_mean
from tlp_tvm.planned_task import PlannedTask

_NEVER = 2**31 - 1


def noting_pool(
    how: MeasureSettings,
    output: IO[Any],
    note: Callable[[float, Any], None],
    check: Callable[[], None],
) -> StatePool:
    """What measures programs of searches that take turns; see `Framework.measuring`."""

    def on_result(program: Any, result: Any, _reason: str) -> None:
        note(latency_of(result), program)

    return StatePool(how, output, on_result, check)


def search_of(
    contender: Contender,
    task: PlannedTask,
    seed: int,
    scorer: Any,
    spent: dict[str, float],
) -> Callable[[int], Any]:
    """A search of a task; see `Framework.searcher`."""
    auto_scheduler = load_tvm().auto_scheduler
    seed += 1  # TVM replaces a seed of 0 by a random one
    builder = auto_scheduler.LocalBuilder(n_parallel=BATCH // 2)  # TVM measures twice as many at a time
    runner = auto_scheduler.LocalRunner()
    if contender.model.startswith("tlp"):
        online = contender.model != "tlp"
        model = _TimedTLP(scorer, platform_or_mean(scorer, str(task.task.target)), online=online)
        model.spent = spent
        policy = ChoosingPolicy(
            task.task,
            model,
            auto_scheduler.TuningOptions(builder=builder, runner=runner, verbose=0),
            population=contender.population,
            seed=seed,
            diverse=contender.model == "tlp-online",
        )
        policy.scores = timed("score", policy.scores, spent)
        return policy.continue_search_one_round
    tvms = auto_scheduler.SketchPolicy(
        task.task,
        _timed_model(_model_of(contender, seed - 1), spent),
        params={"evolutionary_search_population": contender.population},
        seed=seed,
        verbose=0,
    )
    # TVM gives up after 150 failures in a row; this search continues.
    measurer = auto_scheduler.measure.ProgramMeasurer(builder, runner, [], 0, max_continuous_error=_NEVER)
    return lambda count: tvms.continue_search_one_round(count, measurer)


def _model_of(contender: Contender, seed: int) -> Any:
    auto_scheduler = load_tvm().auto_scheduler
    if contender.model == "random":
        return auto_scheduler.RandomModel()
    # As TVM's own task scheduler does: random programs in the first round, the model from then on.
    return auto_scheduler.XGBModel(num_warmup_sample=contender.per_round, seed=seed, verbose_eval=0)


class _TimedTLP(TLPCostModel):
    """Our model with a stop-watch."""

    spent: dict[str, float]

    def update(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        timed("learn", super().update, self.spent)(inputs, results)


def _timed_model(model: Any, spent: dict[str, float]) -> Any:
    """The same model with a stop-watch."""
    load_tvm()
    from tvm.auto_scheduler.cost_model.cost_model import PythonBasedModel

    class Timed(PythonBasedModel):  # type: ignore[misc]
        def update(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
            timed("learn", model.update, spent)(inputs, results)

        def predict(self, task: Any, states: Any) -> Any:
            return timed("score", model.predict, spent)(task, states)

    return Timed()
