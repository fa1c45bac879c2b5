"""How much faster do persistent processes measure programs than TVM's own builder and runner?

Set-up: random programs of a network's tasks for this machine's CPU, in batches as a collection measures them.
Both ways take turns, batch by batch, with two processes and the same number of timings each.
Baseline: TVM's LocalBuilder and LocalRunner, which start processes for every batch, link each program and
load it. Ours also leaves out TVM's elimination of common subexpressions, which LLVM does again.
Checked before the rates are printed: every program runs both ways, and the latencies agree (geometric mean of
the ratios within 1.1).
Takeaway: programs/s of both, their ratio, and the effect of leaving out that pass on the latencies.

    python benchmarks/measuring.py [NET] [--programs 64]
"""

from __future__ import annotations

import argparse
import os
import time
from typing import Any

import numpy as np

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring.pools import StatePool
from tlp_tvm.ansor.networks.planning import plan_tasks
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.bench.timing import machine
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.measuring.code_kinds import PLAIN
from tlp_tvm.measuring.pool import MeasureSettings

BATCH = 16
CHILDREN = 2


def stock(inputs: list[Any], how: MeasureSettings) -> list[float]:
    """Lowest latencies by TVM's own builder and runner."""
    auto_scheduler = load_tvm().auto_scheduler
    builder = auto_scheduler.LocalBuilder(n_parallel=CHILDREN, timeout=how.build_timeout_s)
    timing = how.timing
    runner = auto_scheduler.LocalRunner(number=1, repeat=timing.repeat, min_repeat_ms=timing.min_repeat_ms)
    results = runner.run(inputs, builder.build(inputs, 0), 0)
    return [
        float("nan") if result.error_no else min(cost.value for cost in result.costs) for result in results
    ]


def ours(inputs: list[Any], pool: StatePool) -> list[float]:
    """Least latencies by children that stay."""
    outcomes = dict(pool.run_all(pool.build(inputs), inputs))
    return [min(outcomes[i].costs, default=float("nan")) for i in range(len(inputs))]


def main() -> None:
    """Measure both ways, compare, and print."""
    parser = argparse.ArgumentParser(description="Measuring by children that stay, and by TVM's own.")
    parser.add_argument("network", nargs="?", default="resnet_18-224")
    parser.add_argument("--programs", type=int, default=64)
    options = parser.parse_args()
    cpu = this_cpu()
    os.environ["TVM_NUM_THREADS"] = str(cpu.cores)
    how = MeasureSettings(children=CHILDREN, threads=cpu.cores, code=PLAIN)
    tvm = load_tvm()
    tasks = [
        each.task for each in plan_tasks([options.network], tvm.target.Target(cpu.target), lambda _: None)
    ]
    each = -(-options.programs // len(tasks))
    inputs = [
        tvm.auto_scheduler.MeasureInput(task, state)
        for task in tasks
        for state in sample_states(task, each)[:each]
    ][: options.programs]

    seconds, latencies = {"stock": 0.0, "ours": 0.0}, {"stock": [], "ours": []}
    with StatePool(how, for_tvm=False) as pool:
        ours(inputs[:1], pool)  # children start once; a batch of TVM's starts its own every time
        for begin in range(0, len(inputs), BATCH):
            batch = inputs[begin : begin + BATCH]
            for name, way in (
                ("stock", lambda part: stock(part, how)),
                ("ours", lambda part: ours(part, pool)),
            ):
                began = time.perf_counter()
                latencies[name] += way(batch)
                seconds[name] += time.perf_counter() - began
    ratios = np.array(latencies["ours"]) / np.array(latencies["stock"])
    failed = {name: int(np.isnan(values).sum()) for name, values in latencies.items()}
    ratios = ratios[np.isfinite(ratios)]
    agreement = float(np.exp(np.log(ratios).mean()))
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    for name, words in (("stock", "TVM's builder and runner"), ("ours", "children that stay")):
        print(f"{words:<25} {len(inputs) / seconds[name]:6.2f} programs/s, {failed[name]} failed")
    print(f"ratio                     {seconds['stock'] / seconds['ours']:6.2f}")
    low, high = np.quantile(ratios, [0.1, 0.9])
    print(f"latency, ours / TVM's     {agreement:6.3f} (geometric mean; 80% within {low:.3f} to {high:.3f})")
    assert 1 / 1.1 < agreement < 1.1, "the two ways do not measure the same"


if __name__ == "__main__":
    main()
