"""Tune a whole network: tasks, search with a learned cost model, and the network before and after.

The order of things is the same for every framework; what differs a framework's `Tuner` does.
"""

from __future__ import annotations

import collections
import contextlib
import dataclasses
import os
import platform as machine
import time
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm._core import __version__
from tlp_tvm.adapting.search_scores import Scorer
from tlp_tvm.errors import TuningError
from tlp_tvm.folder_lock import held
from tlp_tvm.framework import DEFAULT, framework_named
from tlp_tvm.logs import mend_log
from tlp_tvm.machine.cpu import peak_rate, this_cpu
from tlp_tvm.machine.loop_threads import set_loop_threads
from tlp_tvm.measuring.native_messages import native_messages_to
from tlp_tvm.measuring.stopping import StopOnInterrupt, Stopped
from tlp_tvm.tuning.curve import draw_curve
from tlp_tvm.tuning.history import History, read_history
from tlp_tvm.tuning.network.operator_times import OperatorTime
from tlp_tvm.tuning.network.turns import EndToEnd
from tlp_tvm.tuning.run_folder import CURE, RunFolder, read_run, spent_before, timing_as_before
from tlp_tvm.tuning.tune_observer import Steps, TuneObserver
from tlp_tvm.tuning.tune_progress import Progress
from tlp_tvm.tuning.tune_settings import UNBOUNDED_TRIALS, TaskResult, TuneResult, TuneSettings, usual_trials
from tlp_tvm.tuning.tuner_protocol import Tuner
from tlp_tvm.tuning.when_to_stop import ExpectedGain, search_ends, tries_within, tuned_build_s


def tune(
    network: str | os.PathLike[str],
    out: str | os.PathLike[str],
    *,
    minutes: float = 0.0,
    trials: int | None = None,
    framework: str = DEFAULT,
    model: str | os.PathLike[str] | Scorer = "",
    target: str = "",
    seed: int = 0,
    observer: TuneObserver | None = None,
) -> TuneResult:
    """Tune a whole network, or resume a tuning that was stopped.

    Args:
        network: a built-in name, e.g. "resnet_18-224", or the path of a file.
        out: folder of the run.
        minutes: that it may take, builds included; 0 for no limit.
        trials: programs to measure in total. Default: 200, or as many as `minutes` allow.
        framework: "ansor" or "metaschedule".
        model: a shipped name, a checkpoint folder, an exported file, or a model; empty for the shipped one.
        target: TVM target; empty for this machine's CPU.
        seed: of the search.
        observer: receives the progress.

    Returns:
        The result; `run.json` in the folder has the same.

    Raises:
        TuningError: it cannot start, was stopped, or its result does not build.
        NetworkError: no such network.
        ModelFileError: the model cannot be read.
        RecordError: the log of the run is damaged.
    """
    named = os.fspath(model) if isinstance(model, os.PathLike) else model
    settings = TuneSettings(
        network=os.fspath(network),
        out=Path(out),
        model=named,
        target=target,
        trials=usual_trials(minutes) if trials is None else trials,
        seed=seed,
        framework=framework,
        minutes=minutes,
        hide_messages=True,
    )
    return tune_network(settings, observer)


def tune_network(settings: TuneSettings, observer: TuneObserver | None = None) -> TuneResult:
    """Tune a network, or resume a tuning that was stopped.

    Args:
        settings: what to tune and how.
        observer: receives the progress.

    Returns:
        The result; `run.json` in the folder of the run has the same.

    Raises:
        TuningError: it cannot start, was stopped, or its result does not build.
        NetworkError: no such network.
        ModelFileError: the model cannot be read, or is of another framework.
        RecordError: the log of the run is damaged.
    """
    return _Tuning(settings, observer or TuneObserver()).run()


