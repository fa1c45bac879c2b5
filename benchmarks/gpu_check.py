"""Does the native GPU check refuse programs that TVM accepts, and how many that TVM refuses does it find?

Set-up: random and evolved programs for a CUDA target, of the tests' tasks (including extents that nothing
divides); no GPU is needed.
Baseline: TVM's own verdict, which lowers every program and verifies it against the same limits.
Checked: both get the same programs.

    python benchmarks/gpu_check.py [--states 150]
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "python"))

import test_gpu_check as cases

from tlp_tvm.ansor.reading.gpu_check import GpuCheck

TASKS = ("conv2d", "dense", "half", "strided", "softmax")


def main() -> None:
    """Run both checks and print."""
    parser = argparse.ArgumentParser(description="The check for GPUs beside TVM's own verdict.")
    parser.add_argument("--states", type=int, default=150, help="random ones a task, and as many evolved")
    cases.N = parser.parse_args().states
    rows = []
    print(
        "| task | programs | TVM accepts | of those refused | TVM refuses | of those found |\n"
        + "|---" * 6
        + "|"
    )
    for name in TASKS:
        states = cases.states(name)
        faults = GpuCheck(cases.task(name)).faults(states) > 0
        accepted = cases.accepted_by_tvm(cases.task(name), states)
        counts = (len(faults), accepted, faults & accepted, ~accepted, faults & ~accepted)
        rows.append([int(np.sum(each)) for each in counts])
        print(f"| {name} | {' | '.join(map(str, rows[-1]))} |", flush=True)
    print(f"| all | {' | '.join(map(str, np.sum(rows, axis=0)))} |")


if __name__ == "__main__":
    main()
