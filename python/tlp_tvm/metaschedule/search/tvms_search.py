"""TVM's own search and scheduler of tasks, for its own cost models."""

from __future__ import annotations

import logging
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.targets import cores_of
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.tuning.tune_observer import TuneObserver
from tlp_tvm.tuning.tune_progress import Progress
from tlp_tvm.tuning.tune_settings import MOST_PER_ROUND, TuneSettings


@dataclass(frozen=True)
class TvmsSearch:
    """How TVM searches.

    Attributes:
        settings: of the tuning.
        target: of TVM.
        trials: programs to measure.
        observer: told of rounds.
    """

    settings: TuneSettings
    target: Any
    trials: int
    observer: TuneObserver

    def run(
        self,
        tasks: Sequence[TraceTask],
        model: Any,
        pool: Any,
        database: Any,
        files: Sequence[Path],
        progress: Progress,
    ) -> None:
        """Measure programs.

        Args:
            tasks: of the network.
            model: `ms.CostModel`.
            pool: that measures.
            database: `ms.database.JSONDatabase`.
            files: of the database, in the run's folder, where TVM leaves its own messages too.
            progress: told of each program.
        """
        load_tvm()
        from tvm.s_tir import meta_schedule as ms
        from tvm.s_tir.meta_schedule.relax_integration import extracted_tasks_to_tune_contexts

        from tlp_tvm.metaschedule.measuring.for_tvm import OnRound, Synced, builder_and_runner

        builder, runner = builder_and_runner(pool, progress.measured)

        def on_round(task: int, latencies: list[float]) -> None:
            for latency in latencies:
                progress.ran(task, latency)
            self.observer.round(tasks[task].desc)

        callbacks = ms.measure_callback
        logs = str(files[0].parent)
        with without_nameless_handlers():
            contexts, weights = extracted_tasks_to_tune_contexts(
                [task.task for task in tasks],
                logs,
                strategy=ms.search_strategy.EvolutionarySearch(population_size=self.settings.population),
                num_threads=cores_of(self.target),
                seed=self.settings.seed,
            )
        ms.tune_tasks(
            tasks=contexts,
            task_weights=weights,
            work_dir=logs,
            max_trials_global=self.trials,
            num_trials_per_iter=self.settings.measures_per_round or MOST_PER_ROUND,
            builder=builder,
            runner=runner,
            database=database,
            cost_model=model,
            measure_callbacks=[
                callbacks.AddToDatabase(),
                Synced(files, progress),
                callbacks.UpdateCostModel(),
                OnRound(on_round),
            ],
        )


def tvms_model(name: str) -> Any:
    """A cost model of TVM's own, made to work where it does not.

    Args:
        name: as TVM has it: "xgb", "mlp", "random".
    """
    if name == "mlp":
        from tlp_tvm.metaschedule.search.tvms_mlp import working_mlp

        return working_mlp()
    load_tvm()
    from tvm.s_tir import meta_schedule as ms

    return ms.cost_model.CostModel.create(name)


@contextmanager
def without_nameless_handlers() -> Iterator[None]:
    """TVM asks every handler of its logger for its name, and stops at one that has none."""
    logger = logging.getLogger("tvm.s_tir.meta_schedule")
    nameless = [handler for handler in logger.handlers if handler.get_name() is None]
    for handler in nameless:
        logger.removeHandler(handler)
    try:
        yield
    finally:
        for handler in nameless:
            logger.addHandler(handler)