class _Tuning(Steps):
    """One call of `tune_network`, step by step."""

    def __init__(self, settings: TuneSettings, observer: TuneObserver) -> None:
        super().__init__(observer)
        self.framework = framework_named(settings.framework)
        usual = self.framework.population if settings.trials else self.framework.choice_population
        self.settings = dataclasses.replace(
            settings,
            population=settings.population or usual,
            measure=timing_as_before(settings, self.framework),
        )
        self.failures: collections.Counter[str] = collections.Counter()
        self.began = time.monotonic()

    def run(self) -> TuneResult:
        settings = self.settings
        usual = str(read_run(settings.out).get("model_source", self.framework.default_model))
        self.tuner: Tuner = self.framework.tuner(settings, settings.model or usual, self.observer)
        set_loop_threads(self.tuner.target)  # also for who loads the tuned network in this process
        with held(settings.out, TuningError, CURE):
            return self._run()

    def _run(self) -> TuneResult:
        settings = self.settings
        folder = RunFolder(settings.out, self.framework.log)
        before = folder.begin(self._description())
        self.seconds.update(spent_before(before))
        try:
            return self._steps(folder, before)
        except BaseException:
            with contextlib.suppress(OSError, TuningError):  # what ended the run is what to say
                folder.write({**read_run(settings.out), "seconds": dict(self.seconds)})
            raise

    def _steps(self, folder: RunFolder, before: dict[str, Any]) -> TuneResult:
        settings, tuner = self.settings, self.tuner
        if not settings.trials and folder.log.stat().st_size:
            raise TuningError(
                f"{folder.log}: expected no measured programs for `trials` 0, found some, "
                "which `trials` 0 would ignore; choose another `out`"
            )
        for name in (folder.log.name, *tuner.tables):
            mend_log(folder.path / name)
        with self.step("tasks", "splitting the network into tasks"):
            self.planned = tuner.split()
        folder.write({**before, **self._description(), "planned": self.planned})
        if tuner.runs_here and settings.whole:
            with self.step("build", "building the network without records"):
                tuner.build_untuned()
        known = self._read(folder)
        if settings.trials:
            self._search(folder, known)
        else:
            self._choose(folder, before.get("choice") == self._choice())
        history = self._read(folder)
        taken = self._take(folder, history)
        if not taken:
            raise TuningError(
                f"{folder.log}: expected programs that run, found none; {_most_common(self.failures)}"
            )
        if not settings.whole:
            return self._finish(folder, history, len(known), taken, None, "", (None, [], False, 0))
        with self.step("build", "building the network from the records"):
            library, no_library = tuner.build_tuned(folder)
        tries = self._tries(self.took["build"])
        ended, kept_untuned, changed = None, False, 0
        operators: list[OperatorTime] = []
        if tuner.runs_here:
            if settings.trials and tries:
                with self.step("inside", "choosing programs by their time inside the network"):
                    changed, left = tuner.choose_inside(folder, settings.turns, tries)
                taken -= left
            with self.step("compare", "timing the network, untuned and tuned in turns"):
                ended = tuner.compare(settings.turns)
                operators = tuner.operators(folder)
            if library is not None and ended is not None and ended.speedup < 1:
                kept_untuned = True
                library = tuner.keep_untuned(folder)
        times = (ended, operators, kept_untuned, changed)
        return self._finish(folder, history, len(known), taken, library, no_library, times)

    def _take(self, folder: RunFolder, history: History) -> set[str]:
        """The tasks that have a program, for the time did not reach all of a large network's."""
        known = self.tuner.known(folder, history)
        left = sum(map(np.isinf, known)) if self.settings.trials and self.tuner.choice_s else 0
        if not 0 < left < len(known) or not self.settings.whole:
            return self.tuner.take(folder, history)
        with self.step("search", f"choosing programs of {left} tasks without one, by the model alone"):
            return self.tuner.take(folder, history)

    def _tries(self, build_s: float) -> int:
        """Networks of other programs that there is time to build and time."""
        ends = self.began + self.settings.minutes * 60 if self.settings.minutes else np.inf
        tuner = self.tuner
        return tries_within(ends - time.monotonic(), build_s, tuner.builds_after - 2, tuner.relinks)

    def _read(self, folder: RunFolder) -> History:
        return read_history(folder.log, [task["workload_key"] for task in self.planned])

    def _search(self, folder: RunFolder, history: History) -> None:
        """Measure what is left to measure."""
        settings, tuner = self.settings, self.tuner
        self.observer.planned(len(self.planned), settings.trials, len(history))
        if len(history) >= settings.trials:
            return
        tuner.prepare(folder, history)
        weights = [int(task["weight"]) for task in self.planned]
        best = tuner.known(folder, history)
        builds = tuner.builds_after if settings.whole else 0

        def ends(program_s: float) -> float | None:
            again = tuner.compiled_again(progress.best)
            compiled, split_s = (len(weights), 0.0) if again is None else (again, self.took["tasks"])
            build_s = tuned_build_s(self.took["build"], compiled, program_s, split_s)
            return search_ends(self.began, settings.minutes, build_s, builds, tuner.relinks)

        def move_end(program_s: float) -> float | None:
            deadline = ends(program_s)
            if deadline is not None:
                deadline -= min(at_most, choice_s * progress.without)
            stop.end_at(deadline)
            return deadline

        def on_estimate(estimate: float) -> None:
            deadline = move_end(pool.compile_s)
            if deadline is not None and gain.note(estimate, deadline):
                stop.end()

        stop, gain = StopOnInterrupt(), ExpectedGain()
        known = (len(history), best)
        progress = Progress(folder.log, weights, *known, self.failures, self.observer, on_estimate)
        choice_s = tuner.choice_s if settings.whole else 0.0
        at_most = max(0.0, (ends(0.0) or 0.0) - time.monotonic()) / 2
        move_end(0.0)
        with ExitStack() as stack:
            output = stack.enter_context(folder.tvm_log.open("ab"))
            if settings.hide_messages:
                stack.enter_context(native_messages_to(output))
            stack.enter_context(stop)
            stack.enter_context(self.spent("search"))
            pool = stack.enter_context(tuner.pool(output, progress, stop.check))
            try:
                tuner.search(folder, history, pool, stop, progress)
            except Exception as error:  # noqa: BLE001 - what ends a search in time is its end
                if not stop.time_is_up or progress.error:
                    self._explain(error, stop, progress)
            finally:
                self.seconds["measure"] += pool.seconds
                self.seconds["search"] -= pool.seconds

    def _explain(self, error: Exception, stop: StopOnInterrupt, progress: Progress) -> None:
        """Raise what ended the search: TVM's frames turn an error inside a callback into one of their own."""
        if progress.error is not None:
            raise progress.error from error
        if stop.requested or isinstance(self.tuner.error, KeyboardInterrupt):
            trials = self.settings.trials
            of_all = f" of {trials}" if trials < UNBOUNDED_TRIALS else ""
            raise Stopped(
                f"stopped after {progress.trials}{of_all} programs; {self.settings.out} holds them, and the "
                "same command resumes the run"
            ) from error
        raise (self.tuner.error or error) from None

    def _choose(self, folder: RunFolder, chosen_before: bool) -> None:
        """Have the model choose a program of each task; what a stopped call chose stays chosen."""
        settings, stop = self.settings, StopOnInterrupt()
        self.observer.planned(len(self.planned), 0, 0)
        with ExitStack() as stack:
            output = stack.enter_context(folder.tvm_log.open("ab"))
            if settings.hide_messages:
                stack.enter_context(native_messages_to(output))
            stack.enter_context(self.step("search", "choosing programs without measuring"))
            stack.enter_context(stop)
            try:
                self.tuner.choose(folder, chosen_before, stop)
            except Exception as error:
                if stop.requested:
                    raise Stopped(
                        f"stopped; {folder.best} holds what was chosen, and the same command resumes the run"
                    ) from error
                raise (self.tuner.error or error) from None

    def _finish(
        self,
        folder: RunFolder,
        history: History,
        reused: int,
        taken: set[str],
        library: Path | None,
        no_library: str,
        times: tuple[EndToEnd | None, list[OperatorTime], bool, int],
    ) -> TuneResult:
        tuner, settings = self.tuner, self.settings
        ended, operators, kept_untuned, changed = times
        weights = [int(task["weight"]) for task in self.planned]
        curve = folder.curve if np.isfinite(history.latencies).any() else None
        if curve is not None:
            title = f"{tuner.network}, {tuner.model}, seed {settings.seed}"
            draw_curve(history, weights, title, curve)
        tasks = self._tasks(folder, history, taken)
        ran = [task.best * task.weight for task in tasks if np.isfinite(task.best)]
        threads = settings.measure.threads or this_cpu().threads(tuner.target)
        result = TuneResult(
            network=tuner.network,
            target=tuner.target,
            model=tuner.model,
            platform=tuner.platform,
            trials=len(history),
            reused=reused,
            warm=_lines(folder.warm),
            failures=dict(self.failures.most_common()),
            tasks=tasks,
            estimate=sum(ran) if ran else np.inf,
            end_to_end=ended,
            operators=operators,
            peak=peak_rate(threads) if operators else 0.0,
            kept_untuned=kept_untuned,
            changed_inside=changed,
            seconds=dict(self.seconds),
            log=folder.log,
            best=tuner.best_file(folder),
            library=library,
            no_library=no_library,
            curve=curve,
            report=folder.report,
        )
        folder.write({**self._description(), **result.to_dict()})
        return result

    def _tasks(self, folder: RunFolder, history: History, taken: set[str]) -> list[TaskResult]:
        columns = (history.counts, history.failures, history.first, self.tuner.known(folder, history))
        return [
            TaskResult(
                **task,
                trials=int(trials),
                failures=int(failures),
                first=float(first),
                best=float(best),
                chosen=task["workload_key"] in taken,
            )
            for task, trials, failures, first, best in zip(self.planned, *columns, strict=True)
        ]

    def _description(self) -> dict[str, Any]:
        settings, tuner = self.settings, self.tuner
        return {
            "framework": self.framework.name,
            "network": tuner.network,
            "target": tuner.target,
            "model": tuner.model,
            "model_source": tuner.model_source,
            "platform": tuner.platform,
            "graph": tuner.graph,
            "seed": settings.seed,
            "online": settings.online,
            "population": settings.population,
            "choice": None if settings.trials else self._choice(),
            "measure": dataclasses.asdict(settings.measure),
            "versions": {
                "tlp_tvm": __version__,
                "tvm": self.framework.tvm_version(),
                "python": machine.python_version(),
            },
            "cpu": this_cpu().model,
        }

    def _choice(self) -> dict[str, Any]:
        """What a choice without measuring depends on."""
        settings = self.settings
        return {
            "model": self.tuner.model,
            "platform": settings.platform,
            "population": settings.population,
            "seed": settings.seed,
        }


def _most_common(failures: Mapping[str, int]) -> str:
    """Why programs failed, as a clause."""
    reasons = collections.Counter(failures).most_common(1)
    return f"most often a program {reasons[0][0]}" if reasons else "start anew in another `out`"


def _lines(log: Path) -> int:
    return len(log.read_bytes().splitlines()) if log.exists() else 0
