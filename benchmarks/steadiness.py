"""How much do measurements of one program vary, and how much does repeating doubtful ones help?

Set-up: the fastest of some random programs of a built-in operator's task, measured repeatedly as in a search:
once each, and with doubtful ones timed again (`MeasureSettings.again`). Both ways take turns, so that other
work on the machine affects both alike, and keep their processes throughout.
Baseline: the same without timing again.
Checked before anything is printed: every program runs every time.
Takeaway: standard deviation of the logarithm of a program's latency over the rounds, the share of
measurements above 1.1 and 1.3 times the program's lowest, and seconds.

    python benchmarks/steadiness.py [OPERATOR] [--programs 16] [--rounds 8]
"""

from __future__ import annotations

import argparse
import dataclasses
import os
import time
from contextlib import ExitStack

import numpy as np

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring.pools import StatePool
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.bench.timing import machine
from tlp_tvm.latency import latency_of_costs
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.pool import MeasureSettings

RANDOM = 64
"""Programs of which the fastest are taken."""


def latencies(inputs: list[object], pool: StatePool) -> list[float]:
    """Seconds of each program."""
    outcomes = dict(pool.run_all(pool.build(inputs), inputs))
    assert not any(outcome.error for outcome in outcomes.values()), "every program runs"
    return [latency_of_costs(outcomes[i].costs) for i in range(len(inputs))]


def main() -> None:
    """Measure both ways and print."""
    parser = argparse.ArgumentParser(description="Measurements of one program, once and again.")
    parser.add_argument("operator", nargs="?", default="conv2d")
    parser.add_argument("--programs", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    cpu = this_cpu()
    os.environ["TVM_NUM_THREADS"] = str(cpu.cores)
    task = operator_task(options.operator, cpu.target)
    make = load_tvm().auto_scheduler.MeasureInput
    inputs = [make(task, state) for state in sample_states(task, RANDOM)[:RANDOM]]
    again = MeasureSettings(threads=cpu.cores, timing=Timing(min_repeat_ms=12))
    ways = {"once": dataclasses.replace(again, again=0), "doubtful ones again": again}
    with ExitStack() as stack:
        pools = {name: stack.enter_context(StatePool(how, for_tvm=False)) for name, how in ways.items()}
        first = latencies(inputs, pools["once"])
        inputs = [inputs[i] for i in np.argsort(first)[: options.programs]]
        seconds = dict.fromkeys(ways, 0.0)
        found: dict[str, list[list[float]]] = {name: [] for name in ways}
        for _ in range(options.rounds):
            for name, pool in pools.items():
                began = time.perf_counter()
                found[name].append(latencies(inputs, pool))
                seconds[name] += time.perf_counter() - began
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    print(f"{options.operator}: {len(inputs)} programs, {options.rounds} times")
    for name, rounds in found.items():
        table = np.array(rounds)
        over = table / table.min(0)
        print(
            f"{name:<20} {np.log(table).std(0).mean():.3f} (1.1 times the lowest: {np.mean(over > 1.1):.0%}, "
            f"1.3 times: {np.mean(over > 1.3):.0%}), {seconds[name]:.0f} s"
        )


if __name__ == "__main__":
    main()
