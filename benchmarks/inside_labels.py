"""Does a label say what an operator takes inside the tuned network?

Question: a tuned operator's time inside the network over its label, when both are taken in the same minute.
Set-up: the tuned library of a run, operator by operator, and the labels of the programs
that it was built of, timed as a search times them. Both take turns; an operator's and a program's times are
medians over the rounds. Operators with TVM's own schedule have no label.
Baseline: the labels that the search had found, of which each is its task's lowest.
Checked before anything is printed: every program runs every time.
Takeaway: median over operators, 10th and 90th percentile, and how many operators are within 10%.

    python benchmarks/inside_labels.py RUN=FILE... [--rounds 5]

FILE is what was tuned.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from steadiness import latencies

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.loops import share_loops_of
from tlp_tvm.ansor.measuring.pools import StatePool
from tlp_tvm.ansor.networks.planning import plan_tasks
from tlp_tvm.ansor.networks.profile import profile
from tlp_tvm.bench.timing import machine
from tlp_tvm.beside.runtimes import inputs_of
from tlp_tvm.latency import latency_of_costs
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.machine.loop_threads import set_loop_threads
from tlp_tvm.measuring.code_kinds import noted_code
from tlp_tvm.measuring.pool import MeasureSettings

NEAR = 0.1


class Library:
    """A tuned library, as `profile` takes what `relay.build` gives."""

    def __init__(self, path: Path) -> None:
        self._module = load_tvm().runtime.load_module(str(path))

    def __getitem__(self, name: str) -> Any:
        """One of its functions."""
        return self._module[name]

    def get_graph_json(self) -> str:
        """Its graph."""
        return str(self._module["get_graph_json"]())


def chosen(run: Path, network: str, target: Any) -> dict[str, tuple[Any, float]]:
    """Workload key to the program that the network was built of, to measure, and its label."""
    auto_scheduler = load_tvm().auto_scheduler
    tasks = {each.workload_key: each.task for each in plan_tasks([network], target, lambda _: None)}
    found = {}
    for line in (run / "best.json").read_text().splitlines():
        program, result = auto_scheduler.measure_record.load_record_from_string(line)
        key = str(program.task.workload_key)
        label = latency_of_costs([float(cost) for cost in result.costs])
        found[key] = (auto_scheduler.MeasureInput(tasks[key], program.state), label)
    return found


def rounds_of(
    run: Path, network: str, rounds: int
) -> tuple[NDArray[np.float64], NDArray[np.float64], NDArray[np.float64]]:
    """Seconds of each operator inside and of its label, a row a round; and the labels of the search."""
    written = json.loads((run / "run.json").read_text())
    target = load_tvm().target.Target(written["target"])
    programs = chosen(run, network, target)
    names = {each["task"]: each["name"] for each in written["operators"] if each["task"] in programs}
    keys = list(names)
    set_loop_threads(written["target"])
    share_loops_of(load_tvm())
    threads = this_cpu().threads(written["target"])
    library, values = Library(run / "tuned.so"), inputs_of(run)
    inside, labels = [], []
    how = MeasureSettings(threads=threads, code=noted_code(written["measure"]))
    with StatePool(how, for_tvm=False) as pool:
        for _ in range(rounds):
            [ran] = profile([library], values, target, threads)
            seconds = {each.name: each.seconds for each in ran}
            inside.append([seconds[names[key]] for key in keys])
            labels.append(latencies([programs[key][0] for key in keys], pool))
    return np.array(inside), np.array(labels), np.array([programs[key][1] for key in keys])


def said(ratios: NDArray[np.float64]) -> str:
    """What is printed of ratios."""
    low, high = np.percentile(ratios, [10, 90])
    near = int((np.abs(ratios - 1) <= NEAR).sum())
    return f"{np.median(ratios):.2f} ({low:.2f}-{high:.2f}) | {near} of {len(ratios)}"


def main() -> None:
    """Time all and print."""
    parser = argparse.ArgumentParser(description="Operators inside tuned networks against their labels.")
    parser.add_argument("runs", nargs="+", metavar="RUN=FILE", help="folder of a tuning, and what was tuned")
    parser.add_argument("--rounds", type=int, default=5)
    options = parser.parse_args()
    print(f"{machine()}\n")
    print(
        "| network | inside / label, same minutes | within 10% | inside / the search's label | within 10% |"
    )
    print("|---|---|---|---|---|")
    for each in options.runs:
        run, _, network = each.partition("=")
        inside, labels, searched = rounds_of(Path(run), network, options.rounds)
        now = np.median(inside, axis=0)
        print(f"| {Path(run).name} | {said(now / np.median(labels, axis=0))} | {said(now / searched)} |")


if __name__ == "__main__":
    main()
