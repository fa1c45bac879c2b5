"""Does TVM replay the traces that were bred natively, and are they what was bred?

Set-up: of every operator of MetaSchedule, for a CPU, traces bred over five generations, mutated and crossed,
from a sample that TVM draws.
Checked: the embedding is that of TVM's schedule, value for value. Where a block is to be computed at a loop
of one turn, TVM takes the loop outside; such programs count as replayed, and of those that differ then the
embedding is compared as TVM has them.
Baseline: of programs that TVM draws itself, its postprocessors refuse some too.

    .venv-metaschedule/bin/python benchmarks/trace_breeding.py [--programs 10000] [--write]
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from bred_programs import bred
from marked_pages import put

from tlp_tvm.breeding.herd_scores import embedded
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metaschedule.benching.breed import OperatorTask
from tlp_tvm.metaschedule.breeding.trace_stock import TraceStock
from tlp_tvm.metaschedule.networks.workloads import WORKLOADS
from tlp_tvm.metaschedule.reading.traces import extract_traces

BATCH = 250
PAGE = Path(__file__).parent.parent / "docs" / "search.md"
HEADS = ("task", "bred", "refused by TVM", "replayed", "as bred", "different", "same embedding", "designs")


def main() -> None:
    """Breed, replay, compare and print."""
    parser = argparse.ArgumentParser(description="Replays traces that were bred.")
    parser.add_argument("--programs", type=int, default=10000, help="of each operator")
    parser.add_argument("--write", action="store_true", help="write the table into docs/search.md")
    settings = parser.parse_args()
    table = f"| {' | '.join(HEADS)} |\n{'|---' * len(HEADS)}|\n"
    print(table, end="")
    for name in WORKLOADS:
        table += (row := proof(name, settings.programs))
        print(row, end="", flush=True)
    if settings.write:
        put(PAGE, "trace-breeding", table)


def proof(name: str, count: int) -> str:
    """A row of the table."""
    task: Any = OperatorTask(name, "llvm")
    stock, layout = TraceStock(task, 1, threads=2), FeatureLayout.preset("metaschedule")
    herd = bred(stock, count)
    none = np.empty(0, np.uint64)
    different = unchanged = same = 0
    for begin in range(0, len(herd), BATCH):
        part = herd.take(np.arange(begin, min(begin + BATCH, len(herd))))
        made = stock.replayed(part, range(len(part)), len(part), none)
        different += len(made.programs)
        unchanged += int((made.herd.hashes == part.take(np.array(made.places, np.intp)).hashes).sum())
        theirs, own = extract_traces(made.programs, layout), embedded(made.herd, layout)
        same += int((theirs == own).all((1, 2)).sum())
    counts = stock.replayer.counts
    for reason, times in counts.failed.items():
        print(f"{name}: {times} not replayed: {reason}")
    figures = (len(herd), sum(counts.failed.values()), counts.replayed, unchanged, different, same)
    cells = [name, *(f"{figure:,}" for figure in figures), str(stock.stock.forms)]
    return f"| {' | '.join(cells)} |\n"


if __name__ == "__main__":
    main()
