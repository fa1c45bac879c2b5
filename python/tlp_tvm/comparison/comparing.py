"""Tasks times seeds; in each group every model searches in turn, a round at a time."""

from __future__ import annotations

import dataclasses
import json
import platform as machine
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np

import tlp_tvm
from tlp_tvm.ansor.cpu import this_cpu
from tlp_tvm.ansor.locate import tvm_info
from tlp_tvm.ansor.measure import MeasuringPool
from tlp_tvm.ansor.native_messages import native_messages_to
from tlp_tvm.ansor.stopping import StopOnInterrupt, Stopped
from tlp_tvm.ansor.tune_inputs import cores_of, target_of
from tlp_tvm.collection.plan import PlannedTask, plan_tasks
from tlp_tvm.comparison.session import Session
from tlp_tvm.comparison.settings import CompareObserver, CompareSettings
from tlp_tvm.comparison.summary import FORMAT, FORMAT_VERSION, RESULTS, Comparison, read_comparison
from tlp_tvm.errors import ComparisonError
from tlp_tvm.files import write_whole


def compare(settings: CompareSettings, observer: CompareObserver | None = None) -> Comparison:
    """Search the same tasks under several models, or go on with a comparison that was stopped.

    A task and seed whose searches were cut off begin anew; those that were whole stay.

    Args:
        settings: what to compare and how.
        observer: is told how it goes.

    Returns:
        What came of it; `comparison.json` in the folder says the same.

    Raises:
        ComparisonError: it cannot start, was stopped, or the folder holds another comparison.
        NetworkError: no such network.
        TuningError: no such target.
        ModelFileError: the model cannot be read.
    """
    from tlp_tvm.model.checkpoint import load_model

    observer = observer or CompareObserver()
    target = target_of(settings.target)
    scorer = load_model(settings.model)
    tasks = _largest(plan_tasks(settings.networks, target, observer.step), settings.tasks)
    settings.out.mkdir(parents=True, exist_ok=True)
    content = _content(settings, target, getattr(scorer, "name", settings.model))
    groups = [(task, seed) for task in tasks for seed in range(settings.seeds)]
    done = {(entry["task"], entry["seed"]) for entry in content["groups"]}
    trials = settings.trials * len(settings.contenders)
    observer.planned(len(groups), sum((task.id, seed) in done for task, seed in groups), trials)
    for task, seed in groups:
        if (task.id, seed) in done:
            continue
        sessions = _search(task, seed, settings, scorer, observer, cores_of(target))
        content["groups"].append(
            {
                "task": task.id,
                "desc": str(task.task.desc),
                "workload_key": task.workload_key,
                "networks": task.weights,
                "flop": float(task.task.compute_dag.flop_ct),
                "seed": seed,
                "sessions": {session.contender.name: _entry(session) for session in sessions},
            }
        )
        write_whole(settings.out / RESULTS, json.dumps(content) + "\n")
    return read_comparison(settings.out)


def _search(
    task: PlannedTask,
    seed: int,
    settings: CompareSettings,
    scorer: Any,
    observer: CompareObserver,
    cores: int,
) -> list[Session]:
    group = f"{str(task.task.desc).removeprefix('vm_mod_fused_')[:40]}, seed {seed}"
    sessions = [Session(each, task.task, seed, settings, scorer) for each in settings.contenders]
    turn: Session = sessions[0]

    def on_result(_input: Any, result: Any, _reason: str) -> None:
        turn.note(result)
        observer.measured(group, turn.contender.name, turn.best)

    stop = StopOnInterrupt()
    how = dataclasses.replace(settings.measure, threads=settings.measure.threads or cores)
    try:
        with ExitStack() as stack:
            output = stack.enter_context((settings.out / "tvm.log").open("ab"))
            stack.enter_context(native_messages_to(output))
            stack.enter_context(stop)
            pool = stack.enter_context(MeasuringPool(how, output, on_result, stop.check))
            # Whose turn comes first rotates too, and a model with short rounds has more of them in a row.
            while waiting := [session for session in sessions if not session.done]:
                turn = min(waiting, key=lambda session: len(session.latencies))
                turn.advance(pool)
    except Exception as error:
        if stop.requested:
            raise Stopped(
                f"stopped in {group}; {settings.out} holds the whole ones, and the same command goes on"
            ) from error
        raise
    return sessions


def _largest(tasks: Sequence[PlannedTask], count: int) -> list[PlannedTask]:
    """The tasks with the most operations of each network; in all, so many times the networks at most."""

    def operations(task: PlannedTask, network: str) -> float:
        return float(task.task.compute_dag.flop_ct) * task.weights[network]

    chosen: dict[str, PlannedTask] = {}
    for network in dict.fromkeys(network for task in tasks for network in task.weights):
        own = [task for task in tasks if network in task.weights and task.id not in chosen]
        own.sort(key=lambda task: operations(task, network), reverse=True)
        chosen |= {task.id: task for task in own[: count or len(own)]}
    return list(chosen.values())


def _entry(session: Session) -> dict[str, Any]:
    return {
        "latencies": [latency if np.isfinite(latency) else None for latency in session.latencies],
        "clock": [round(seconds, 3) for seconds in session.clock],
        "spent": {part: round(seconds, 3) for part, seconds in session.spent.items()},
    }


def _content(settings: CompareSettings, target: Any, model: str) -> dict[str, Any]:
    """What the folder holds, or the same without any group."""
    description = {
        "contenders": [each.name for each in settings.contenders],
        "target": str(target),
        "model": model,
        "trials": settings.trials,
    }
    path = Path(settings.out) / RESULTS
    if path.exists():
        before = read_comparison(settings.out).content
        for entry, value in description.items():
            if before[entry] != value:
                raise ComparisonError(
                    f"{path}: expected a comparison with {entry} {value}, found {before[entry]}; "
                    "choose another --out"
                )
        return before
    return {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        **description,
        "cpu": this_cpu().model,
        "versions": {
            "tlp_tvm": tlp_tvm.__version__,
            "tvm": tvm_info().version,
            "python": machine.python_version(),
        },
        "groups": [],
    }
