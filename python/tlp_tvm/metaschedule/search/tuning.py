"""Tuning a network with MetaSchedule: tasks, TVM's own search, and the network before and after.

The run's folder is a working folder of MetaSchedule too: its database is the only memory of what was
measured. Beside it are the run.json, curve and library that a tuning with Ansor leaves (`tuning.run_folder`).
"""

from __future__ import annotations

import collections
import dataclasses
import logging
import platform as machine
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

import tlp_tvm
from tlp_tvm.adapting.search_scores import load_scorer, model_name
from tlp_tvm.ansor.search.tune_inputs import model_source
from tlp_tvm.logs import mend_log
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.measuring.native_messages import native_messages_to
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.measuring.stopping import StopOnInterrupt, Stopped
from tlp_tvm.metaschedule.loading.locate import load_tvm, tvm_info
from tlp_tvm.metaschedule.loading.targets import cores_of, flags_of, target_of
from tlp_tvm.metaschedule.networks import end_to_end
from tlp_tvm.metaschedule.networks.builtin import canonical_name, network_from, tasks_of
from tlp_tvm.metaschedule.networks.library import save_tuned
from tlp_tvm.metaschedule.networks.tasks import TraceTask
from tlp_tvm.metaschedule.reading.records import RECORDS, read_history
from tlp_tvm.metaschedule.search.measure import TracePool
from tlp_tvm.model.scoring import platform_or_mean
from tlp_tvm.pretrained import DEFAULT_MODELS
from tlp_tvm.records.source import WORKLOADS
from tlp_tvm.tuning.curve import draw_curve
from tlp_tvm.tuning.history import History
from tlp_tvm.tuning.run_folder import RunFolder, read_run
from tlp_tvm.tuning.tune_observer import Steps, TuneObserver
from tlp_tvm.tuning.tune_settings import MOST_PER_ROUND, TRACE_POPULATION, TaskResult, TuneResult
from tlp_tvm.tuning.turns import EndToEnd

TVMS_MODELS = ("random", "xgb", "mlp")
"""Cost models of MetaSchedule's own, by name."""


@dataclass(frozen=True)
class TraceTuneSettings:
    """What to tune and how.

    Attributes:
        network: as `networks.network_from` takes it.
        out: folder of the run; an existing run is resumed.
        model: what `tlp_tvm.load_model` takes, or one of `TVMS_MODELS`; empty for the one that the run began
            with, or else that of `DEFAULT_MODELS`.
        target: TVM's target; empty for this machine's CPU.
        trials: programs to measure in all.
        platform: of the model; None for the one that the target names, or else "mean".
        seed: of the search.
        measures_per_round: programs of one task measured in a row; 0 chooses.
        population: programs that breed in a round of the evolutionary search.
        turns: timings of the whole network, untuned and tuned each.
        measure: how to compile and time; `threads` 0 takes the cores that the target names.
    """

    network: str
    out: Path
    model: str
    target: str = ""
    trials: int = 200
    platform: str | None = None
    seed: int = 0
    measures_per_round: int = 0
    population: int = TRACE_POPULATION
    turns: int = 9
    measure: MeasureSettings = field(default_factory=lambda: MeasureSettings(threads=0))


def tune_network(settings: TraceTuneSettings, observer: TuneObserver | None = None) -> TuneResult:
    """Tune a network, or resume a stopped tuning.

    Args:
        settings: what to tune and how.
        observer: is told how it goes.

    Returns:
        The result; `run.json` in the folder of the run has the same.

    Raises:
        TuningError: no such target, the folder holds another run, or it was stopped.
        NetworkError: no such network.
        ModelFileError: the model cannot be read, or is of another framework.
    """
    return _Tuning(settings, observer or TuneObserver()).run()


