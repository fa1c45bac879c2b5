"""How far do the scores of the shipped recipe move from seed to seed?

Set-up: `tlp-tvm train datasets/epyc` with its defaults, once a seed (weights, order, and the tasks held
out to choose the epoch), evaluated on the networks held out. Baseline: a random pick on the same tasks.
Takeaway: mean, lowest and highest top-1 and top-5 per platform.

    python benchmarks/seeds.py [--seeds 5]
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import tempfile
from collections import defaultdict
from pathlib import Path
from typing import Any

from tlp_tvm.bench.timing import machine

ROOT = Path(__file__).resolve().parent.parent


def rows_of(seed: int, folder: str) -> list[dict[str, Any]]:
    """The test rows of a model trained with this seed."""
    command = [sys.executable, "-c", "from tlp_tvm.cli.app import main; main()"]
    command += ["train", str(ROOT / "datasets" / "epyc")]
    command += ["--out", f"{folder}/{seed}", "--seed", str(seed), "--json"]
    done = subprocess.check_output(command, text=True)
    rows: list[dict[str, Any]] = json.loads(done.strip().splitlines()[-1])["metrics"]["test"]
    return rows


def main() -> None:
    """Train, evaluate, and print the spread."""
    parser = argparse.ArgumentParser(description="The spread of the shipped recipe over seeds.")
    parser.add_argument("--seeds", type=int, default=5)
    options = parser.parse_args()
    scores: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    random: dict[tuple[str, str, str], float] = {}
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(options.seeds):
            for row in rows_of(seed, folder):
                for k in ("1", "5"):
                    key = (row["platform"], row["network"], f"top-{k}")
                    scores[key].append(row["top"][k])
                    random[key] = row["random"][k]["mean"]
            print(f"seed {seed} done", file=sys.stderr)
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    print("| platform | tasks of | score | mean | lowest | highest | random pick |")
    print("|---|---|---|---|---|---|---|")
    for key, values in scores.items():
        mean = sum(values) / len(values)
        figures = " | ".join(f"{value:.3f}" for value in (mean, min(values), max(values), random[key]))
        print(f"| {' | '.join(key)} | {figures} |")


if __name__ == "__main__":
    main()
