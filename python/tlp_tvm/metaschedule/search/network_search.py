"""The search of a network: one for each task, and what to spend programs on."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tlp_tvm.breeding.spending import spend
from tlp_tvm.latency import latency_of_costs
from tlp_tvm.measuring.pool import FAILED_COST, reason_of
from tlp_tvm.measuring.stopping import StopOnInterrupt
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.measuring.on_disk import bring_to_disk
from tlp_tvm.metaschedule.measuring.pools import Measurable, TracePool
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.metaschedule.reading.records import read_batch
from tlp_tvm.metaschedule.search.cost_model import TLPCostModel
from tlp_tvm.metaschedule.search.trace_search import TraceSearch
from tlp_tvm.tuning.history import History
from tlp_tvm.tuning.tune_progress import Progress
from tlp_tvm.tuning.tune_settings import TuneSettings, measures_per_round


class Recorder:
    """Measures programs, each of which is in the database and on the disk before the next one runs."""

    def __init__(self, pool: TracePool, database: Any, files: Sequence[Path], progress: Progress) -> None:
        """Prepare.

        Args:
            pool: that measures.
            database: `ms.database.JSONDatabase`.
            files: of the database.
            progress: told of each program.
        """
        self._pool, self._database, self._files, self._progress = pool, database, files, progress

    def measure(self, place: int, task: TraceTask, schedules: list[Any]) -> list[float]:
        """Measure programs of a task.

        Args:
            place: of the task in its network.
            task: whose programs.
            schedules: `tvm.s_tir.Schedule`s.

        Returns:
            Seconds of each; infinity where it failed.
        """
        load_tvm()
        from tvm.s_tir import meta_schedule as ms
        from tvm.s_tir.meta_schedule.arg_info import ArgInfo

        programs = [Measurable(task.id, each.mod, task.target) for each in schedules]
        workload = self._database.commit_workload(task.module)
        latencies = [float("inf")] * len(programs)
        for i, outcome in self._pool.run_all(self._pool.build(programs), programs):
            costs = [] if outcome.error else list(outcome.costs)
            arguments = ArgInfo.from_entry_func(schedules[i].mod, remove_preproc=True)
            found = (schedules[i].trace, workload, costs or [FAILED_COST], task.target, arguments)
            self._database.commit_tuning_record(ms.database.TuningRecord(*found))
            bring_to_disk(self._files, self._progress)
            if costs:
                latencies[i] = latency_of_costs(costs)
                self._progress.ran(place, latencies[i])
            self._progress.measured(reason_of(outcome))
        return latencies


def search(
    tasks: Sequence[TraceTask],
    model: TLPCostModel,
    recorder: Recorder,
    log: Path,
    before: History,
    settings: TuneSettings,
    *,
    stop: StopOnInterrupt,
    on_round: Callable[[int], None],
) -> None:
    """Measure programs where they save the network most.

    Args:
        tasks: of the network.
        model: that scores.
        recorder: that measures.
        log: records; what it holds now is not measured again.
        before: the same, read.
        settings: of the tuning.
        stop: asked between rounds.
        on_round: called with the task's index as its round begins.

    Raises:
        Stopped: `stop` was asked to.
    """

    def measure_of(place: int, task: TraceTask) -> Callable[[list[Any]], list[float]]:
        return lambda schedules: recorder.measure(place, task, schedules)

    searches = [
        TraceSearch(
            task,
            model,
            measure_of(i, task),
            population=settings.population,
            seed=(settings.seed * 1009 + len(before) * 31 + i) % (2**30) + 1,
            diverse=settings.choose == "diverse",
        )
        for i, task in enumerate(tasks)
    ]
    if len(before):
        batch = read_batch([log])
        for each in searches:
            each.know(batch)

    def begin(task: int) -> None:
        stop.check()
        on_round(task)

    weights = [int(task.task.weight) for task in tasks]
    per_round = settings.measures_per_round or measures_per_round(settings.trials, len(tasks))
    spend(searches, weights, settings.trials - len(before), per_round, begin, settings.minutes > 0)
