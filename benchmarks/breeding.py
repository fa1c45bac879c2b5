"""Does TVM replay what was bred natively, and is it what was bred?

Set-up: of every operator task of Ansor, for a CPU and for a CUDA target (no GPU is needed), programs bred
over five generations, mutated and crossed, from a sample that TVM draws. What a GPU cannot run is bred too.
`trace_breeding.py` asks the same of MetaSchedule.
Checked: the steps after TVM's replay are those bred; the embedding is that of the live state, value for
value; for a GPU, the native verdict is that on the live state.

    python benchmarks/breeding.py [--programs 10000] [--write]    # --write: into docs/search.md
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from bred_programs import bred
from marked_pages import put

from tlp_tvm.ansor.breeding.task_stock import TaskStock
from tlp_tvm.ansor.networks.tasks import OPERATORS, operator_task
from tlp_tvm.ansor.reading.gpu_check import GpuCheck
from tlp_tvm.ansor.reading.states import extract_states
from tlp_tvm.breeding.herd_scores import embedded
from tlp_tvm.layout import FeatureLayout

TARGETS = ("llvm -mcpu=core-avx2 -num-cores=2", "cuda -arch=sm_70")
BATCH = 500
PAGE = Path(__file__).parent.parent / "docs" / "search.md"
HEAD = "| task | target | bred | replayed | same embedding | same verdict for the GPU | sketches | forms |\n"


def main() -> None:
    """Breed, replay, compare and print."""
    parser = argparse.ArgumentParser(description="Replays what was bred.")
    parser.add_argument("--programs", type=int, default=10000, help="of each task and target")
    parser.add_argument("--write", action="store_true", help="write the table into docs/search.md")
    settings = parser.parse_args()
    table = HEAD + "|---" * 8 + "|\n"
    print(table, end="")
    for target in TARGETS:
        for name in OPERATORS:
            table += (row := proof(name, target, settings.programs))
            print(row, end="", flush=True)
    if settings.write:
        put(PAGE, "breeding", table)


def proof(name: str, target: str, count: int) -> str:
    """A row of the table."""
    task = operator_task(name, target)
    stock = TaskStock(task, 1, 256)
    herd = bred(stock, count)
    layout, check = FeatureLayout.preset("ansor"), GpuCheck(task)
    same = verdicts = 0
    for begin in range(0, len(herd), BATCH):
        part = herd.take(np.arange(begin, min(begin + BATCH, len(herd))))
        found = stock.replayer.programs(part, range(len(part)), len(part))
        places, states = np.array([i for i, _ in found]), [state for _, state in found]
        live, own = extract_states(states, layout), embedded(part, layout)[places]
        same += int((live == own).all((1, 2)).sum())
        if stock.gpu is not None:
            verdicts += int((stock.gpu.faults(part)[places] == check.faults(states)).sum())
    verdict = f"{verdicts:,}" if stock.gpu is not None else ""
    cells = (f"{len(herd):,}", f"{stock.replayer.counts.replayed:,}", f"{same:,}", verdict)
    for reason, times in stock.replayer.counts.failed.items():
        print(f"{name}, {target}: {times} not replayed: {reason}")
    shown = f"{stock.stock.sketches} | {stock.stock.forms}"
    return f"| {name} | {target.split(maxsplit=1)[0]} | {' | '.join(cells)} | {shown} |\n"


if __name__ == "__main__":
    main()
