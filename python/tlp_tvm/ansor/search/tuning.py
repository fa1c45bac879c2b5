"""Tune a whole network: tasks, search in TVM's loop with a TLP model, and the network before and after."""

from __future__ import annotations

import collections
import dataclasses
import platform as machine
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

import tlp_tvm
from tlp_tvm.adapting.search_scores import load_scorer, model_name
from tlp_tvm.ansor.loading.locate import tvm_info
from tlp_tvm.ansor.networks.builtin import canonical_name, network_from
from tlp_tvm.ansor.networks.end_to_end import build_tuned, build_untuned, compare, random_inputs
from tlp_tvm.ansor.networks.layout_rewrite import keep_layout_where_needed
from tlp_tvm.ansor.networks.library import save_tuned
from tlp_tvm.ansor.networks.tasks import extract_tasks
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.tune_inputs import cores_of, hardware_of, model_source, quiet_builds, target_of
from tlp_tvm.ansor.search.tune_search import TuneSearch, most_common
from tlp_tvm.ansor.search.zero_shot import choose_programs
from tlp_tvm.errors import TuningError
from tlp_tvm.files import write_whole
from tlp_tvm.machine.at_hand import runs_here
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.measuring.native_messages import native_messages_to
from tlp_tvm.measuring.stopping import StopOnInterrupt, Stopped
from tlp_tvm.model.scoring import platform_or_mean
from tlp_tvm.pretrained import DEFAULT_MODELS
from tlp_tvm.tuning.curve import draw_curve
from tlp_tvm.tuning.history import History, best_programs, read_history
from tlp_tvm.tuning.network_plan import NetworkPlan
from tlp_tvm.tuning.run_folder import RunFolder, read_run
from tlp_tvm.tuning.tune_observer import Steps, TuneObserver
from tlp_tvm.tuning.tune_settings import TaskResult, TuneResult, TuneSettings
from tlp_tvm.tuning.turns import EndToEnd
from tlp_tvm.tuning.warm_start import sources_of


def tune_network(settings: TuneSettings, observer: TuneObserver | None = None) -> TuneResult:
    """Tune a network, or resume a stopped tuning.

    Args:
        settings: what to tune and how.
        observer: is told how it goes.

    Returns:
        The result; `run.json` in the folder of the run has the same.

    Raises:
        TuningError: it cannot start, was stopped, or its result does not build.
        NetworkError: no such network.
        ModelFileError: the model cannot be read.
        RecordError: the log of the run is damaged.
    """
    return _Tuning(settings, observer or TuneObserver()).run()


