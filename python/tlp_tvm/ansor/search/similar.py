"""Programs of a task with other shapes, made to fit: a start for a task that nobody has measured.

The same steps, with each split's lengths moved to divisors of the extents at hand, as near as there are. What
the extents are, and that the steps mean the same loops, shows a random program of the task whose splits are
of the same stages and loops; TVM replays what comes out, and what it refuses is left out. Measured programs
of a task like this are often good ones of the other (Gibson and Cano, Transfer-Tuning, PACT 2022).
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.ansor.search.sampling import sample_states, written_steps
from tlp_tvm.ansor.search.zero_shot import record_of

BEST = 8
"""Programs of each similar task that are tried, the fastest."""

SAMPLED = 24
"""Random programs of a task that show its splits."""

_Steps = list[list[Any]]


def similar_programs(
    files: Sequence[Path], tasks: Sequence[Any], each: int, seed: int
) -> dict[str, list[Any]]:
    """Make measured programs of similar tasks fit.

    Args:
        files: TVM's record files.
        tasks: `auto_scheduler.SearchTask`s.
        each: programs wanted of a task at most.
        seed: any integer.

    Returns:
        Workload key to states, those first whose origin was the fastest of its task; without the tasks of
        which a file holds records itself, and those that nothing fits.

    Raises:
        RecordError: a line is no record.
    """
    target_of = load_tvm().target.Target
    known: dict[tuple[str, str], list[tuple[float, _Steps]]] = {}
    for file in files:
        batch = read_records(file)
        for i, task in enumerate(batch.tasks):
            rows = np.flatnonzero((batch.task_ids == i) & np.isfinite(batch.latencies))
            rows = rows[np.argsort(batch.latencies[rows], kind="stable")][:BEST]
            origin = task.workload_key, str(target_of(task.target))
            known.setdefault(origin, []).extend(
                (float(batch.latencies[row]), json.loads(batch.line(int(row)))["i"][1][1]) for row in rows
            )
    found = {}
    for task in tasks:
        key, target = str(task.workload_key), str(task.target)
        if (key, target) in known:
            continue
        origins = [
            sorted(programs, key=lambda program: program[0])[:BEST]
            for (other, where), programs in known.items()
            if where == target and _form(other) == _form(key)
        ]
        # The fastest of every similar task, then the second of every one.
        ordered = [ranked[i][1] for i in range(BEST) for ranked in origins if i < len(ranked)]
        if ordered and (states := _fitted(task, ordered, each, seed)):
            found[key] = states
    return found


def fitted_lengths(lengths: Sequence[int], extent: int) -> list[int]:
    """Lengths of a split that divide another extent.

    Args:
        lengths: of the original split, the innermost last.
        extent: of the loop at hand.

    Returns:
        As many, whose product divides the extent; the innermost is fitted first.
    """
    left, fitted = extent, []
    for length in reversed(lengths):
        divisors = [n for n in range(1, left + 1) if left % n == 0]
        nearest = min(divisors, key=lambda n: abs(math.log(n / length)))
        fitted.append(nearest)
        left //= nearest
    return fitted[::-1]


def _form(key: str) -> list[int] | None:
    """Ranks of a task's inputs and outputs; None for keys that are not TVM's own."""
    try:
        return [len(shape) for shape in json.loads(key)[1:]]
    except (ValueError, TypeError):
        return None


def _fitted(task: Any, programs: Sequence[_Steps], each: int, seed: int) -> list[Any]:
    shown: dict[str, tuple[Any, list[int]]] = {}
    for state in sample_states(task, SAMPLED, seed):
        steps = written_steps(task, state)
        shown.setdefault(_splits(steps), (state, [step[3] for step in steps if step[0] == "SP"]))
    states: dict[str, Any] = {}
    for steps in programs:
        if len(states) >= each:
            break
        if _splits(steps) not in shown:
            continue
        pattern, extents = shown[_splits(steps)]
        left = iter(extents)
        moved = [_moved(step, next(left)) if step[0] == "SP" else step for step in steps]
        state = _replayed(task, pattern, moved)
        if state is not None:
            states.setdefault(json.dumps(moved), state)
    return list(states.values())


def _moved(split: list[Any], extent: int) -> list[Any]:
    return [*split[:3], extent, fitted_lengths(split[4], extent), *split[5:]]


def _splits(steps: _Steps) -> str:
    """What two programs share whose splits are of the same stages and loops."""
    return json.dumps([[*step[:3], len(step[4])] for step in steps if step[0] == "SP"])


def _replayed(task: Any, pattern: Any, steps: _Steps) -> Any | None:
    tvm = load_tvm()
    record = json.loads(record_of(task, pattern))
    record["i"][1][1] = steps
    try:
        measured, _ = tvm.auto_scheduler.measure_record.load_record_from_string(json.dumps(record))
        state = task.compute_dag.infer_bound_from_state(measured.state)
        task.compute_dag.apply_steps_from_state(state)
        return state.state_object
    except (tvm.TVMError, ValueError, IndexError):
        return None
