"""Tasks times seeds; in each group every model searches in turn, one round at a time."""

from __future__ import annotations

import dataclasses
import json
import platform as machine
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm._core import __version__
from tlp_tvm.comparison.compare_settings import CompareObserver, CompareSettings
from tlp_tvm.comparison.far_tasks import far_tasks
from tlp_tvm.comparison.finals import timed_again
from tlp_tvm.comparison.session import Session
from tlp_tvm.comparison.summary import FORMAT, FORMAT_VERSION, RESULTS, Comparison, read_comparison
from tlp_tvm.errors import ComparisonError
from tlp_tvm.files import write_whole
from tlp_tvm.folder_lock import held
from tlp_tvm.framework import DEFAULT, Framework, framework_named
from tlp_tvm.machine.code import code_digest
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.measuring.native_messages import native_messages_to
from tlp_tvm.measuring.stopping import StopOnInterrupt, Stopped
from tlp_tvm.planned_task import PlannedTask, largest


def compare(settings: CompareSettings, observer: CompareObserver | None = None) -> Comparison:
    """Search the same tasks under several models, or resume a stopped comparison.

    A task and seed whose searches were cut off begin anew; those that were whole stay.

    Args:
        settings: what to compare and how.
        observer: receives the progress.

    Returns:
        The result; `comparison.json` in the folder has the same.

    Raises:
        ComparisonError: it cannot start, or the folder holds another comparison.
        DatasetError: `far` is no built dataset.
        Stopped: by Ctrl-C; what is complete is kept.
        NetworkError: no such network.
        TuningError: no such target.
        ModelFileError: the model cannot be read.
    """
    observer = observer or CompareObserver()
    framework = framework_named(settings.framework)
    how = settings.measure.at_best(framework.caches, framework.code())
    settings = dataclasses.replace(settings, measure=how)
    target = framework.target(settings.target, here=True)
    scorer = _scorer(settings)
    planned: Sequence[PlannedTask] = framework.plan(settings.networks, target, observer.step, None)
    far_from = None
    if settings.far is not None:
        planned, far_from = far_tasks(planned, settings.far)
    with held(settings.out, ComparisonError, "choose another `out`"):
        content = _content(settings, framework, target, getattr(scorer, "name", settings.model), far_from)
        _compare(settings, framework, target, scorer, largest(planned, settings.tasks), content, observer)
    return read_comparison(settings.out)


def _compare(
    settings: CompareSettings,
    framework: Framework,
    target: Any,
    scorer: Any,
    tasks: Sequence[PlannedTask],
    content: dict[str, Any],
    observer: CompareObserver,
) -> None:
    """Search what the folder lacks; each group is written as it is done."""
    groups = [(task, seed) for task in tasks for seed in range(settings.seeds)]
    done = {(entry["task"], entry["seed"]) for entry in content["groups"]}
    trials = settings.trials * len(settings.contenders)
    observer.planned(len(groups), sum((task.id, seed) in done for task, seed in groups), trials)
    for task, seed in groups:
        if (task.id, seed) in done:
            continue
        sessions = _search(task, seed, settings, scorer, observer, framework.cores(target))
        content["groups"].append(
            {
                "task": task.id,
                "desc": task.desc,
                "workload_key": task.workload_key,
                "networks": task.weights,
                "flop": task.flop,
                "seed": seed,
                "sessions": {session.contender.name: _entry(session) for session in sessions},
            }
        )
        write_whole(settings.out / RESULTS, json.dumps(content) + "\n")


def _scorer(settings: CompareSettings) -> Any:
    """The model of those of "tlp"; None if none of them takes part."""
    from tlp_tvm.model.checkpoint import load_model

    if not any(each.model.startswith("tlp") for each in settings.contenders):
        return None
    return load_model(settings.model or framework_named(settings.framework).default_model)


def _search(
    task: PlannedTask,
    seed: int,
    settings: CompareSettings,
    scorer: Any,
    observer: CompareObserver,
    cores: int,
) -> list[Session]:
    group = f"{task.desc.removeprefix('vm_mod_fused_')[:40]}, seed {seed}"
    turn: Session

    def note(latency: float, program: Any) -> None:
        turn.note(latency, program)
        observer.measured(group, turn.contender.name, turn.best)

    stop = StopOnInterrupt()
    how = dataclasses.replace(settings.measure, threads=settings.measure.threads or cores)
    try:
        with ExitStack() as stack:
            output = stack.enter_context((settings.out / "tvm.log").open("ab"))
            stack.enter_context(native_messages_to(output))
            stack.enter_context(stop)
            measuring = framework_named(settings.framework).measuring(how, output, note, stop.check)
            pool = stack.enter_context(measuring)
            sessions = [Session(each, task, seed, settings, scorer, pool) for each in settings.contenders]
            # Whose turn comes first rotates too, and a model with short rounds has more of them in a row.
            while waiting := [session for session in sessions if not session.done]:
                turn = min(waiting, key=lambda session: len(session.latencies))
                turn.advance()
                observer.round(group, turn.contender.name, len(turn.latencies), turn.best)
            for session, last in zip(sessions, timed_again(sessions, pool), strict=True):
                session.last = last
    except Exception as error:
        if stop.requested:
            raise Stopped(
                f"stopped in {group}; {settings.out} holds the complete searches, and the same command "
                "resumes"
            ) from error
        raise
    return sessions


def _entry(session: Session) -> dict[str, Any]:
    return {
        "latencies": [latency if np.isfinite(latency) else None for latency in session.latencies],
        "clock": [round(seconds, 3) for seconds in session.clock],
        "spent": {part: round(seconds, 3) for part, seconds in session.spent.items()},
        "last": session.last if np.isfinite(session.last) else None,
    }


def _content(
    settings: CompareSettings, framework: Framework, target: Any, model: str, far_from: str | None
) -> dict[str, Any]:
    """What the folder holds, or the same without any group."""
    description = {
        "framework": framework.name,
        "contenders": [each.name for each in settings.contenders],
        "target": str(target),
        "model": model,
        "trials": settings.trials,
        **({} if far_from is None else {"far_from": far_from}),
    }
    conditions = {
        "far_from": far_from,
        "weights": _weights(settings),
        "cpu": this_cpu().model,
        "measure": json.loads(json.dumps(dataclasses.asdict(settings.measure))),
        "code": code_digest(),
        "versions": {
            "tlp_tvm": __version__,
            "tvm": framework.tvm_version(),
            "python": machine.python_version(),
        },
    }
    path = Path(settings.out) / RESULTS
    if not path.exists():
        head = {"format": FORMAT, "format_version": FORMAT_VERSION}
        return {**head, **description, **conditions, "groups": []}
    before = read_comparison(settings.out).content
    # Older comparisons do not say their framework, nor all of their conditions.
    expected = description | {entry: value for entry, value in conditions.items() if entry in before}
    for entry, value in expected.items():
        if before.get(entry, DEFAULT) != value:
            raise ComparisonError(
                f"{path}: expected a comparison with {entry} {value}, found {before.get(entry)}; "
                "choose another `out`"
            )
    return before


def _weights(settings: CompareSettings) -> str | None:
    """SHA-256 of the weights of those of "tlp"; None if none of them takes part."""
    from tlp_tvm.model.checkpoint import weights_digest

    if not any(each.model.startswith("tlp") for each in settings.contenders):
        return None
    return weights_digest(settings.model or framework_named(settings.framework).default_model)
