"""What a tuned network gains from how it is run: parallel loops shared out as they run, and huge pages.

Question: how long does the same library take as TVM runs it, with our loops, and with huge pages as well?
Set-up: the library of a tuning, loaded three times by `load_tuned` in one process. All take turns in a random
order, each after a pause in which the others' threads fall asleep.
Baseline: as TVM runs it, with as many threads.
Checked before anything is printed: outputs are the same, and only our loops run on our threads.
Takeaway: medians of turns, and the ratio to the column before in the same round: median over all rounds, and
its interval (95%, bootstrap over rounds).

    python benchmarks/tuned_runtime.py RUN... [--turns 60] [--apart 20]

With --apart every run comes so many milliseconds after the one before, as the calls of a service do: threads
sleep in between.
"""

from __future__ import annotations

import argparse
import functools
import os
import random
import shutil
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from unittest import mock

import numpy as np

from tlp_tvm import _core
from tlp_tvm.ansor import load_tuned
from tlp_tvm.bench.timing import machine
from tlp_tvm.beside.runtimes import inputs_of
from tlp_tvm.machine import huge_pages
from tlp_tvm.machine.loop_threads import SHARING, THEIRS
from tlp_tvm.tuning.network.tuned_library import TunedNetwork

PAUSE, TURN = 0.15, 0.2
"""Seconds before a turn, and of one. TVM's threads look for work for a tenth of a second."""

SAMPLES = 2000

TVM, LOOPS, BOTH = "as TVM runs it", "our loops", "and huge pages"


def loaded(run: Path, folder: Path) -> dict[str, TunedNetwork]:
    """A network as TVM runs it, with our loops, and with huge pages too.

    The same library is loaded only once, so that each has a copy.
    """
    found = {}
    for name, theirs, moves in ((TVM, True, False), (LOOPS, False, False), (BOTH, False, True)):
        copy = folder / name
        copy.mkdir()
        for file in ("tuned.json", "tuned.so"):
            shutil.copy(run / file, copy / file)
        if theirs:
            _core.leave_loops()  # those of the run before
            os.environ[SHARING] = THEIRS
        with mock.patch.object(huge_pages, "_move", huge_pages._move if moves else lambda *_: None):
            found[name] = load_tuned(copy)
        os.environ.pop(SHARING, None)
    return found


def turn_of(work: Callable[[], object], apart: float) -> float:
    """Seconds of a run: median of those that fit into a turn, `apart` seconds after each other."""
    time.sleep(PAUSE)
    work()
    found, began = [], time.perf_counter()
    while time.perf_counter() - began < TURN or not found:
        time.sleep(apart)
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def check(networks: dict[str, TunedNetwork], arrays: dict[str, np.ndarray]) -> None:
    """Refuse to compare what computes something else, or runs on the wrong threads."""
    outputs = {}
    for name, network in networks.items():
        before = _core.shared_loops()
        outputs[name] = network(arrays)
        assert (_core.shared_loops() > before) == (name != TVM), f"{name}: whose threads run the loops"
    for found in outputs.values():
        assert all(map(np.array_equal, found, outputs[TVM])), "the outputs are the same"


def main() -> None:
    """Time both and print."""
    parser = argparse.ArgumentParser(description="A tuned network as TVM runs it, and as load_tuned does.")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a tuning")
    parser.add_argument("--turns", type=int, default=60, help="of each")
    parser.add_argument("--apart", type=float, default=0.0, help="milliseconds between two runs")
    options = parser.parse_args()
    print(f"{machine()}\n")
    print(f"| network | {TVM}, ms | {LOOPS} | ratio | {BOTH} | ratio |\n|---|---|---|---|---|---|")
    for run in options.runs:
        with tempfile.TemporaryDirectory() as folder:
            networks, arrays = loaded(run, Path(folder)), inputs_of(run)
            check(networks, arrays)
            turns: dict[str, list[float]] = {name: [] for name in networks}
            for _ in range(options.turns):
                for name in random.sample(list(networks), len(networks)):
                    turns[name].append(
                        turn_of(functools.partial(networks[name], arrays), options.apart / 1e3)
                    )
        cells = [run.name, f"{1e3 * statistics.median(turns[TVM]):.2f}"]
        for name, before in ((LOOPS, TVM), (BOTH, LOOPS)):
            cells += [f"{1e3 * statistics.median(turns[name]):.2f}", ratio(turns[name], turns[before])]
        print(f"| {' | '.join(cells)} |")


def ratio(ours: list[float], theirs: list[float]) -> str:
    """Median over the rounds, and its interval."""
    ratios = np.array(ours) / theirs
    drawn = np.random.default_rng(0).choice(ratios, (SAMPLES, len(ratios)))
    low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])
    return f"{np.median(ratios):.3f} ({low:.3f}-{high:.3f})"


if __name__ == "__main__":
    main()
