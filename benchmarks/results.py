"""Everything that docs/results.md and the README say of accuracy, from the commands that print it.

Set-up: `PARTS`, each a `tlp-tvm evaluate` command. What a part printed is kept in docs/results/, and the same
command is not run again unless the data, a shipped model or the command changed (or --again). Two parts run
side by side, a thread each: nothing here is timed.
Checked: a part whose command fails stops everything after the parts that run; tables are written of whole
parts only.

    python benchmarks/results.py [--public | --only PART ...] [--again]

Without --public the parts on public logs, which are not in the repository, stay as they were measured last.
`make results-public LOGS=...` makes their datasets and runs them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marked_pages import put

from tlp_tvm.files import write_whole
from tlp_tvm.model.checkpoint import load_model, shipped_models

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "docs" / "results"
DATASET = "build/dataset"
METASCHEDULE = "build/dataset-metaschedule"
LARGEST, GPUS = "build/public", "build/public-gpu"
PUBLIC_GPUS = ("v100", "k80", "mi50")
MAIN = "from tlp_tvm.cli.app import main; main()"
NETWORKS = ("mean over tasks", "all networks")
"""What of an evaluation is kept: networks one by one would be ten times as much."""


@dataclass(frozen=True)
class Part:
    """A command and the tables that are made of it."""

    title: str
    words: str
    """What stands above its tables."""
    command: tuple[str, ...]
    """Of `tlp-tvm evaluate`, without --json."""
    public: bool = False
    """Whether it reads logs that are not in the repository."""

    @property
    def dataset(self) -> str:
        """The dataset that it reads."""
        return next(name for name in self.command if name.startswith("build/"))

    @property
    def weights(self) -> dict[str, str]:
        """Of the shipped models that take part, the digests."""
        names = [word for word in self.command if word in shipped_models()]
        return {name: str(load_model(name).card["weights"]["sha256"]) for name in names}

    @property
    def line(self) -> str:
        """As a user types it."""
        return " ".join(["tlp-tvm", "evaluate", *self.command])


def _few(platform: str, labels: str, recipes: str, *, choose: str = "") -> tuple[str, ...]:
    """Four seeds where they differ most, on the public logs, which have few tasks to judge by."""
    dataset, seeds = (GPUS, "4") if platform in PUBLIC_GPUS else (DATASET, "2")
    return (
        *(dataset, "--few-shot", platform, "--labels", labels, "--recipes", recipes),
        *("--seeds", seeds, "--cache", "build/results", *(("--choose", choose) if choose else ())),
    )


CURVE = "0,50,200,7%,1000,5000,all"
SHARE = "7%,all"
OURS, THEIRS = "local,mtl,blend,impute", "local,mtl,blend"
"""`impute` learns from programs that ran on several platforms: few of the public ones did."""
CHOSEN = "Labelled are blocks of programs that a model of the other platforms finds unlike and is unsure of."

PARTS: dict[str, Part] = {
    "shipped": Part(
        "Shipped models on networks that they have not seen",
        "The shipped models, and XGBoost on the same sequences, trained on the same programs.",
        (
            *("epyc", "epyc-small", DATASET, "--baselines", "xgboost-sequence", "--seeds", "3"),
            *("--seen", "0,16", "--cache", "build/results"),
        ),
    ),
    "metaschedule": Part(
        "MetaSchedule",
        "The shipped model, its recipe with seeds (two networks), and XGBoost on the same sequences.",
        (
            *("epyc-metaschedule", METASCHEDULE, "--baselines", "tlp,xgboost-sequence", "--seeds", "3"),
            *("--cache", "build/results"),
        ),
    ),
    "trained": Part(
        "The recipe, with seeds, beside per-store features",
        "`tlp` has a network a platform, `mtl-tlp` one with a head a platform; both are our recipe. "
        "TenSet's MLP and `xgboost-features` read TVM's per-store features.",
        (
            *(DATASET, "--baselines", "tlp,mtl-tlp,xgboost-features,tenset-mlp", "--seeds", "3"),
            *("--seen", "0,16", "--cache", "build/results"),
        ),
    ),
    "published": Part(
        "TLP as published",
        "Hidden width 256, 50 epochs, LambdaRank within tasks.",
        (*(DATASET, "--baselines", "published-tlp", "--seeds", "2"), *("--cache", "build/results")),
    ),
    "published-mtl": Part(
        "MTL-TLP as published",
        "The same, with a head a platform.",
        (*(DATASET, "--baselines", "published-mtl-tlp", "--seeds", "2"), *("--cache", "build/results")),
    ),
    "labels-sse42": Part(
        "Few labels: epyc-sse42-1c",
        "All recipes, the labelled programs drawn at random.",
        _few("epyc-sse42-1c", CURVE, "local,mtl,blend,finetune,pretrain,impute"),
    ),
    "share-avx2": Part(
        "7% of the labels: epyc-avx2-1c",
        "Drawn at random.",
        _few("epyc-avx2-1c", SHARE, OURS),
    ),
    **{
        f"chosen-{name}": Part(
            f"7% of the labels, chosen: {platform}", CHOSEN, _few(platform, SHARE, OURS, choose="diverse")
        )
        for name, platform in (("avx2", "epyc-avx2-1c"), ("avx512", "epyc-avx512-2c"))
    },
    "public": Part(
        "Public platforms",
        "The five largest of the public logs, one task in five held out.",
        (
            *(LARGEST, "--baselines", "tlp,mtl-tlp,xgboost-sequence", "--seeds", "2"),
            *("--cache", "build/results"),
        ),
        public=True,
    ),
    "public-published": Part(
        "Public platforms: TLP as published",
        "One seed: its training takes ten minutes a platform.",
        (*(LARGEST, "--baselines", "published-tlp", "--seeds", "1"), *("--cache", "build/results")),
        public=True,
    ),
    "public-seen": Part(
        "After 16 and 64 measured programs: MI100",
        "The only one of these platforms whose judged tasks all have so many.",
        (
            *(LARGEST, "--platform", "mi100-shared", "--baselines", "tlp,xgboost-sequence"),
            *("--seeds", "2", "--seen", "0,16,64", "--cache", "build/results"),
        ),
        public=True,
    ),
    **{
        f"share-{name}": Part(f"7% of the labels: {name}", "", _few(name, f"0,{SHARE}", THEIRS), public=True)
        for name in PUBLIC_GPUS
    },
    "chosen-k80": Part(
        "7% of the labels, chosen: k80", CHOSEN, _few("k80", "7%", THEIRS, choose="diverse"), public=True
    ),
}


def run(name: str, again: bool) -> dict[str, Any]:
    """What a part says, from its file or from its command."""
    part, file = PARTS[name], KEPT / f"{name}.json"
    digest = json.loads((ROOT / part.dataset / "manifest.json").read_text())["digest"]
    if file.exists() and not again:
        before: dict[str, Any] = json.loads(file.read_text())
        known = before["command"], before["dataset_digest"], before.get("weights", {})
        if known == (part.line, digest, part.weights):
            return before
    print(f"{name}: {part.line}", flush=True)
    command = [sys.executable, "-c", MAIN, "evaluate", *part.command, "--json"]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    said = json.loads(done.stdout.strip().splitlines()[-1])
    rows = [row for row in said["results"] if row["network"] in NETWORKS]
    kept = {"command": part.line, "weights": part.weights, **said, "results": rows}
    write_whole(file, json.dumps(kept, indent=1) + "\n")
    print(f"{name}: done", flush=True)
    return kept


def number(value: dict[str, float]) -> str:
    """Mean and deviation over seeds."""
    return f"{value['mean']:.3f}" + (f" ± {value['deviation']:.3f}" if value["deviation"] >= 5e-4 else "")


def rankers_table(said: dict[str, Any]) -> list[str]:
    """Of every platform, the mean over tasks."""
    seen = sorted({row["seen"] for row in said["results"]})
    heads = [f"top-{k}{f' after {n}' if n else ''}" for n in seen for k in (1, 5)]
    lines = [f"| platform | model | {' | '.join(heads)} |", "|---" * (2 + len(heads)) + "|"]
    means = {
        (row["platform"], row["ranker"], row["seen"]): row
        for row in said["results"]
        if row["network"] == NETWORKS[0]
    }
    for platform, ranker in dict.fromkeys((platform, ranker) for platform, ranker, _ in means):
        cells = [number(means[platform, ranker, n]["top"][k]) for n in seen for k in ("1", "5")]
        lines.append(f"| {platform} | {ranker} | {' | '.join(cells)} |")
    return lines


def labels_table(said: dict[str, Any]) -> list[str]:
    """Of every number of labels and recipe, the mean over tasks."""
    lines = ["| labels | recipe | top-1 | top-5 |", "|---|---|---|---|"]
    for row in said["results"]:
        if row["network"] == NETWORKS[0]:
            cells = [f"{row['labels']} ({row['share']:.0%})", row["recipe"]]
            lines.append(f"| {' | '.join([*cells, *(number(row['top'][k]) for k in ('1', '5'))])} |")
    return lines


def tables(name: str, said: dict[str, Any]) -> str:
    """A part's section of docs/results.md."""
    part = PARTS[name]
    rows = labels_table(said) if "target" in said else rankers_table(said)
    ranked = {row["tasks"] for row in said["results"] if row["network"] == NETWORKS[0]}
    tasks = " or ".join(map(str, sorted(ranked)))
    about = f"{part.words} {tasks} tasks, seeds {', '.join(map(str, said['seeds']))}. `{part.line}`"
    return "\n".join([f"### {part.title}", "", about.strip(), "", *rows, ""])


def main() -> None:
    """Run what is missing, then write the tables."""
    parser = argparse.ArgumentParser(description="The tables of docs/results.md.")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", nargs="+", choices=list(PARTS), help="these parts")
    which.add_argument("--public", action="store_true", help=f"the parts on {LARGEST} and {GPUS} instead")
    parser.add_argument("--again", action="store_true", help="run whole parts anew")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    chosen = asked.only or [name for name, part in PARTS.items() if part.public == asked.public]
    with ThreadPoolExecutor(asked.jobs) as pool:
        list(pool.map(lambda name: run(name, asked.again), chosen))
    found = {name: json.loads(f.read_text()) for name in PARTS if (f := KEPT / f"{name}.json").exists()}
    sections = [tables(name, said) for name, said in found.items()]
    put(ROOT / "docs" / "results.md", "tables", "\n".join(sections))
    if "shipped" in found:
        put(ROOT / "README.md", "results", "\n".join(["", *rankers_table(found["shipped"]), "", ""]))


if __name__ == "__main__":
    main()
