"""What a tuned network gains from constant parts of addresses that are folded into instructions.

Question: how long does a network take whose programs are compiled with plain addresses, and with folded ones?
Set-up: the same programs of a tuning, built twice, run in turns on the same input. They were chosen by labels
with folded addresses, so others might be faster with plain ones; per program, see --programs.
Baseline: plain, as TVM computes them.
Checked before anything is printed: outputs agree.
Takeaway: medians of turns and their ratio. With --programs N, also of the N fastest programs of each task:
the ratio of latencies, geometric mean and 10th and 90th percentile, and how many got 2% slower and faster.

    python benchmarks/addresses.py RUN=FILE... [--turns 21] [--programs 0]

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

from tlp_tvm.ansor.graph.pipeline import Prepared, left_out_of, prepare
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.loops import share_loops_of
from tlp_tvm.ansor.loading.targets import quiet_builds
from tlp_tvm.ansor.measuring.pools import StatePool
from tlp_tvm.ansor.networks.builtin import network_from
from tlp_tvm.ansor.networks.end_to_end import build_tuned, compare
from tlp_tvm.ansor.networks.layout_rewrite import keep_layout_where_needed
from tlp_tvm.ansor.networks.tasks import extract_tasks
from tlp_tvm.bench.timing import machine
from tlp_tvm.beside.runtimes import inputs_of
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.machine.loop_threads import set_loop_threads
from tlp_tvm.measuring.child import FOLDED, PLAIN
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.tuning.history import fastest_programs
from tlp_tvm.tuning.network.turns import ROUNDING

ROUNDS = 3
HEAD = ("network", "plain, ms", "folded, ms", "ratio", "programs", "ratio", "slower", "faster")
NOTICED = 0.02
"""Share of a latency that counts as slower or faster."""


class Run:
    """A tuning: its network, ready for both ways."""

    def __init__(self, folder: Path, network: str) -> None:
        """Split the network as the tuning did."""
        written = json.loads((folder / "run.json").read_text())
        self.folder, self.target = folder, load_tvm().target.Target(written["target"])
        set_loop_threads(written["target"])
        share_loops_of(load_tvm())
        self.threads = this_cpu().threads(written["target"])
        module, parameters, _ = network_from(network)
        self.prepared: Prepared = prepare(module, parameters, self.target, left_out_of(written))
        with quiet_builds(), self.prepared.operators():
            tasks, _ = extract_tasks((self.prepared.module, self.prepared.parameters), str(self.target))
            self.tasks, self.kept = keep_layout_where_needed(tasks)

    def built(self, addresses: str) -> Any:
        """The network of the chosen programs."""
        keys = {str(task.workload_key) for task in self.tasks}
        best = self.folder / "best.json"
        with quiet_builds(), self.prepared.operators():
            return build_tuned(self.prepared, self.target, best, self.kept, keys, addresses)[0]

    def fastest(self, count: int) -> list[Any]:
        """Of each task, so many programs with the lowest labels."""
        auto_scheduler = load_tvm().auto_scheduler
        tasks = {str(task.workload_key): task for task in self.tasks}
        load = auto_scheduler.measure_record.load_record_from_string
        return [
            auto_scheduler.MeasureInput(tasks[key], load(line)[0].state)
            for key, programs in fastest_programs([self.folder / "log.json"], list(tasks), count).items()
            for _, line in programs
        ]


def by_program(run: Run, count: int) -> NDArray[np.float64]:
    """Latency with folded addresses over that with plain ones, of each program; the median of rounds."""
    programs = run.fastest(count)
    settings = {way: MeasureSettings(threads=run.threads, addresses=way) for way in (PLAIN, FOLDED)}
    times: dict[str, list[Any]] = {PLAIN: [], FOLDED: []}
    for _ in range(ROUNDS):
        for way in (PLAIN, FOLDED):
            with StatePool(settings[way], for_tvm=False) as pool:
                times[way].append(latencies(programs, pool))
    return np.median(np.array(times[FOLDED]) / np.array(times[PLAIN]), axis=0)


def main() -> None:
    """Build, run and print."""
    parser = argparse.ArgumentParser(description="Tuned networks with plain and with folded addresses.")
    parser.add_argument("runs", nargs="+", metavar="RUN=FILE", help="folder of a tuning, and what was tuned")
    parser.add_argument("--turns", type=int, default=21)
    parser.add_argument("--programs", type=int, default=0)
    options = parser.parse_args()
    print(f"{machine()}\n")
    print(f"| {' | '.join(HEAD)} |\n{'|---' * len(HEAD)}|")
    for each in options.runs:
        folder, _, network = each.partition("=")
        run = Run(Path(folder), network)
        ways = run.built(PLAIN), run.built(FOLDED)
        ran = compare(*ways, inputs_of(run.folder), run.target, options.turns, run.threads)
        assert ran.difference < ROUNDING, f"{folder}: outputs differ by {ran.difference}"
        programs = " | | | |"
        if options.programs:
            ratios = by_program(run, options.programs)
            low, high = np.percentile(ratios, [10, 90])
            mean = float(np.exp(np.log(ratios).mean()))
            slower, faster = int((ratios > 1 + NOTICED).sum()), int((ratios < 1 - NOTICED).sum())
            programs = f"{len(ratios)} | {mean:.3f} ({low:.2f}-{high:.2f}) | {slower} | {faster} |"
        plain, folded = ran.untuned_latency * 1e3, ran.tuned_latency * 1e3
        network = f"{run.folder.name} | {plain:.2f} | {folded:.2f} | {folded / plain:.3f}"
        print(f"| {network} | {programs}", flush=True)


if __name__ == "__main__":
    main()
