"""Do TLP's sequences tell programs apart? The table of docs/results.md.

Question: how many programs of a dataset have steps, or an embedding, that no other program of their task has,
and how far do the latencies of those differ that a model cannot tell apart?
Set-up: the statistics of the datasets of `make dataset`, and of public logs, those that are built.
Baseline: labels' own noise, the spread of a program's repeats.

    python benchmarks/uniqueness.py [--tables]

All records of the public logs: `tlp-tvm dataset build v100=LOGS/v100 x86-24c=LOGS/x86-24c k80=LOGS/k80
mi50=LOGS/mi50 mi100-shared=LOGS/mi100-shared --odd-targets --skip-bad-lines --split task --out
build/public-all`. What is kept in docs/results/uniqueness.json stays for a dataset that is not built here.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

from commits import checked_out
from marked_pages import put
from own_command import answer_of

from tlp_tvm.files import write_whole

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "docs" / "results" / "uniqueness.json"
PAGE = ROOT / "docs" / "results.md"
DATASETS = {
    "build/dataset-x86": ("ours, Ansor", ["paper-cpu", "ansor"]),
    "build/dataset-metaschedule": ("ours, MetaSchedule", ["metaschedule"]),
    "build/public-all": ("public logs of four GPUs and a CPU, Ansor", ["paper-gpu", "ansor"]),
}
"""Title and layouts."""


def measured(dataset: str) -> dict[str, Any]:
    """What `tlp-tvm dataset stats` says of a dataset, as far as the table needs it."""
    words = ["dataset", "stats", dataset, *(w for each in DATASETS[dataset][1] for w in ("--layout", each))]
    found = answer_of(*words)
    noise = [platform["noise"]["median"] for platform in found["platforms"] if platform["noise"]]
    return {
        "command": f"tlp-tvm {' '.join(words)} --json",
        "commit": checked_out(),
        "digest": found["digest"],
        "noise": max(noise, default=None),
        "collisions": found["collisions"],
    }


BY_CONSTRUCTION = "steps, within a task"
"""Always distinct: a dataset keeps each program once."""

HEADS = (
    "dataset",
    "what a model sees",
    "programs",
    "distinct",
    "in a group of equals",
    "slowest / fastest of a group: median, 90%, most",
    "noise of the noisiest platform",
)


def lines(kept: dict[str, Any]) -> list[str]:
    """The table: a row for each dataset and what a model sees."""
    rows = [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|"]
    for dataset, (title, _) in DATASETS.items():
        if dataset not in kept:
            continue
        noise = kept[dataset]["noise"]
        for found in kept[dataset]["collisions"]:
            if found["what"] == BY_CONSTRUCTION:
                continue
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