class _Tuning(Steps):
    """One call of `tune_network`, step by step."""

    def __init__(self, settings: TraceTuneSettings, observer: TuneObserver) -> None:
        super().__init__(observer)
        self.settings = settings
        self.failures: collections.Counter[str] = collections.Counter()

    def run(self) -> TuneResult:
        settings = self.settings
        self.target = target_of(settings.target)
        self.network = canonical_name(settings.network)
        module, parameters = network_from(settings.network)
        named = settings.model or str(
            read_run(settings.out).get("model_source", DEFAULT_MODELS["metaschedule"])
        )
        self.model, self.source, self.platform = _model(named, settings.platform, self.target)
        folder = RunFolder(settings.out, RECORDS)
        before = folder.begin(self._description())
        for file in (folder.log, settings.out / WORKLOADS):
            mend_log(file)
        bound = _bound(module, parameters)
        with self.step("tasks", f"splitting {self.network} into tasks"):
            tasks = [TraceTask(task) for task in tasks_of(bound, self.target)]
        planned = [_planned(task) for task in tasks]
        folder.write({**before, **self._description(), "planned": planned})
        keys = [task.workload_key for task in tasks]
        known = read_history(folder.log, keys)
        self._search(tasks, known, folder)
        history = read_history(folder.log, keys)
        inputs = end_to_end.random_inputs(bound)
        with self.step("build", "building the network, without records and from them"):
            untuned = end_to_end.compiled(module, parameters, self.target)
            tuned = end_to_end.compiled(module, parameters, self.target, _database(settings.out))
        with self.step("compare", "timing the network, untuned and tuned in turns"):
            threads = settings.measure.threads or cores_of(self.target)
            ended = end_to_end.compare(untuned, tuned, inputs, self.target, settings.turns, threads)
            outputs = end_to_end.run_once(tuned, inputs, self.target)
        library = save_tuned(tuned, self.target, folder.path, self.network, inputs, outputs)
        return self._finish(folder, tasks, history, len(known), ended, library)

    def _search(self, tasks: Sequence[TraceTask], known: History, folder: RunFolder) -> None:
        """TVM's own tuning of all tasks."""
        settings = self.settings
        self.observer.planned(len(tasks), settings.trials, len(known))
        if len(known) >= settings.trials:
            return
        from tvm.s_tir import meta_schedule as ms
        from tvm.s_tir.meta_schedule.relax_integration import extracted_tasks_to_tune_contexts

        from tlp_tvm.metaschedule.search.measure_for_tvm import OnRound, builder_and_runner

        with _without_nameless_handlers():
            contexts, weights = extracted_tasks_to_tune_contexts(
                [task.task for task in tasks],
                str(settings.out),
                strategy=ms.search_strategy.EvolutionarySearch(population_size=settings.population),
                num_threads=cores_of(self.target),
                seed=settings.seed,
            )
        best = known.best
        measured = len(known)

        def on_program(reason: str) -> None:
            nonlocal measured
            measured += 1
            if reason:
                self.failures[reason] += 1
            self.observer.measured(measured, float(best @ np.asarray(weights)), self.failures)

        def on_round(task: int, latencies: list[float]) -> None:
            best[task] = min([best[task], *latencies])

        stop = StopOnInterrupt()
        threads = settings.measure.threads or cores_of(self.target)
        how = dataclasses.replace(settings.measure, threads=threads)
        began = time.time()
        with ExitStack() as stack:
            output = stack.enter_context(folder.tvm_log.open("ab"))
            stack.enter_context(native_messages_to(output))
            stack.enter_context(stop)
            pool = stack.enter_context(TracePool(how, output, stop.check))
            builder, runner = builder_and_runner(pool, on_program)
            callbacks = ms.measure_callback
            try:
                ms.tune_tasks(
                    tasks=contexts,
                    task_weights=weights,
                    work_dir=str(settings.out),
                    max_trials_global=settings.trials - len(known),
                    num_trials_per_iter=settings.measures_per_round or MOST_PER_ROUND,
                    builder=builder,
                    runner=runner,
                    database=_database(settings.out),
                    cost_model=self.model,
                    measure_callbacks=[
                        callbacks.AddToDatabase(),
                        callbacks.UpdateCostModel(),
                        OnRound(on_round),
                    ],
                )
            except Exception as error:
                if stop.requested:
                    raise Stopped(
                        f"stopped; {settings.out} holds what was measured, and the same command resumes"
                    ) from error
                raise
        self.seconds["measure"] += pool.seconds
        self.seconds["search"] += time.time() - began - pool.seconds

    def _finish(
        self,
        folder: RunFolder,
        tasks: Sequence[TraceTask],
        history: History,
        reused: int,
        ended: EndToEnd,
        library: Path,
    ) -> TuneResult:
        weights = [int(task.task.weight) for task in tasks]
        columns = (history.counts, history.failures, history.first, history.best)
        results = [
            TaskResult(
                **_planned(task),
                trials=int(trials),
                failures=int(failures),
                first=float(first),
                best=float(best),
                chosen=bool(np.isfinite(best)),
            )
            for task, trials, failures, first, best in zip(tasks, *columns, strict=True)
        ]
        curve = folder.curve if np.isfinite(history.latencies).any() else None
        if curve is not None:
            draw_curve(history, weights, f"{self.network}, {self._name}, seed {self.settings.seed}", curve)
        ran = [task.best * task.weight for task in results if np.isfinite(task.best)]
        result = TuneResult(
            network=self.network,
            target=flags_of(self.target),
            model=self._name,
            platform=self.platform,
            trials=len(history),
            reused=reused,
            warm=0,
            failures=dict(self.failures.most_common()),
            tasks=results,
            estimate=sum(ran) if ran else np.inf,
            end_to_end=ended,
            seconds=dict(self.seconds),
            log=folder.log,
            best=folder.log,
            library=library,
            no_library="",
            curve=curve,
            report=folder.report,
        )
        folder.write({**self._description(), **result.to_dict()})
        return result

    @property
    def _name(self) -> str:
        return self.source if self.source in TVMS_MODELS else model_name(self.model.model)

    def _description(self) -> dict[str, Any]:
        settings = self.settings
        return {
            "framework": "metaschedule",
            "network": self.network,
            "target": flags_of(self.target),
            "model": self._name,
            "model_source": self.source,
            "platform": self.platform,
            "seed": settings.seed,
            "online": True,
            "measure": dataclasses.asdict(settings.measure),
            "versions": {
                "tlp_tvm": tlp_tvm.__version__,
                "tvm": tvm_info().version,
                "python": machine.python_version(),
            },
            "cpu": this_cpu().model,
        }


