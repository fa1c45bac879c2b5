"""Which of a task's fastest programs is the fastest inside the network.

A label says how a program runs by itself. Inside a network its caches, its memory and its neighbours are
others: of programs whose labels are nearly the same, one may take a third longer there. So the network is
built several times, with other programs of all tasks at once, and each task keeps what ran fastest.
"""

from __future__ import annotations

import collections
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from numpy.typing import NDArray

from tlp_tvm.ansor.compiling.code_size import code_sizes
from tlp_tvm.ansor.compiling.newer_network import is_compiled
from tlp_tvm.ansor.networks.end_to_end import compare
from tlp_tvm.ansor.networks.profile import profile
from tlp_tvm.tuning.network.operator_times import Ran

CANDIDATES = 8
"""Programs of a task that are tried, at most."""

BUILT = 4
"""The same of tasks whose other programs TVM has to build the network with."""

MOST_BYTES = 4e9
"""Of the parameters of all networks that are built with candidates; each of them has its own."""

MOST_CODE = 5000
"""Lines of LLVM's language of one operator by TVM's own schedule."""

SLOWEST = 1.25
"""Largest ratio of a candidate's label to the lowest."""

GAIN = 0.02
"""Share of a task's time inside that another program must gain: a profile is no finer."""

Programs = Mapping[str, Sequence[tuple[float, str]]]
"""Workload key to latencies and record lines, the fastest first."""

Built = tuple[Any, dict[str, str]]
"""A network that TVM built, and name of each of its functions to the workload key of its task."""


def choose_inside(
    usual: Built,
    programs: Programs,
    build: Callable[[Mapping[str, str]], Built | None],
    inputs: dict[str, NDArray[Any]],
    target: Any,
    threads: int,
    turns: int,
    hopeless: Collection[str] = (),
) -> tuple[Built, dict[str, str]] | None:
    """Build a network of the programs that are the fastest inside it.

    Args:
        usual: built of each task's fastest program by itself.
        programs: the fastest of each task.
        build: compiles the network with a record line for each workload key; None where TVM cannot.
        inputs: by name.
        target: TVM target.
        threads: to run with.
        turns: timings of the network that is built, and of the usual one.
        hopeless: workload keys of tasks that are not tried with TVM's own schedules.

    Returns:
        It and its record lines; None where it is no faster than the usual one.
    """
    first, *others = variants(programs, hopeless)
    tried = [built_small(lines, first, build) for lines in others]
    others_built = [(lines, found) for lines, found in tried if found is not None and is_compiled(found[0])]
    networks = [(first, usual), *others_built]
    ran = profile([built for _, (built, _) in networks], inputs, target, threads)
    better = fastest([(r, tasks) for r, (_, (_, tasks)) in zip(ran, networks, strict=True)], programs)
    if not better:
        return None
    chosen = dict(first)
    for key, place in better.items():
        line = networks[place][0].get(key)
        if line is None:
            del chosen[key]
        else:
            chosen[key] = line
    found = build(chosen)
    if (
        found is None
        or not is_compiled(found[0])
        or compare(usual[0], found[0], inputs, target, turns, threads).speedup <= 1
    ):
        return None
    return found, chosen


def built_small(
    lines: Mapping[str, str], first: Mapping[str, str], build: Callable[[Mapping[str, str]], Built | None]
) -> tuple[Mapping[str, str], Built | None]:
    """Build a network, with a task's first program where TVM's own schedule of it is far too much code.

    Args:
        lines: workload key to record line; a task without one has TVM's own schedule.
        first: the same, of all tasks that have a program.
        build: compiles the network; None where TVM cannot.

    Returns:
        What it is of in the end, and the network.
    """
    found = build(lines)
    if found is None or first.keys() <= lines.keys():
        return lines, found
    sizes, tasks = code_sizes(found[0]), found[1]
    large = {key for name, key in tasks.items() if sizes.get(name, 0) > MOST_CODE}
    if not (instead := {key: first[key] for key in large if key in first and key not in lines}):
        return lines, found
    lines = {**lines, **instead}
    return lines, build(lines)


def variants(programs: Programs, hopeless: Collection[str] = ()) -> list[dict[str, str]]:
    """What networks to build.

    Args:
        programs: of each task.
        hopeless: workload keys of tasks that are not tried with TVM's own schedules.

    Returns:
        Workload key to record line, for each network. The first has every task's first program, the next the
        second where there is one with nearly the same label, and so on; the last has TVM's own schedules, and
        the first program of what is hopeless with these, unless that is all there is.
    """
    first = {key: found[0][1] for key, found in programs.items()}
    near = {
        key: [line for latency, line in found[:CANDIDATES] if latency <= SLOWEST * found[0][0]]
        for key, found in programs.items()
    }
    others = [
        {key: lines[i] if i < len(lines) else lines[0] for key, lines in near.items()}
        for i in range(1, max(map(len, near.values()), default=0))
    ]
    own = {key: line for key, line in first.items() if key in hopeless}
    return [first, *others, *([own] if own != first else [])]


def fastest(ran: Sequence[tuple[Sequence[Ran], Mapping[str, str]]], keys: Collection[str]) -> dict[str, int]:
    """Of each task, the network in which it ran fastest.

    Args:
        ran: the operators of each network, and name of a function to the workload key of its task.
        keys: of the tasks that have a program.

    Returns:
        Workload key to the network, for the tasks where it is not the first.
    """
    seconds = [_by_task(operators, tasks) for operators, tasks in ran]
    best = {}
    for key in seconds[0].keys() & set(keys):
        usual = seconds[0][key]
        place = min(range(len(seconds)), key=lambda i: seconds[i].get(key, usual))
        if seconds[place].get(key, usual) < (1 - GAIN) * usual:
            best[key] = place
    return best


def _by_task(operators: Sequence[Ran], tasks: Mapping[str, str]) -> dict[str, float]:
    found: dict[str, float] = collections.defaultdict(float)
    for each in operators:
        found[tasks.get(each.name, "")] += each.seconds * each.count
    return found
