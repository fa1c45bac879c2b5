"""How much sooner are programs measured by children that stay than by TVM's own builder and runner?

Set-up: random programs of a convolution for this machine's CPU, in batches as the search measures them.
Baseline: TVM's LocalBuilder and LocalRunner, which start children for every batch, link each program and load
it; both with two children and the same number of timings. Checked before the rates are printed: every program
runs both ways, and the latencies agree (median ratio within 1.5). Takeaway: programs/s of both, their ratio.

    python benchmarks/measuring.py [--programs 32]
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
from typing import Any

from tlp_tvm.ansor.cpu import this_cpu
from tlp_tvm.ansor.locate import load_tvm
from tlp_tvm.ansor.measure import MeasureSettings, MeasuringPool
from tlp_tvm.ansor.sampling import sample_states
from tlp_tvm.ansor.tasks import operator_task
from tlp_tvm.bench.timing import machine

BATCH = 8
CHILDREN = 2


def measured(inputs: list[Any], how: MeasureSettings) -> tuple[list[float], float]:
    """Least latencies and seconds, through whatever builder and runner TVM has registered."""
    auto_scheduler = load_tvm().auto_scheduler
    builder = auto_scheduler.LocalBuilder(n_parallel=CHILDREN)
    runner = auto_scheduler.LocalRunner(
        number=1, repeat=how.timing.repeat, min_repeat_ms=how.timing.min_repeat_ms
    )
    began = time.perf_counter()
    latencies = []
    for begin in range(0, len(inputs), BATCH):
        batch = inputs[begin : begin + BATCH]
        for result in runner.run(batch, builder.build(batch, 0), 0):
            assert result.error_no == 0, result.error_msg
            latencies.append(min(cost.value for cost in result.costs))
    return latencies, time.perf_counter() - began


def main() -> None:
    """Measure both ways, compare, and print."""
    parser = argparse.ArgumentParser(description="Measuring by children that stay, and by TVM's own.")
    parser.add_argument("--programs", type=int, default=32)
    options = parser.parse_args()
    cpu = this_cpu()
    os.environ["TVM_NUM_THREADS"] = str(cpu.cores)
    how = MeasureSettings(children=CHILDREN, threads=cpu.cores)
    task = operator_task("conv2d", cpu.target)
    states = sample_states(task, options.programs)[: options.programs]
    inputs = [load_tvm().auto_scheduler.MeasureInput(task, state) for state in states]

    theirs, their_seconds = measured(inputs, how)
    with MeasuringPool(how):
        ours, our_seconds = measured(inputs, how)

    agreement = statistics.median(a / b for a, b in zip(ours, theirs, strict=True))
    assert 1 / 1.5 < agreement < 1.5, f"latencies differ by {agreement:.2f}"
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    print(f"TVM's builder and runner  {len(inputs) / their_seconds:6.2f} programs/s")
    print(f"children that stay        {len(inputs) / our_seconds:6.2f} programs/s")
    print(f"ratio                     {their_seconds / our_seconds:6.2f} (latencies agree: {agreement:.2f})")


if __name__ == "__main__":
    main()
