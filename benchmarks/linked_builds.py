"""What building a tuned network takes from the code of measured programs, and from their schedules.

Question: how long does TVM take to build a network whose programs were compiled when they were measured, and
how long where it compiles them again?
Set-up: the programs that a tuning chose, compiled before as a measuring process does; both ways in turns in
one process, after a build of each that does not count.
Baseline: every program compiled again.
Checked before anything is printed: the networks' outputs are equal, bit for bit.
Takeaway: seconds of both, medians of turns, and their ratio.

    python benchmarks/linked_builds.py RUN=FILE... [--turns 3]

FILE is what was tuned.
"""

from __future__ import annotations

import argparse
import statistics
import time
from pathlib import Path

import numpy as np
from machine_code import Run

from tlp_tvm.ansor.compiling.kept_code import CodeOf, KeptCode, name_of
from tlp_tvm.ansor.compiling.newer_llvm import newer_llvm
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring import work
from tlp_tvm.ansor.networks.end_to_end import run_once
from tlp_tvm.bench.timing import machine
from tlp_tvm.beside.runtimes import inputs_of


def compiled(run: Run, code: str) -> KeptCode:
    """The code of the chosen programs."""
    kept = KeptCode()
    for program in run.chosen():
        serialized = program.serialize()
        found, _, message = work.compiled(work.Serialized(serialized, code, name_of(serialized[0])))
        assert found is not None, message
        assert found.code is not None, f"expected machine code of {code}"
        kept.add(found.code)
    return kept


def timed(run: Run, how: CodeOf) -> float:
    """Seconds of a build."""
    began = time.perf_counter()
    run.built(how)
    return time.perf_counter() - began


def main() -> None:
    """Build and print."""
    parser = argparse.ArgumentParser(description="Tuned networks, linked and compiled again.")
    parser.add_argument("runs", nargs="+", metavar="RUN=FILE", help="folder of a tuning, and what was tuned")
    parser.add_argument("--turns", type=int, default=3)
    options = parser.parse_args()
    code = newer_llvm(load_tvm())
    heads = ["network", "tasks", "compiled again, s", "linked, s", "ratio"]
    print(f"{machine()}\n\n| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for each in options.runs:
        folder, _, network = each.partition("=")
        run = Run(Path(folder), network)
        ways = (CodeOf(code), CodeOf(code, compiled(run, code)))
        inputs = inputs_of(run.folder)
        outputs = [run_once(run.built(how), inputs, run.target) for how in ways]
        assert all(map(np.array_equal, *outputs)), f"{folder}: outputs differ"
        turns = [[timed(run, how) for how in ways] for _ in range(options.turns)]
        before, after = (statistics.median(seconds) for seconds in zip(*turns, strict=True))
        cells = f"{before:.1f} | {after:.1f} | {before / after:.2f}x"
        print(f"| {run.folder.name} | {len(run.tasks)} | {cells} |", flush=True)


if __name__ == "__main__":
    main()