def _model(named: str, platform: str | None, target: Any) -> tuple[Any, str, str]:
    """The cost model, by what it can be loaded again, and the head that scores."""
    load_tvm()
    from tvm.s_tir import meta_schedule as ms

    if named in TVMS_MODELS:
        return ms.cost_model.CostModel.create(named), named, ""
    from tlp_tvm.metaschedule.search.cost_model import TLPCostModel

    scorer = load_scorer(named)
    head = platform or platform_or_mean(scorer, flags_of(target))
    return TLPCostModel(scorer, head, online=True), model_source(named), head


def _planned(task: TraceTask) -> dict[str, Any]:
    """A task for run.json, before anything is measured."""
    return {
        "name": task.desc,
        "workload_key": task.workload_key,
        "weight": int(task.task.weight),
        "flops": task.flop,
    }


@contextmanager
def _without_nameless_handlers() -> Iterator[None]:
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


def _database(out: Path) -> Any:
    load_tvm()
    from tvm.s_tir import meta_schedule as ms

    return ms.database.JSONDatabase(str(out / WORKLOADS), str(out / RECORDS))


def _bound(module: Any, parameters: dict[str, Any]) -> Any:
    load_tvm()
    from tvm.relax.transform import BindParams

    return BindParams("main", parameters)(module)
