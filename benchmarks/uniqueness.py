"""Do TLP's sequences tell programs apart? The table of docs/results.md.

Question: how many programs of a dataset have steps, or an embedding, that no other program of their task has,
and how far do the latencies of those differ that a model cannot tell apart?
Set-up: the statistics of the datasets of `make dataset` and of `make results-public`, those that are built.
Baseline: labels' own noise, the spread of a program's repeats.

    python benchmarks/uniqueness.py [--tables]

What is kept in docs/results/uniqueness.json stays for a dataset that is not built here.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

from commits import checked_out
from marked_pages import put

from tlp_tvm.files import write_whole

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "docs" / "results" / "uniqueness.json"
PAGE = ROOT / "docs" / "results.md"
MAIN = "from tlp_tvm.cli.app import main; main()"
DATASETS = {
    "build/dataset-x86": "ours, Ansor",
    "build/dataset-metaschedule": "ours, MetaSchedule",
    "build/public": "public logs, Ansor",
}


def measured(dataset: str) -> dict[str, Any]:
    """What `tlp-tvm dataset stats` says of a dataset, as far as the table needs it."""
    command = [sys.executable, "-c", MAIN, "dataset", "stats", dataset, "--json"]
    done = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    said = json.loads(done.stdout.strip().splitlines()[-1])
    noise = [platform["noise"]["median"] for platform in said["platforms"] if platform["noise"]]
    return {
        "command": f"tlp-tvm dataset stats {dataset} --json",
        "commit": checked_out(),
        "digest": said["digest"],
        "noise": max(noise, default=None),
        "collisions": said["collisions"],
    }


HEADS = (
    "dataset",
    "what a model sees",
    "programs",
    "distinct",
    "in a group of equals",
    "slowest / fastest of a group: median, 90%, most",
    "noise",
)


def lines(kept: dict[str, Any]) -> list[str]:
    """The table: a row for each dataset and what a model sees."""
    rows = [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|"]
    for dataset, title in DATASETS.items():
        if dataset not in kept:
            continue
        noise = kept[dataset]["noise"]
        for found in kept[dataset]["collisions"]:
            ratio = found["latency_ratio"]
            cells = [
                title,
                found["what"],
                f"{found['programs']:,}",
                f"{found['distinct']:,}",
                f"{found['programs_in_groups'] / max(1, found['programs']):.1%}",
                "-"
                if ratio is None
                else ", ".join(f"{ratio[name]:.2f}" for name in ("median", "p90", "max")),
                "-" if noise is None else f"{noise:.1%}",
            ]
            rows.append(f"| {' | '.join(cells)} |")
    made = "; ".join(f"`{said['command']}` at {said['commit']}" for said in kept.values())
    return [*rows, "", f"{made}.", ""]


def main() -> None:
    """Measure the datasets that are built, then write the table."""
    parser = argparse.ArgumentParser(description="The table of what sequences tell apart.")
    parser.add_argument("--tables", action="store_true", help="write the table of what is kept")
    asked = parser.parse_args()
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if not asked.tables:
        kept |= {name: measured(name) for name in DATASETS if (ROOT / name).exists()}
        write_whole(KEPT, json.dumps(kept, indent=1) + "\n")
    put(PAGE, "uniqueness", "\n".join(lines(kept)))


if __name__ == "__main__":
    main()
