"""What a tuned network gains from another way to make machine code of its programs.

Question: how long does a network take whose programs TVM's own LLVM compiles, and a newer one? Or with plain
addresses, and with folded ones (`--codes plain,folded`)?
Set-up: the same programs of a tuning, built twice, run in turns on the same input. They were chosen by labels
of one way, so others might be faster the other way; per program, see --programs.
Baseline: the first of --codes.
Checked before anything is printed: outputs agree.
Takeaway: medians of turns and their ratio. With --programs N, also of the N fastest programs of each task:
the ratio of latencies, geometric mean and 10th and 90th percentile, and how many got 2% slower and faster;
and of the fastest of each task either way, the ratio of the sums over the network.

    python benchmarks/machine_code.py RUN=FILE... [--codes folded,llvm-22] [--turns 21] [--programs 0]

FILE is what was tuned.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from steadiness import latencies

from tlp_tvm.ansor.compiling.kept_code import CodeOf
from tlp_tvm.ansor.compiling.newer_llvm import newer_llvm
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
from tlp_tvm.measuring.code_kinds import FOLDED
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.tuning.history import fastest_programs
from tlp_tvm.tuning.network.turns import ROUNDING

ROUNDS = 3
HEAD = ("ratio", "programs", "ratio", "slower", "faster", "fastest of each task")
NOTICED = 0.02
"""Share of a latency that counts as slower or faster."""


class Run:
    """A tuning: its network, ready for any way."""

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
            network = (self.prepared.module, self.prepared.parameters)
            tasks, times = extract_tasks(network, str(self.target))
            self.tasks, self.kept = keep_layout_where_needed(tasks)
        self.weights = {str(task.workload_key): n for task, n in zip(self.tasks, times, strict=True)}

    def built(self, code: CodeOf) -> Any:
        """The network of the chosen programs."""
        return self.built_of(self.folder / "best.json", code)[0]

    def built_of(self, log: Path, code: CodeOf) -> tuple[Any, dict[str, str]]:
        """The network of a log's programs, and of which task each of its functions is."""
        keys = {str(task.workload_key) for task in self.tasks}
        with quiet_builds(), self.prepared.operators():
            return build_tuned(self.prepared, self.target, log, self.kept, keys, code)

    def chosen(self) -> list[Any]:
        """The chosen programs."""
        return [program for _, program in self._programs(self.folder / "best.json", 1)]

    def fastest(self, count: int) -> list[tuple[str, Any]]:
        """Of each task, by its key, so many programs with the lowest labels."""
        return self._programs(self.folder / "log.json", count)

    def _programs(self, log: Path, count: int) -> list[tuple[str, Any]]:
        auto_scheduler = load_tvm().auto_scheduler
        tasks = {str(task.workload_key): task for task in self.tasks}
        load = auto_scheduler.measure_record.load_record_from_string
        return [
            (key, auto_scheduler.MeasureInput(tasks[key], load(line)[0].state))
            for key, programs in fastest_programs([log], list(tasks), count).items()
            for _, line in programs
        ]


def by_program(run: Run, count: int, codes: Sequence[str]) -> str:
    """Cells of the table: ratios of programs, medians of rounds; and of the sums of the fastest."""
    keys, programs = zip(*run.fastest(count), strict=True)
    times: dict[str, list[Any]] = {code: [] for code in codes}
    for _ in range(ROUNDS):
        for code in codes:
            with StatePool(MeasureSettings(threads=run.threads, code=code), for_tvm=False) as pool:
                times[code].append(latencies(programs, pool))
    before, after = (np.array(times[code]) for code in codes)
    ratios = np.median(after / before, axis=0)
    low, high = np.percentile(ratios, [10, 90])
    slower, faster = int((ratios > 1 + NOTICED).sum()), int((ratios < 1 - NOTICED).sum())
    sums = [_sum_of_fastest(keys, np.median(each, axis=0), run.weights) for each in (before, after)]
    mean = float(np.exp(np.log(ratios).mean()))
    spread = f"{mean:.3f} ({low:.2f}-{high:.2f})"
    return f"{len(ratios)} | {spread} | {slower} | {faster} | {sums[1] / sums[0]:.3f} |"


def _sum_of_fastest(keys: Sequence[str], times: NDArray[np.float64], weights: dict[str, int]) -> float:
    best: dict[str, float] = {}
    for key, seconds in zip(keys, times, strict=True):
        best[key] = min(seconds, best.get(key, np.inf))
    return sum(weights[key] * seconds for key, seconds in best.items())


def main() -> None:
    """Build, run and print."""
    parser = argparse.ArgumentParser(description="Tuned networks, compiled one way and another.")
    parser.add_argument("runs", nargs="+", metavar="RUN=FILE", help="folder of a tuning, and what was tuned")
    parser.add_argument(
        "--codes", default=f"{FOLDED},{newer_llvm(load_tvm())}", help="the baseline, and the other"
    )
    parser.add_argument("--turns", type=int, default=21)
    parser.add_argument("--programs", type=int, default=0)
    options = parser.parse_args()
    codes = options.codes.split(",")
    heads = ["network", *(f"{code}, ms" for code in codes), *HEAD]
    print(f"{machine()}\n\n| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for each in options.runs:
        folder, _, network = each.partition("=")
        run = Run(Path(folder), network)
        ways = [run.built(CodeOf(code)) for code in codes]
        ran = compare(*ways, inputs_of(run.folder), run.target, options.turns, run.threads)
        assert ran.difference < ROUNDING, f"{folder}: outputs differ by {ran.difference}"
        programs = by_program(run, options.programs, codes) if options.programs else " | | | | |"
        before, after = ran.untuned_latency * 1e3, ran.tuned_latency * 1e3
        network = f"{run.folder.name} | {before:.2f} | {after:.2f} | {after / before:.3f}"
        print(f"| {network} | {programs}", flush=True)


if __name__ == "__main__":
    main()
