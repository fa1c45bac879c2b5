"""What sharing out parallel loops as they run gains a tuned network.

Question: how long does a tuned network take with TVM's parallel loops, and with ours?
Set-up: the library of a tuning, loaded twice by `load_tuned` in one process, once with TVM's loops. Both take
turns in a random order, each after a pause in which the other's threads fall asleep.
Baseline: TVM's loops, with as many threads.
Checked before anything is printed: both give the same outputs, and only ours run on our threads.
Takeaway: medians of turns, and the ratio of a pair of turns: median over all pairs, and its interval (95%,
bootstrap over pairs).

    python benchmarks/loops.py RUN... [--turns 60]
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

import numpy as np

from tlp_tvm import _core
from tlp_tvm.ansor import load_tuned
from tlp_tvm.bench.timing import machine
from tlp_tvm.beside.runtimes import inputs_of
from tlp_tvm.machine.loop_threads import SHARING, THEIRS
from tlp_tvm.tuning.network.tuned_library import TunedNetwork

PAUSE, TURN = 0.15, 0.2
"""Seconds before a turn, and of one. TVM's threads look for work for a tenth of a second."""

SAMPLES = 2000


def both(run: Path, copy: Path) -> dict[str, TunedNetwork]:
    """A network with TVM's loops and with ours; one is a copy, as the same library is loaded only once."""
    for name in ("tuned.json", "tuned.so"):
        shutil.copy(run / name, copy / name)
    os.environ[SHARING] = THEIRS
    theirs = load_tuned(run)
    del os.environ[SHARING]
    return {"TVM": theirs, "ours": load_tuned(copy)}


def turn_of(work: Callable[[], object]) -> float:
    """Seconds of a run: median of those that fit into a turn."""
    time.sleep(PAUSE)
    work()
    found, began = [], time.perf_counter()
    while time.perf_counter() - began < TURN or not found:
        start = time.perf_counter()
        work()
        found.append(time.perf_counter() - start)
    return statistics.median(found)


def check(networks: dict[str, TunedNetwork], arrays: dict[str, np.ndarray]) -> None:
    """Refuse to compare what computes something else, or runs on the wrong threads."""
    before = _core.shared_loops()
    theirs = networks["TVM"](arrays)
    assert _core.shared_loops() == before, "TVM's loops run on TVM's threads"
    ours = networks["ours"](arrays)
    assert _core.shared_loops() > before, "our loops run on our threads"
    assert all(np.array_equal(a, b) for a, b in zip(theirs, ours, strict=True)), "the outputs are the same"


def main() -> None:
    """Time both and print."""
    parser = argparse.ArgumentParser(description="Parallel loops of a tuned network: TVM's, and ours.")
    parser.add_argument("runs", nargs="+", type=Path, metavar="RUN", help="folder of a tuning")
    parser.add_argument("--turns", type=int, default=60, help="of each")
    options = parser.parse_args()
    print(f"{machine()}\n")
    print("| network | TVM's loops, ms | ours, ms | ours / TVM's |\n|---|---|---|---|")
    for run in options.runs:
        with tempfile.TemporaryDirectory() as copy:
            networks, arrays = both(run, Path(copy)), inputs_of(run)
            check(networks, arrays)
            turns: dict[str, list[float]] = {name: [] for name in networks}
            for _ in range(options.turns):
                for name in random.sample(list(networks), len(networks)):
                    turns[name].append(turn_of(functools.partial(networks[name], arrays)))
        ratios = np.array(turns["ours"]) / turns["TVM"]
        drawn = np.random.default_rng(0).choice(ratios, (SAMPLES, len(ratios)))
        low, high = np.percentile(np.median(drawn, axis=1), [2.5, 97.5])
        theirs, ours = (1e3 * statistics.median(turns[name]) for name in ("TVM", "ours"))
        print(f"| {run.name} | {theirs:.2f} | {ours:.2f} | {np.median(ratios):.3f} ({low:.3f}-{high:.3f}) |")


if __name__ == "__main__":
    main()
