"""MetaSchedule's searches, as a comparison sees them (`framework.Framework`)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import IO, Any

from tlp_tvm.comparison.stopwatch import timed
from tlp_tvm.framework import Contender
from tlp_tvm.latency import latency_of_costs
from tlp_tvm.measuring.pool import FAILED_COST, MeasureSettings
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.targets import cores_of, flags_of
from tlp_tvm.metaschedule.measuring.pools import Measurable, TracePool
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.metaschedule.search.tvms_search import tvms_model
from tlp_tvm.model.scoring import platform_or_mean


class NotingPool(TracePool):
    """A pool that measures whole rounds, and tells of each program."""

    def __init__(
        self,
        how: MeasureSettings,
        output: IO[Any],
        note: Callable[[float, Any], None],
        check: Callable[[], None],
    ) -> None:
        super().__init__(how, output, check)
        self._note = note

    def measure(self, programs: Sequence[Measurable]) -> list[tuple[float, ...]]:
        """Compile and time programs.

        Args:
            programs: of one task.

        Returns:
            The costs of each, seconds; none where it failed.
        """
        costs: list[tuple[float, ...]] = [()] * len(programs)
        for i, outcome in self.run_all(self.build(programs), programs):
            costs[i] = () if outcome.error else tuple(outcome.costs)
            self._note(latency_of_costs(costs[i]) if costs[i] else float("inf"), programs[i])
        return costs


def search_of(
    contender: Contender,
    task: TraceTask,
    seed: int,
    trials: int,
    scorer: Any,
    pool: NotingPool,
    spent: dict[str, float],
) -> Callable[[int], None]:
    """A search of a task; see `Framework.searcher`."""
    load_tvm()
    if contender.model.startswith("tlp"):
        return _our_search(contender, task, seed, scorer, pool, spent)
    from tvm.s_tir import meta_schedule as ms

    context = ms.TuneContext(
        mod=task.module,
        target=task.target,
        space_generator="post-order-apply",
        search_strategy=ms.search_strategy.EvolutionarySearch(population_size=contender.population),
        task_name=task.id,
        rand_state=seed + 1,
        num_threads=cores_of(task.target),
    )
    model = _timed_model(_model_of(contender, task.target), spent)
    database = ms.database.MemoryDatabase()
    workload = database.commit_workload(task.module)
    context.pre_tuning(trials, contender.per_round, context.generate_design_space(), database, model)

    def one_round(_count: int) -> None:
        candidates = context.generate_measure_candidates()
        if not candidates:
            return
        programs = [Measurable(task.id, each.sch.mod, task.target) for each in candidates]
        costs = pool.measure(programs)
        results = [ms.runner.RunnerResult(list(each) or None, None if each else "failed") for each in costs]
        context.search_strategy.notify_runner_results(candidates, results)
        for candidate, each in zip(candidates, costs, strict=True):
            record = ms.database.TuningRecord(
                candidate.sch.trace,
                workload,
                list(each) or [FAILED_COST],
                task.target,
                candidate.args_info,
            )
            database.commit_tuning_record(record)
        model.update(context, candidates, results)

    return one_round


def _our_search(
    contender: Contender,
    task: TraceTask,
    seed: int,
    scorer: Any,
    pool: NotingPool,
    spent: dict[str, float],
) -> Callable[[int], Any]:
    from tlp_tvm.metaschedule.search.cost_model import TLPCostModel
    from tlp_tvm.metaschedule.search.trace_search import TraceSearch

    def measure(schedules: list[Any]) -> list[float]:
        costs = pool.measure([Measurable(task.id, each.mod, task.target) for each in schedules])
        return [latency_of_costs(each) if each else float("inf") for each in costs]

    class Timed(TraceSearch):
        def _learn(self, herd: Any, latencies: Sequence[float]) -> None:
            timed("learn", super()._learn, spent)(herd, latencies)

    online = contender.model == "tlp-online"
    model = TLPCostModel(scorer, platform_or_mean(scorer, flags_of(task.target)), online=online)
    search = Timed(task, model, measure, population=contender.population, seed=seed + 1, diverse=online)
    search.scores = timed("score", search.scores, spent)
    return search.one_round


def _model_of(contender: Contender, target: Any) -> Any:
    from tvm.s_tir import meta_schedule as ms

    if contender.model == "xgb":
        # TVM's default of 100 would leave two rounds of 64 to chance; this is one, as in Ansor's scheduler.
        return ms.cost_model.XGBModel(
            num_warmup_samples=contender.per_round, num_tuning_cores=cores_of(target)
        )
    return tvms_model(contender.model)


def _timed_model(model: Any, spent: dict[str, float]) -> Any:
    """The same model with a stop-watch."""
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.cost_model import PyCostModel

    @derived_object
    class Timed(PyCostModel):  # type: ignore[misc]
        def update(self, context: Any, candidates: Any, results: Any) -> None:
            timed("learn", model.update, spent)(context, candidates, results)

        def predict(self, context: Any, candidates: Any) -> Any:
            return timed("score", model.predict, spent)(context, candidates)

        def load(self, _path: str) -> None:
            """Nothing to load."""

        def save(self, _path: str) -> None:
            """Nothing to save."""

    return Timed()
