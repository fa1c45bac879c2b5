"""Every model breeds each task's programs alone; its favourites are timed beside the best that is known.

Ranking a given pool is not what a search asks of a model: evolution finds what the model overrates. Here it
may. The choices of all models and the known programs of a task are compiled together and timed one after the
other, so that a machine's hour favours nobody.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tlp_tvm._core import __version__
from tlp_tvm.adapting.program_source import Prior, Program, prior_of
from tlp_tvm.errors import ComparisonError
from tlp_tvm.evaluation.choice.choice_settings import ChoiceObserver, ChoiceSettings
from tlp_tvm.evaluation.choice.regret import KS, ChosenTask, Regret, regrets
from tlp_tvm.files import read_content, write_whole
from tlp_tvm.folder_lock import held
from tlp_tvm.framework import Framework, Pool, framework_named
from tlp_tvm.latency import latency_of_costs
from tlp_tvm.machine.code import code_digest
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.measuring.native_messages import native_messages_to
from tlp_tvm.measuring.stopping import StopOnInterrupt, Stopped
from tlp_tvm.model.checkpoint import load_model, weights_digest
from tlp_tvm.planned_task import PlannedTask, largest
from tlp_tvm.record_batch import RecordBatch
from tlp_tvm.records.source import find_source

RESULTS = "choice.json"
FORMAT, FORMAT_VERSION = "tlp-tvm-choice", 1

KNOWN = 3
"""Programs of earlier data of each of its platforms: a label of another machine or hour may flatter one."""


@dataclass(frozen=True)
class Choices:
    """A finished run; `content` is its file."""

    content: dict[str, Any]

    @property
    def tasks(self) -> list[ChosenTask]:
        """Every task with its timings."""
        return [
            ChosenTask(
                desc=entry["desc"],
                weights=entry["networks"],
                known=_seconds(entry["known"]),
                chosen={model: tuple(map(_seconds, found)) for model, found in entry["chosen"].items()},
            )
            for entry in self.content["tasks"]
        ]

    def regrets(self) -> list[Regret]:
        """A row for each model and number of choices."""
        models = list(self.content["models"])
        return regrets(self.tasks, models, [k for k in KS if k <= self.content["count"]])


def choose(settings: ChoiceSettings, observer: ChoiceObserver | None = None) -> Choices:
    """Let models choose programs of tasks, and time what they choose; or resume a stopped run.

    Args:
        settings: whose choice, of what.
        observer: receives the progress.

    Returns:
        The result; `choice.json` in the folder has the same.

    Raises:
        ComparisonError: the folder holds another run.
        Stopped: by Ctrl-C; what is complete is kept.
        DatasetError: there is no earlier data where it was said to be.
        NetworkError: no such network.
        TuningError: no such target.
        ModelFileError: a model cannot be read.
    """
    return _Choosing(settings, observer or ChoiceObserver()).run()


class _Choosing:
    """One call of `choose`."""

    def __init__(self, settings: ChoiceSettings, observer: ChoiceObserver) -> None:
        self.framework: Framework = framework_named(settings.framework)
        how = settings.measure.at_best(self.framework.caches, self.framework.code())
        self.target = self.framework.target(settings.target, here=True)
        how = dataclasses.replace(how, threads=how.threads or self.framework.cores(self.target))
        population = settings.population or self.framework.choice_population
        self.settings = dataclasses.replace(settings, measure=how, population=population)
        self.observer = observer
        flags = self.framework.flags_of(self.target)
        self.priors: dict[str, Prior] = {name: prior_of(load_model(name), flags) for name in settings.models}
        self.known = self._known()

    def run(self) -> Choices:
        settings = self.settings
        planned = self.framework.plan(settings.networks, self.target, self.observer.step, None)
        tasks = largest(planned, settings.tasks)
        with held(settings.out, ComparisonError, "choose another `out`"):
            content = self._content()
            done = {entry["task"] for entry in content["tasks"]}
            self.observer.planned(len(tasks), len(done))
            waiting = [task for task in tasks if task.id not in done]
            if waiting:
                self._choose(waiting, content)
        return Choices(content)

    def _choose(self, tasks: Sequence[PlannedTask], content: dict[str, Any]) -> None:
        out, stop = self.settings.out, StopOnInterrupt()
        try:
            with ExitStack() as stack:
                output = stack.enter_context((out / "tvm.log").open("ab"))
                stack.enter_context(native_messages_to(output))
                stack.enter_context(stop)
                pool = stack.enter_context(
                    self.framework.pool(self.settings.measure, output, stop.check, None)
                )
                for task in tasks:
                    began = time.monotonic()
                    entry = self._of_task(task, pool)
                    content["tasks"].append(entry)
                    content["seconds"] = round(content["seconds"] + time.monotonic() - began, 1)
                    write_whole(out / RESULTS, json.dumps(content) + "\n")
                    self.observer.chose(len(content["tasks"]), task.desc, _words(Choices(content).tasks[-1]))
        except Exception as error:
            if stop.requested:
                raise Stopped(
                    f"stopped; {out} holds the complete tasks, and the same command resumes"
                ) from error
            raise

    def _of_task(self, task: PlannedTask, pool: Pool) -> dict[str, Any]:
        settings = self.settings
        chosen = {name: self._favourites(task, prior) for name, prior in self.priors.items()}
        known = self.framework.source(task, settings.seed).fastest(self.known, KNOWN)
        programs = {each.hash: each for each in itertools.chain(known, *chosen.values())}
        took = _timed(list(programs.values()), pool)
        fastest = min((took[each.hash] for each in known), default=math.inf)
        return {
            "task": task.id,
            "desc": task.desc,
            "workload_key": task.workload_key,
            "networks": task.weights,
            "flop": task.flop,
            "known": _json(fastest),
            "chosen": {name: [_json(took[each.hash]) for each in found] for name, found in chosen.items()},
        }

    def _favourites(self, task: PlannedTask, prior: Prior) -> list[Program]:
        source = self.framework.source(task, self.settings.seed, prior)
        source.population = self.settings.population
        return source.take(self.settings.count, evolved=True)

    def _known(self) -> list[RecordBatch]:
        files = [find_source(path).files for path in self.settings.known]
        return [self.framework.read(each, "raise", 0) for each in files]

    def _content(self) -> dict[str, Any]:
        """What the folder holds, or the same without any task."""
        settings, path = self.settings, Path(self.settings.out) / RESULTS
        description = {
            "framework": self.framework.name,
            "target": str(self.target),
            "models": {name: weights_digest(name) for name in settings.models},
            "population": settings.population,
            "count": settings.count,
            "seed": settings.seed,
            "cpu": this_cpu().model,
            "measure": json.loads(json.dumps(dataclasses.asdict(settings.measure))),
            "code": code_digest(),
            "versions": {"tlp_tvm": __version__, "tvm": self.framework.tvm_version()},
        }
        if not path.exists():
            head = {"format": FORMAT, "format_version": FORMAT_VERSION}
            return {**head, **description, "seconds": 0.0, "tasks": []}
        before = read_choices(settings.out).content
        for entry, value in description.items():
            if before.get(entry) != value:
                raise ComparisonError(
                    f"{path}: expected a run with {entry} {value}, found {before.get(entry)}; choose another "
                    "`out`"
                )
        return before


def read_choices(folder: Path) -> Choices:
    """Read the folder of a run.

    Args:
        folder: that `choose` wrote.

    Raises:
        ComparisonError: it holds none.
    """
    path = Path(folder) / RESULTS
    return Choices(
        read_content(path, FORMAT, FORMAT_VERSION, "a run of `evaluate --choice`", ComparisonError)
    )


def _timed(programs: Sequence[Program], pool: Pool) -> dict[int, float]:
    """Hash -> seconds; infinity where a program failed."""
    inputs = [each.input for each in programs]
    return {
        programs[i].hash: math.inf if outcome.error else latency_of_costs(outcome.costs)
        for i, outcome in pool.run_all(pool.build(inputs), inputs)
    }


def _words(task: ChosenTask) -> str:
    """What each model's first choice that ran takes beside the best."""
    ran = {model: task.ran(model) for model in task.chosen}
    return ", ".join(
        f"{model} {found[0] / task.best:.2f}x" if found else f"{model} none ran"
        for model, found in ran.items()
    )


def _json(seconds: float) -> float | None:
    return seconds if math.isfinite(seconds) else None


def _seconds(value: float | None) -> float:
    return math.inf if value is None else float(value)
