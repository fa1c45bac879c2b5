"""How much do measurements of one program vary, and how much does repeating doubtful ones help?

Set-up: the fastest of some random programs of a built-in operator's task, or those that a tuning measured,
measured repeatedly as in a search: once each, and with doubtful ones timed again (`MeasureSettings.again`).
Both ways take turns, so that other work on the machine affects both alike, and keep their processes.
Baseline: the same without timing again.
Checked before anything is printed: every program runs every time.
Takeaway: standard deviation of the logarithm of a program's latency over the rounds, the share of
measurements above 1.1 and 1.3 times the program's lowest, how much slower than a task's fastest the one is
that a round's measurements choose (by their lowest, mean over tasks), and seconds.

    python benchmarks/steadiness.py [OPERATOR] [--programs 16] [--rounds 8]
    python benchmarks/steadiness.py --run RUN --network FILE [--from 100] [--programs 80] [--rounds 4]
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import time
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring.pools import StatePool
from tlp_tvm.ansor.networks.planning import plan_tasks
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.bench.timing import machine
from tlp_tvm.latency import latency_of_costs
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.pool import MeasureSettings

RANDOM = 64
"""Programs of which the fastest are taken."""

BATCH = 8


def latencies(inputs: list[Any], pool: StatePool) -> list[float]:
    """Seconds of each program."""
    outcomes = {}
    for begin in range(0, len(inputs), BATCH):
        batch = inputs[begin : begin + BATCH]
        outcomes |= {begin + i: outcome for i, outcome in pool.run_all(pool.build(batch), batch)}
    assert not any(outcome.error for outcome in outcomes.values()), "every program runs"
    return [latency_of_costs(outcomes[i].costs) for i in range(len(inputs))]


def of_run(run: Path, network: str, begin: int, count: int) -> list[Any]:
    """Programs that a tuning measured, in its order."""
    auto_scheduler = load_tvm().auto_scheduler
    target = load_tvm().target.Target(json.loads((run / "run.json").read_text())["target"])
    tasks = {each.workload_key: each.task for each in plan_tasks([network], target, lambda _: None)}
    read = auto_scheduler.measure_record.load_record_from_string
    records = map(read, (run / "log.json").read_text().splitlines())
    programs = [program for program, result in records if result.error_no == 0][begin : begin + count]
    return [auto_scheduler.MeasureInput(tasks[str(each.task.workload_key)], each.state) for each in programs]


def excess_of_choice(table: NDArray[np.float64], lowest: NDArray[np.float64], keys: Sequence[str]) -> float:
    """How much slower what one round finds the fastest of a task is than the task's fastest; mean."""
    found = []
    for key in set(keys):
        of_task = [i for i, each in enumerate(keys) if each == key]
        chosen = table[:, of_task].argmin(1)
        found.append(np.log(lowest[of_task][chosen] / lowest[of_task].min()).mean())
    return float(np.exp(np.mean(found)) - 1)


def main() -> None:
    """Measure both ways and print."""
    parser = argparse.ArgumentParser(description="Measurements of one program, once and again.")
    parser.add_argument("operator", nargs="?", default="conv2d")
    parser.add_argument("--run", type=Path, help="folder of a tuning, for its programs")
    parser.add_argument("--network", help="that was tuned")
    parser.add_argument("--from", dest="begin", type=int, default=100, help="the first of them")
    parser.add_argument("--programs", type=int, default=16)
    parser.add_argument("--rounds", type=int, default=8)
    options = parser.parse_args()
    if options.run and not options.network:
        parser.error("--run: expected --network too, found none; give the file or name that was tuned")
    cpu = this_cpu()
    os.environ["TVM_NUM_THREADS"] = str(cpu.cores)
    if options.run:
        inputs = of_run(options.run, options.network, options.begin, options.programs)
        again = MeasureSettings(threads=cpu.cores)
    else:
        task = operator_task(options.operator, cpu.target)
        make = load_tvm().auto_scheduler.MeasureInput
        inputs = [make(task, state) for state in sample_states(task, RANDOM)[:RANDOM]]
        again = MeasureSettings(threads=cpu.cores, timing=Timing(min_repeat_ms=12))
    ways = {"once": dataclasses.replace(again, again=0), "doubtful ones again": again}
    with ExitStack() as stack:
        pools = {name: stack.enter_context(StatePool(how, for_tvm=False)) for name, how in ways.items()}
        if not options.run:
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
    print(f"{options.run or options.operator}: {len(inputs)} programs, {options.rounds} times")
    keys = [str(each.task.workload_key) for each in inputs]
    lowest = np.concatenate([np.array(rounds) for rounds in found.values()]).min(0)
    for name, rounds in found.items():
        table = np.array(rounds)
        over, excess = table / lowest, excess_of_choice(table, lowest, keys)
        print(
            f"{name:<20} {np.log(table).std(0).mean():.3f} (1.1 times the lowest: {np.mean(over > 1.1):.0%}, "
            f"1.3 times: {np.mean(over > 1.3):.0%}), choice {excess:.1%} slower, "
            f"{seconds[name] / options.rounds / len(inputs):.3f} s/program"
        )


if __name__ == "__main__":
    main()
