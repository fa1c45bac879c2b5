"""Tune a whole network: tasks, search in TVM's loop with a TLP model, and the network before and after."""

from __future__ import annotations

import collections
import dataclasses
import platform as machine
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import tlp_tvm
from tlp_tvm.ansor.cost_model import TLPCostModel
from tlp_tvm.ansor.cpu import this_cpu
from tlp_tvm.ansor.curve import draw_curve
from tlp_tvm.ansor.end_to_end import EndToEnd, build_tuned, build_untuned, compare, random_inputs
from tlp_tvm.ansor.history import History, mend_log, read_history
from tlp_tvm.ansor.layout_rewrite import keep_layout_where_needed
from tlp_tvm.ansor.locate import load_tvm, tvm_info
from tlp_tvm.ansor.measure import MeasuringPool
from tlp_tvm.ansor.native_messages import native_messages_to
from tlp_tvm.ansor.records import read_records
from tlp_tvm.ansor.run_folder import RunFolder
from tlp_tvm.ansor.search import measures_per_round, search
from tlp_tvm.ansor.stopping import StopOnInterrupt, Stopped
from tlp_tvm.ansor.tasks import extract_tasks
from tlp_tvm.ansor.tune_inputs import cores_of, hardware_of, network_and_target, quiet_builds
from tlp_tvm.ansor.tune_observer import TuneObserver
from tlp_tvm.ansor.tune_settings import TaskResult, TuneResult, TuneSettings
from tlp_tvm.errors import TuningError


def tune_network(settings: TuneSettings, observer: TuneObserver | None = None) -> TuneResult:
    """Tune a network, or go on with a tuning that was stopped.

    Args:
        settings: what to tune and how.
        observer: is told how it goes.

    Returns:
        What came of it; `run.json` in the folder of the run says the same.

    Raises:
        TuningError: it cannot start, was stopped, or its result does not build.
        NetworkError: no such network.
        ModelFileError: the model cannot be read.
        RecordError: the log of the run is damaged.
    """
    return _Tuning(settings, observer or TuneObserver()).run()