class _Tuning(Steps):
    """One call of `tune_network`, step by step."""

    def __init__(self, settings: TuneSettings, observer: TuneObserver) -> None:
        super().__init__(observer)
        self.settings = settings
        self.failures: collections.Counter[str] = collections.Counter()
        self.no_library = ""

    def run(self) -> TuneResult:
        settings = self.settings
        target = target_of(settings.target, here=settings.trials > 0)
        self.network = canonical_name(settings.network)
        module, parameters, inputs = network_from(settings.network, settings.shapes)
        named = settings.model or read_run(settings.out).get("model_source", DEFAULT_MODELS["ansor"])
        model = load_scorer(named)
        platform = settings.platform or platform_or_mean(model, str(target))
        self.cost_model = TLPCostModel(model, platform, online=settings.online)
        self.source = model_source(named)
        if settings.warm_start and not settings.trials:
            raise TuningError(
                "--warm-start: expected programs to measure, found --trials 0; choose --trials 1 or more, "
                "or leave it out"
            )
        sources_of(settings.warm_start)
        folder = RunFolder(settings.out)
        before = folder.begin(self._description(target))
        if not settings.trials and folder.log.stat().st_size:
            raise TuningError(
                f"{folder.log}: expected no measured programs for --trials 0, found some, "
                "which are worth more than a choice without measuring; choose another --out"
            )

        with self.step("tasks", "splitting the network into tasks"), quiet_builds():
            extracted, weights = extract_tasks((module, parameters), str(target), hardware_of(target))
            tasks, kept = keep_layout_where_needed(extracted)
        plan = NetworkPlan(tasks, weights, self._threads(target))
        keys = plan.keys
        folder.write({**before, **self._description(target), "planned": plan.to_dicts()})
        self._check_trials(len(tasks))
        here, untuned = runs_here(target), None
        if here:
            with self.step("build", "building the network without records"), quiet_builds():
                untuned = build_untuned(module, parameters, target)

        reused = 0
        if settings.trials:
            search = TuneSearch(settings, plan, self.cost_model, folder, self.observer)
            reused = search.run()
            self.seconds.update(search.seconds)
            self.failures = search.failures
            best = best_programs([folder.log, folder.warm], keys)
            lines = {key: line for key, (_, line) in best.items()}
        else:
            lines = self._choose(tasks, folder, before)
            best = {}
        history = read_history(folder.log, keys)
        if not lines:
            raise TuningError(
                f"{folder.log}: expected programs that run, found none; {most_common(self.failures)}"
            )
        write_whole(folder.best, "".join(lines.values()))
        with self.step("build", "building the network from the records"), quiet_builds():
            tuned, library = None, None
            try:
                tuned = build_tuned(module, parameters, target, folder.best, kept, set(keys))
                library = save_tuned(tuned, module, inputs, target, folder.path, self.network, here)
            except (TuningError, RuntimeError, OSError) as failure:
                if here and tuned is None:  # of a target elsewhere the records are worth having
                    raise
                self.no_library = str(failure).strip().splitlines()[-1]
        ended = None
        if here and tuned is not None:
            with self.step("compare", "timing the network, untuned and tuned in turns"):
                values = random_inputs(module, parameters)
                ended = compare(untuned, tuned, values, target, settings.turns, self._threads(target))
        results = _task_results(tasks, weights, history, best, lines)
        return self._finish(folder, target, history, results, weights, reused, library, ended)

    def _check_trials(self, tasks: int) -> None:
        trials = self.settings.trials
        if 0 < trials < tasks:
            raise TuningError(
                f"--trials {trials}: expected at least one program for each of the {tasks} "
                f"tasks of {self.network}; choose --trials {tasks} or more, better {tasks * 16}"
            )

    def _choose(self, tasks: Sequence[Any], folder: RunFolder, before: dict[str, Any]) -> dict[str, str]:
        """Have the model choose a program of each task; what a stopped call chose stays chosen."""
        settings, stop = self.settings, StopOnInterrupt()
        chosen = {}
        if before.get("choice") == self._choice():
            keys = [str(task.workload_key) for task in tasks]
            chosen = {key: line for key, (_, line) in best_programs([folder.best], keys).items()}
        self.observer.planned(len(tasks), 0, 0)

        def on_task(task: Any) -> None:
            stop.check()
            self.observer.round(str(task.desc))

        try:
            with (
                folder.tvm_log.open("ab") as output,
                native_messages_to(output) if settings.hide_messages else nullcontext(),
                self.step("search", "choosing programs without measuring"),
                stop,
            ):
                return choose_programs(
                    tasks,
                    self.cost_model,
                    folder.best,
                    chosen,
                    population=settings.population,
                    seed=settings.seed,
                    on_task=on_task,
                )
        except Exception as error:
            if stop.requested:
                raise Stopped(
                    f"stopped; {folder.best} holds what was chosen, and the same command resumes"
                ) from error
            raise (self.cost_model.error or error) from None

    def _finish(
        self,
        folder: RunFolder,
        target: Any,
        history: History,
        results: list[TaskResult],
        weights: Sequence[int],
        reused: int,
        library: Path | None,
        ended: EndToEnd | None,
    ) -> TuneResult:
        settings = self.settings
        model = model_name(self.cost_model.model)
        curve = folder.curve if np.isfinite(history.latencies).any() else None
        if curve is not None:
            draw_curve(history, weights, f"{self.network}, {model}, seed {settings.seed}", curve)
        ran = [task.best * task.weight for task in results if np.isfinite(task.best)]
        result = TuneResult(
            network=self.network,
            target=str(target),
            model=model,
            platform=self.cost_model.platform_for(str(target)),
            trials=len(history),
            reused=reused,
            warm=_lines(folder.warm),
            failures=dict(self.failures.most_common()),
            tasks=results,
            estimate=sum(ran) if ran else np.inf,
            end_to_end=ended,
            seconds=dict(self.seconds),
            log=folder.log,
            best=folder.best,
            library=library,
            no_library=self.no_library,
            curve=curve,
            report=folder.report,
        )
        folder.write({**self._description(target), **result.to_dict()})
        return result

    def _description(self, target: Any) -> dict[str, Any]:
        settings, info = self.settings, tvm_info()
        return {
            "network": self.network,
            "target": str(target),
            "model": model_name(self.cost_model.model),
            "model_source": self.source,
            "seed": settings.seed,
            "online": settings.online,
            "population": settings.population,
            "choice": None if settings.trials else self._choice(),
            "measure": dataclasses.asdict(settings.measure),
            "versions": {
                "tlp_tvm": tlp_tvm.__version__,
                "tvm": info.version,
                "python": machine.python_version(),
            },
            "cpu": this_cpu().model,
        }

    def _choice(self) -> dict[str, Any]:
        """What a choice without measuring depends on."""
        settings = self.settings
        model = model_name(self.cost_model.model)
        return {
            "model": model,
            "platform": settings.platform,
            "population": settings.population,
            "seed": settings.seed,
        }

    def _threads(self, target: Any) -> int:
        return self.settings.measure.threads or cores_of(target)


def _task_results(
    tasks: Sequence[Any],
    weights: Sequence[int],
    history: History,
    best: Mapping[str, tuple[float, str]],
    chosen: Mapping[str, str],
) -> list[TaskResult]:
    columns = (history.counts, history.failures, history.first)
    return [
        TaskResult(
            name=str(task.desc),
            workload_key=str(task.workload_key),
            weight=weight,
            flops=float(task.compute_dag.flop_ct),
            trials=int(trials),
            failures=int(failures),
            first=float(first),
            best=best.get(str(task.workload_key), (np.inf, ""))[0],
            chosen=str(task.workload_key) in chosen,
        )
        for task, weight, trials, failures, first in zip(tasks, weights, *columns, strict=True)
    ]


def _lines(log: Path) -> int:
    return len(log.read_bytes().splitlines()) if log.exists() else 0
