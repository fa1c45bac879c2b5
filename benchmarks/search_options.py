"""What does each option of the search gain over the defaults of `tlp-tvm tune`, on whole networks?

Set-up: the tasks of each network are searched with the same number of programs under the defaults and under
each option alone, per seed, in turns; programs are measured as `tlp-tvm tune` does. The network's latency is
estimated as the weighted sum of its tasks' best programs.
Baseline: the defaults with the same seed. Two runs of the defaults with other seeds differ too: the first
line says by how much, and a smaller gain of an option means nothing.
Checked before anything is printed: every run measured the requested programs, or says that it stopped early.
Takeaway, as geometric means over networks and seeds: the estimate after half and after all programs, and the
seconds of searching and measuring, each relative to the defaults.

    python benchmarks/search_options.py [NET...] [--trials 128] [--seeds 3] [--out runs/options]

Complete runs are kept; the same command resumes.
"""

from __future__ import annotations

import argparse
import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.bench.timing import machine
from tlp_tvm.files import write_whole
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.history import read_history
from tlp_tvm.tuning.tune_settings import TuneSettings

OPTIONS: dict[str, dict[str, Any]] = {
    "defaults": {},
    "--frozen": {"online": False},
    "--choose top": {"choose": "top"},
    "--hopeless 3": {"measure": MeasureSettings(threads=0, hopeless=3.0)},
    "--population 256": {"population": 256},
    "--population 1024": {"population": 1024},
}


def run(asked: TuneSettings) -> dict[str, Any]:
    """Tune once.

    Returns:
        "half" and "whole", the estimates in seconds; "trials"; and "seconds" that search and measuring took.
    """
    shutil.rmtree(asked.out, ignore_errors=True)
    result = tune_network(asked)
    history = read_history(result.log, [task.workload_key for task in result.tasks])
    estimates = history.estimates([task.weight for task in result.tasks])
    return {
        "half": float(estimates[min(asked.trials // 2, len(history)) - 1]),
        "whole": float(estimates[-1]),
        "trials": len(history),
        "seconds": result.seconds["search"] + result.seconds["measure"],
    }


def mean(values: NDArray[np.float64]) -> str:
    """Geometric mean, and the spread of single runs, as text."""
    logs = np.log(values)
    return f"{np.exp(logs.mean()):.3f} (x{np.exp(logs.std()):.3f})"


def main() -> None:
    """Search, compare, and print."""
    parser = argparse.ArgumentParser(description="What options of the search gain.")
    parser.add_argument("networks", nargs="*", default=["dqn", "bert_mini-64"])
    parser.add_argument("--trials", type=int, default=128)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--out", type=Path, default=Path("runs/options"))
    parser.add_argument("--options", default=",".join(OPTIONS), help="of " + ", ".join(OPTIONS))
    asked = parser.parse_args()
    chosen = {name: OPTIONS[name] for name in asked.options.split(",")}
    asked.out.mkdir(parents=True, exist_ok=True)
    kept = asked.out / "runs.json"
    runs: dict[str, dict[str, Any]] = json.loads(kept.read_text()) if kept.exists() else {}
    for network in asked.networks:
        for seed in range(asked.seeds):
            for name, settings in chosen.items():
                key = f"{network}, {asked.trials} programs, seed {seed}, {name}"
                if key not in runs:
                    common = {"trials": asked.trials, "seed": seed, "turns": 1, "hide_messages": True}
                    run_of = TuneSettings(network, asked.out / "run", **common, **settings)
                    runs[key] = run(run_of)
                    write_whole(kept, json.dumps(runs, indent=1))
                print(key, runs[key], flush=True)
    print(f"\n{machine()}\n")
    print(table(runs, asked.networks, asked.trials, asked.seeds, list(chosen)))


def table(runs: dict[str, Any], networks: list[str], trials: int, seeds: int, chosen: list[str]) -> str:
    """The table of the runs."""

    def found(name: str, what: str) -> NDArray[np.float64]:
        """One number per network and seed."""
        of = [[runs[f"{net}, {trials} programs, seed {i}, {name}"] for i in range(seeds)] for net in networks]
        return np.array([[each[what] for each in row] for row in of], np.float64)

    spread = np.log(found("defaults", "whole")).std(1).mean()
    lines = [
        f"the defaults over seeds: x{np.exp(spread):.3f}",
        "| option | network after half | after all | seconds | programs |",
        "|---|---|---|---|---|",
    ]
    for name in chosen:
        cells = [mean(found(name, what) / found("defaults", what)) for what in ("half", "whole", "seconds")]
        lines.append(f"| {name} | {' | '.join(cells)} | {found(name, 'trials').mean():.0f} |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