class _Tuning:
    """One call of `tune_network`, step by step."""

    def __init__(self, settings: TuneSettings, observer: TuneObserver) -> None:
        self.settings = settings
        self.observer = observer
        self.seconds: dict[str, float] = collections.defaultdict(float)
        self.failures: collections.Counter[str] = collections.Counter()

    def run(self) -> TuneResult:
        settings = self.settings
        module, parameters, target = network_and_target(settings.network, settings.target)
        self.cost_model = TLPCostModel(settings.model, settings.platform, online=settings.online)
        folder = RunFolder(settings.out)
        folder.begin(self._description(target))

        with self._step("tasks", "splitting the network into tasks"), quiet_builds():
            hardware = hardware_of(target)
            extracted, weights = extract_tasks((module, parameters), str(target), hardware)
            tasks, kept = keep_layout_where_needed(extracted)
        if settings.trials < len(tasks):
            raise TuningError(
                f"--trials {settings.trials}: expected at least one program for each of the {len(tasks)} "
                f"tasks of {settings.network}; choose --trials {len(tasks)} or more, better {len(tasks) * 16}"
            )
        with self._step("build", "building the network without records"), quiet_builds():
            untuned = build_untuned(module, parameters, target)

        reused = self._search(tasks, weights, folder)
        history = read_history(folder.log, [str(task.workload_key) for task in tasks])
        results = _task_results(tasks, weights, history)
        if all(np.isinf(task.best) for task in results):
            raise TuningError(
                f"{folder.log}: expected programs that run, found none; {_most_common(self.failures)}"
            )
        with self._step("build", "building the network from the records"), quiet_builds():
            keys = {task.workload_key for task in results}
            tuned = self._build_tuned(module, parameters, target, folder.log, kept, keys)
        with self._step("compare", "timing the network, untuned and tuned in turns"):
            inputs = random_inputs(module, parameters)
            ended = compare(untuned, tuned, inputs, target, settings.turns, self._threads(target))
        return self._finish(folder, target, history, results, weights, reused, ended)

    def _search(self, tasks: Sequence[Any], weights: Sequence[int], folder: RunFolder) -> int:
        """Measure what is left to measure; returns how many programs the log had before."""
        settings, keys = self.settings, [str(task.workload_key) for task in tasks]
        mend_log(folder.log)
        before = read_history(folder.log, keys)
        self.observer.planned(len(tasks), settings.trials, len(before))
        if len(before) >= settings.trials:
            return len(before)
        if settings.online:
            self._learn_from(folder.log)
        progress = _Progress(self, folder.log, keys, weights)
        how = dataclasses.replace(settings.measure, threads=self._threads(tasks[0].target))
        stop = StopOnInterrupt()
        began = time.time()
        try:
            with (
                folder.tvm_log.open("ab") as output,
                native_messages_to(output) if settings.hide_messages else nullcontext(),
                stop,
                MeasuringPool(how, output, progress, stop.check) as pool,
            ):
                search(
                    tasks,
                    weights,
                    self.cost_model,
                    folder.log,
                    before,
                    trials=settings.trials,
                    per_round=settings.measures_per_round or measures_per_round(settings.trials, len(tasks)),
                    population=settings.population,
                    seed=settings.seed,
                    stop=stop,
                    on_round=lambda i: self.observer.round(str(tasks[i].desc)),
                )
        except Exception as error:
            if stop.requested or isinstance(self.cost_model.error, KeyboardInterrupt):
                raise Stopped(
                    f"stopped after {progress.trials} of {settings.trials} programs; {folder.log} holds "
                    "them, and the same command goes on from there"
                ) from error
            # Older TVMs turn an error inside a callback into one of their own.
            raise (self.cost_model.error or error) from None
        self.seconds["measure"] += pool.seconds
        self.seconds["search"] += time.time() - began - pool.seconds
        return len(before)

    def _learn_from(self, log: Path) -> None:
        """Teach the cost model what the log holds, as if it had just been measured."""
        if not log.stat().st_size:
            return
        batch = read_records(log)
        embeddings = batch.encode(self.cost_model.model.layout)
        for i, task in enumerate(batch.tasks):
            rows = batch.task_ids == i
            self.cost_model.learn(task.workload_key, task.target, embeddings[rows], batch.latencies[rows])

    def _build_tuned(
        self,
        module: Any,
        parameters: dict[str, Any],
        target: Any,
        log: Path,
        kept: set[str],
        keys: set[str],
    ) -> Any:
        error = load_tvm().TVMError
        try:
            return build_tuned(module, parameters, target, log, kept)
        except error:
            pass  # what can fail for a program that was measured is the rewriting of its weights
        try:
            return build_tuned(module, parameters, target, log, keys)
        except error as failure:
            reason = str(failure).strip().splitlines()[-1]
            raise TuningError(
                f"{log}: expected records that the network can be built from, found: {reason}"
            ) from failure

    def _finish(
        self,
        folder: RunFolder,
        target: Any,
        history: History,
        results: list[TaskResult],
        weights: Sequence[int],
        reused: int,
        ended: EndToEnd,
    ) -> TuneResult:
        settings = self.settings
        model = str(getattr(self.cost_model.model, "name", settings.model))
        draw_curve(history, weights, f"{settings.network}, {model}, seed {settings.seed}", folder.curve)
        result = TuneResult(
            network=settings.network,
            target=str(target),
            model=model,
            platform=self.cost_model.platform_for(str(target)),
            trials=len(history),
            reused=reused,
            failures=dict(self.failures.most_common()),
            tasks=results,
            estimate=float(history.estimates(weights)[-1]),
            end_to_end=ended,
            seconds=dict(self.seconds),
            log=folder.log,
            curve=folder.curve,
            report=folder.report,
        )
        folder.write({**self._description(target), **result.to_dict()})
        return result

    def _description(self, target: Any) -> dict[str, Any]:
        settings, info = self.settings, tvm_info()
        return {
            "network": settings.network,
            "target": str(target),
            "model": str(getattr(self.cost_model.model, "name", settings.model)),
            "seed": settings.seed,
            "online": settings.online,
            "population": settings.population,
            "measure": dataclasses.asdict(settings.measure),
            "versions": {
                "tlp_tvm": tlp_tvm.__version__,
                "tvm": info.version,
                "python": machine.python_version(),
            },
            "cpu": this_cpu().model,
        }

    def _threads(self, target: Any) -> int:
        return self.settings.measure.threads or cores_of(target)

    @contextmanager
    def _step(self, name: str, words: str) -> Iterator[None]:
        self.observer.step(words)
        began = time.time()
        yield
        self.seconds[name] += time.time() - began


class _Progress:
    """Writes each measurement into the log as it is made, and tells the observer."""

    def __init__(self, tuning: _Tuning, log: Path, keys: Sequence[str], weights: Sequence[int]) -> None:
        before = read_history(log, keys)
        self.trials = len(before)
        self._tuning = tuning
        self._log = log
        self._save = load_tvm().auto_scheduler.save_records
        self._position = {key: i for i, key in enumerate(keys)}
        self._weights = np.asarray(weights, np.float64)
        self._best = before.best

    def __call__(self, measure_input: Any, result: Any, reason: str) -> None:
        self._save(str(self._log), [measure_input], [result])
        self.trials += 1
        if reason:
            self._tuning.failures[reason] += 1
        else:
            task = self._position[str(measure_input.task.workload_key)]
            latency = float(np.mean([cost.value for cost in result.costs]))
            self._best[task] = min(self._best[task], latency)
        estimate = float(self._best @ self._weights)
        self._tuning.observer.measured(self.trials, estimate, self._tuning.failures)


def _task_results(tasks: Sequence[Any], weights: Sequence[int], history: History) -> list[TaskResult]:
    columns = (history.counts, history.failures, history.first, history.best)
    return [
        TaskResult(
            str(task.desc), str(task.workload_key), weight, float(task.compute_dag.flop_ct),
            int(trials), int(failures), float(first), float(best),
        )
        for task, weight, trials, failures, first, best in zip(tasks, weights, *columns, strict=True)
    ]  # fmt: skip


def _most_common(failures: collections.Counter[str]) -> str:
    reasons = failures.most_common(1)
    return f"most often a program {reasons[0][0]}" if reasons else "start anew in another --out"
