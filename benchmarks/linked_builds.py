"""What building a tuned network takes from the code of measured programs, and from their schedules.

Question: how long does TVM take to build a network whose programs were compiled when they were measured, how
long where it compiles them again, and how long are other programs put into a network that is built?
Set-up: the programs that a tuning chose, and the second fastest of each task that can have it so, compiled
before as a measuring process does; all ways in turns in one process, after a build of each that does not
count.
Baseline: every program compiled again.
Checked before anything is printed: the networks' outputs are equal, bit for bit.
Takeaway: seconds of each way, medians of turns, and the ratio of the first two.

    python benchmarks/linked_builds.py RUN=FILE... [--turns 3]

FILE is what was tuned.
"""

from __future__ import annotations

import argparse
import functools
import statistics
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from machine_code import Run

from tlp_tvm.ansor.compiling.kept_code import CodeOf, KeptCode, name_of
from tlp_tvm.ansor.compiling.newer_llvm import newer_llvm
from tlp_tvm.ansor.compiling.newer_network import wait_for
from tlp_tvm.ansor.compiling.relinking import Relinker
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring import work
from tlp_tvm.ansor.networks.end_to_end import run_once
from tlp_tvm.bench.timing import machine
from tlp_tvm.beside.runtimes import inputs_of
from tlp_tvm.tuning.history import fastest_programs

HEADS = ["network", "tasks", "compiled again, s", "linked, s", "ratio", "other programs, s"]


def compiled(programs: Sequence[Any], code: str) -> KeptCode:
    """The code of programs."""
    kept = KeptCode()
    for program in programs:
        serialized = program.serialize()
        found, _, message = work.compiled(work.Serialized(serialized, code, name_of(serialized[0])))
        assert found is not None, message
        assert found.code is not None, f"expected machine code of {code}"
        kept.add(found.code)
    return kept


def records(run: Run) -> tuple[dict[str, str], dict[str, str]]:
    """Workload key to a record: of the chosen programs, and of others."""
    keys = [str(task.workload_key) for task in run.tasks]
    chosen, found = (
        fastest_programs([run.folder / name], keys, n) for name, n in (("best.json", 1), ("log.json", 2))
    )
    first = {key: lines[0][1] for key, lines in chosen.items()}
    others = {key: [line for _, line in found.get(key, []) if line != first[key]] for key in first}
    return first, {key: lines[0] if lines else first[key] for key, lines in others.items()}


def relinking(run: Run, how: CodeOf, first: Mapping[str, str]) -> Relinker:
    """What puts other programs into the network of the chosen ones."""
    usual, functions = run.built_of(run.folder / "best.json", how)
    return Relinker(usual, functions, first, how.kept, run.tasks)


def timed(build: Callable[[], Any]) -> float:
    """Seconds of a build."""
    began = time.perf_counter()
    wait_for(build())
    return time.perf_counter() - began


def row(run: Run, code: str, turns: int) -> str:
    """A network's row of the table."""
    first, others = records(run)
    again, how = CodeOf(code), CodeOf(code, compiled([*run.chosen(), *(p for _, p in run.fastest(2))], code))
    relinker = relinking(run, how, first)
    others = {key: line if relinker.takes(key, line) else first[key] for key, line in others.items()}
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "others.json"
        log.write_text("".join(others.values()))
        networks = [run.built(again), run.built(how), run.built_of(log, how)[0], relinker.network(others)]
    inputs = inputs_of(run.folder)
    outputs = [run_once(each, inputs, run.target) for each in networks]
    for one, same in ((0, 1), (2, 3)):
        assert all(map(np.array_equal, outputs[one], outputs[same])), f"{run.folder}: outputs differ"
    seconds: list[list[float]] = [[], [], []]
    for _ in range(turns):
        other = functools.partial(relinking(run, how, first).network, others)
        ways = (lambda: run.built(again), lambda: run.built(how), other)
        for build, found in zip(ways, seconds, strict=True):
            found.append(timed(build))
    before, after, other = map(statistics.median, seconds)
    cells = f"{before:.1f} | {after:.1f} | {before / after:.2f}x | {other:.1f}"
    return f"| {run.folder.name} | {len(run.tasks)} | {cells} |"


def main() -> None:
    """Build and print."""
    parser = argparse.ArgumentParser(description="Tuned networks, linked and compiled again.")
    parser.add_argument("runs", nargs="+", metavar="RUN=FILE", help="folder of a tuning, and what was tuned")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    code = newer_llvm(load_tvm())
    print(f"{machine()}\n\n| {' | '.join(HEADS)} |\n{'|---' * len(HEADS)}|")
    for each in options.runs:
        folder, _, network = each.partition("=")
        print(row(Run(Path(folder), network), code, options.turns), flush=True)


if __name__ == "__main__":
    main()
