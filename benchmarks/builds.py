"""How soon a network's first program is measured: the steps before, with types inferred once and as TVM does.

Question: how long does it take to read a network and prepare it, to split it into tasks, and to build it
untuned, with types inferred once after each change and constants folded by NumPy?
Set-up: each turn is a process of its own, which keeps no kernel of the one before; both ways in turns.
Baseline: types inferred behind and before every pass, and constants folded by kernels that TVM compiles.
Checked before anything is printed: the untuned networks of both ways give equal outputs.
Takeaway: seconds of both by step, medians of turns, and their ratio.

    python benchmarks/builds.py NET... [--turns 3]
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks import end_to_end
from tlp_tvm.bench.timing import machine
from tlp_tvm.framework import framework_named
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.tuning.tune_observer import TuneObserver
from tlp_tvm.tuning.tune_settings import TuneSettings

OURS, TVMS = "once", "by TVM"
STEPS = ("read and prepare", "split", "build untuned")


def as_tvm_does() -> None:
    """Infer types as often as TVM does, and leave constants to its kernels."""
    tvm = load_tvm()
    context = tvm.transform.PassContext
    context.__init__ = context.__init__.__wrapped__
    nothing = tvm.instrument.pass_instrument(type("Nothing", (), {}))
    end_to_end.folding_before = nothing  # type: ignore[attr-defined]


def timed_once(network: str) -> dict[str, Any]:
    """Seconds of each step in this process, and the untuned network's outputs in short."""
    began = [time.perf_counter()]
    with tempfile.TemporaryDirectory() as folder:
        settings = TuneSettings(network, Path(folder), trials=0)
        tuner = framework_named("ansor").tuner(settings, "x86", TuneObserver())
        began.append(time.perf_counter())
        tuner.split()
        began.append(time.perf_counter())
        tuner.build_untuned()
        began.append(time.perf_counter())
    values = end_to_end.random_inputs(tuner._module, tuner._parameters)
    outputs = end_to_end.run_once(tuner._untuned, values, tuner._target)
    sums = [float(np.abs(each.astype(np.float64)).sum()) for each in outputs]
    return {"seconds": np.diff(began).tolist(), "outputs": sums}


def in_a_process(network: str, way: str) -> dict[str, Any]:
    """The same in a process of its own."""
    command = [sys.executable, __file__, network, "--as", way]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found


def main() -> None:
    """Time both ways and print."""
    parser = argparse.ArgumentParser(description="The steps before a network's first program is measured.")
    parser.add_argument("networks", nargs="+", metavar="NET", help="a built-in name or a file")
    parser.add_argument("--turns", type=int, default=3)
    parser.add_argument("--as", dest="way", choices=(OURS, TVMS), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.way:
        load_tvm()  # before anything is timed
        if options.way == TVMS:
            as_tvm_does()
        print(json.dumps(timed_once(options.networks[0])))
        return
    print(f"{this_cpu().model}, commit {machine()['commit']}\n")
    print(f"| network | {' | '.join(f'{step}, s' for step in STEPS)} | together, s | ratio |")
    print("|---|" + "---|" * (len(STEPS) + 2))
    for network in options.networks:
        turns = [[in_a_process(network, way) for way in (TVMS, OURS)] for _ in range(options.turns)]
        for both in turns:
            np.testing.assert_allclose(both[0]["outputs"], both[1]["outputs"], rtol=1e-5)
        columns = np.median([[each["seconds"] for each in both] for both in turns], axis=0)
        sums = [statistics.median(sum(both[i]["seconds"]) for both in turns) for i in range(2)]
        cells = [f"{before:.1f} -> {after:.1f}" for before, after in columns.T]
        cells.append(f"{sums[0]:.1f} -> {sums[1]:.1f}")
        print(f"| {Path(network).name} | {' | '.join(cells)} | {sums[0] / sums[1]:.2f}x |", flush=True)


if __name__ == "__main__":
    main()
