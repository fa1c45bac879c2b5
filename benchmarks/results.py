"""The accuracy tables of docs/results.md, docs/results-more.md and the README.

Question: how well do models rank programs of held-out networks?
Set-up: `PARTS`, each a `tlp-tvm evaluate` command. The output of a part is kept in docs/results/; the command
runs again only if the data, a shipped model or the command changed (or with --again). Two parts run side by
side and share the cores: nothing here is timed.
Checked: a part that fails stops the script; tables are written from complete parts only.

    python benchmarks/results.py [--public | --only PART ... | --tables] [--again]

Without --public, the parts on public logs, which are not in the repository, keep their last results.
`make results-public LOGS=...` builds their datasets and runs them.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claim_tables import PAGES, claim, claim_table
from commits import checked_out
from marked_pages import put
from own_command import answer_of

from tlp_tvm.files import write_whole
from tlp_tvm.machine.code import FIGURE_ROOMS, rooms_digest
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.metrics.ranked_groups import ALL_NETWORKS, FAR, MEAN_OVER_TASKS, NEAR
from tlp_tvm.model.checkpoint import load_model, shipped_models

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "docs" / "results"
DATASET = "build/dataset"
JUDGED = "build/dataset-judged"
"""What `x86` learned from, and the test networks, which none has learned from."""
LARGEST, GPUS = "build/public", "build/public-gpu"
PUBLIC_GPUS = ("v100", "k80", "mi50")
METRICS = {ALL_NETWORKS: "published top", MEAN_OVER_TASKS: "mean top"}
"""The rows of an evaluation that are kept, and the heads of their columns; single networks would be ten times
as much."""
ON_README = (
    *("random", "x86", "x86 with trees", "tlp", "published-tlp"),
    *("xgboost-tenset", "xgboost-features", "tenset-mlp"),
)
"""The models of the test networks' table that the README shows."""
PARTS_OF_TASKS = {"": "all", NEAR: "near", FAR: "far"}
"""Endings of these rows, and what the tables say."""
KEPT_ROWS = [metric + ending for metric in METRICS for ending in PARTS_OF_TASKS]


@dataclass(frozen=True)
class Part:
    """A command and the tables made from its output."""

    title: str
    words: str
    """Text above its tables."""
    command: tuple[str, ...]
    """Arguments of `tlp-tvm evaluate`, without --json."""
    public: bool = False
    """Whether it reads logs that are not in the repository."""

    @property
    def is_claimed(self) -> bool:
        """Whether docs/results.md shows it; docs/results-more.md has every table whole."""
        return self.dataset == JUDGED

    @property
    def dataset(self) -> str:
        """The dataset that it reads."""
        return next(name for name in self.command if name.startswith("build/"))

    @property
    def weights(self) -> dict[str, str]:
        """Digests of the shipped models that take part."""
        names = [word for word in self.command if word in shipped_models()]
        return {name: str(load_model(name).card["weights"]["sha256"]) for name in names}

    @property
    def line(self) -> str:
        """As a user types it."""
        return " ".join(["tlp-tvm", "evaluate", *self.command])


def _few(platform: str, labels: str, *, choose: str = "") -> tuple[str, ...]:
    """Four seeds, as few test tasks make seeds differ most."""
    return (
        *(GPUS, "--few-shot", platform, "--labels", labels, "--recipes", RECIPES),
        *("--seeds", "4", "--cache", "build/results", *(("--choose", choose) if choose else ())),
    )


SHARE = "7%,all"
ON_STORES = "xgboost-tvm,xgboost-tenset,xgboost-features,tenset-mlp"
RECIPES = "local,mtl,blend"
"""Not `impute`, which learns from programs measured on several platforms; few of the public ones were."""
CHOSEN = "A model of the other platforms chooses blocks of programs that differ and whose speed is uncertain."

PARTS: dict[str, Part] = {
    "judged": Part(
        "Test networks, with cold weights",
        "`x86` learned from all platforms; the others from this one: `tlp` by our recipe (two networks; "
        "`tlp-one`: one), TLP as published, XGBoost on the same sequences, and on TVM's per-store features "
        "XGBoost as TVM has it, as TenSet has it and as we do, and TenSet's MLP.",
        (
            *("x86", JUDGED, "--platform", "zen3-avx2-2t"),
            *("--baselines", f"tlp,tlp-one,published-tlp,xgboost-sequence,{ON_STORES}"),
            *("--seeds", "3", "--networks", "build/training", "--networks", "build/test"),
            *("--cache", "build/results"),
        ),
    ),
    "shipped": Part(
        "Shipped models on the validation networks",
        "XGBoost reads the same sequences and was trained on the same programs.",
        (
            *("epyc", "epyc-small", DATASET, "--baselines", "xgboost-sequence", "--seeds", "3"),
            *("--seen", "0,16", "--cache", "build/results"),
        ),
    ),
    "one": Part(
        "Our recipe with one network",
        "`tlp-one` is one network per platform, `mtl-tlp-one` one with a head per platform, by our recipe.",
        (*(DATASET, "--baselines", "tlp-one,mtl-tlp-one", "--seeds", "3"), *("--cache", "build/results")),
    ),
    "public": Part(
        "Public platforms",
        "The five largest public logs, with one task in five held out. `tlp` is one network per platform, "
        "`mtl-tlp` one with a head per platform, both by our recipe.",
        (
            *(LARGEST, "--baselines", "tlp,mtl-tlp,xgboost-sequence", "--seeds", "2"),
            *("--cache", "build/results"),
        ),
        public=True,
    ),
    "public-published": Part(
        "Public platforms: TLP as published",
        "One seed, as training takes an hour of one core.",
        (*(LARGEST, "--baselines", "published-tlp", "--seeds", "1"), *("--cache", "build/results")),
        public=True,
    ),
    **{
        f"share-{name}": Part(f"7% of the labels: {name}", "", _few(name, f"0,{SHARE}"), public=True)
        for name in PUBLIC_GPUS
    },
    "chosen-k80": Part(
        "7% of the labels, chosen: k80", CHOSEN, _few("k80", "7%", choose="diverse"), public=True
    ),
}


def run(name: str, again: bool, threads: int) -> dict[str, Any]:
    """The output of a part, from its file or from its command on so many threads."""
    part, file = PARTS[name], KEPT / f"{name}.json"
    digest = json.loads((ROOT / part.dataset / "manifest.json").read_text())["digest"]
    if file.exists() and not again:
        before: dict[str, Any] = json.loads(file.read_text())
        known = before["command"], before["dataset_digest"], before.get("weights", {})
        if known == (part.line, digest, part.weights):
            return before
    print(f"{name}: {part.line}", flush=True)
    found = answer_of("evaluate", *part.command, OMP_NUM_THREADS=str(threads))
    rows = [row for row in found["results"] if row["network"] in KEPT_ROWS]
    kept = {"command": part.line, **made_of(), "weights": part.weights, **found, "results": rows}
    write_whole(file, as_text(kept))
    print(f"{name}: done", flush=True)
    return kept


def made_of() -> dict[str, str]:
    """What code makes a result: the commit that is checked out, and the digest of the rooms that count."""
    return {"commit": checked_out(), "code": rooms_digest(FIGURE_ROOMS)}


def provenance(kept: dict[str, Any]) -> str:
    """Of which commit a kept result is, and whether such code or a shipped model has changed since."""
    changed = [] if kept.get("code") == rooms_digest(FIGURE_ROOMS) else ["the code that makes it"]
    for name, digest in kept.get("weights", {}).items():
        if digest != load_model(name).card["weights"]["sha256"]:
            changed.append(f"the file of `{name}`")
    have = "has" if len(changed) == 1 else "have"
    return f"Commit {kept['commit']}" + (
        f"; {' and '.join(changed)} {have} changed since." if changed else "."
    )


def as_text(kept: dict[str, Any]) -> str:
    """JSON with a line for each member, and for each entry of a list of rows."""
    lines = []
    for key, value in kept.items():
        rows = isinstance(value, list) and value and isinstance(value[0], dict)
        entries = ",\n".join(f"  {json.dumps(row)}" for row in value) if rows else ""
        lines.append(f" {json.dumps(key)}: " + (f"[\n{entries}\n ]" if rows else json.dumps(value)))
    return "{\n" + ",\n".join(lines) + "\n}\n"


def number(row: dict[str, Any], k: str) -> str:
    """Top-k: mean and standard deviation over seeds, then the interval over tasks, where it was kept."""
    value, interval = row["top"][k], row.get("interval", {}).get(k)
    spread = f" ± {value['deviation']:.3f}" if value["deviation"] >= 5e-4 else ""
    return f"{value['mean']:.3f}{spread}" + (
        f" ({interval['low']:.2f}-{interval['high']:.2f})" if interval else ""
    )


def heads(seen: list[int]) -> list[str]:
    """Of the columns of both metrics, the published one first."""
    return [
        f"{words}-{k}{f' after {n}' if n else ''}" for n in seen for words in METRICS.values() for k in (1, 5)
    ]


def rankers_table(said: dict[str, Any], shown: Collection[str] = ()) -> list[str]:
    """Both metrics, per platform, tasks and model; all models where none is named."""
    seen = sorted({row["seen"] for row in said["results"]})
    rows = {(row["platform"], row["ranker"], row["seen"], row["network"]): row for row in said["results"]}
    ends = [end for end in PARTS_OF_TASKS if any(key[3].endswith(end) and end for key in rows) or not end]
    names = ["platform", *(["tasks"] if len(ends) > 1 else []), "model", *heads(seen)]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for platform in dict.fromkeys(key[0] for key in rows):
        for end in ends:
            for ranker in dict.fromkeys(key[1] for key in rows if key[0] == platform):
                found = [rows.get((platform, ranker, n, metric + end)) for n in seen for metric in METRICS]
                if None in found or (shown and ranker not in shown):
                    continue
                tasks = [f"{found[1]['tasks']} {PARTS_OF_TASKS[end]}"] if len(ends) > 1 else []
                cells = [number(row, k) for row in found for k in ("1", "5")]
                lines.append(f"| {' | '.join([platform, *tasks, ranker, *cells])} |")
    return lines


def readme_table(said: dict[str, Any]) -> str:
    """What the README shows of the test networks."""
    about = f"*`make results`. {provenance(said)}*"
    return "\n".join(["", *claim_table(rankers_table(said, ON_README)), "", about, "", ""])


def labels_table(said: dict[str, Any]) -> list[str]:
    """Both metrics, per number of labels, recipe and tasks."""
    rows = {(row["labels"], row["recipe"], row["choose"], row["network"]): row for row in said["results"]}
    ends = [end for end in PARTS_OF_TASKS if any(key[3] == MEAN_OVER_TASKS + end for key in rows)]
    names = ["labels", "recipe", *(["tasks"] if len(ends) > 1 else []), *heads([0])]
    lines = [f"| {' | '.join(names)} |", "|---" * len(names) + "|"]
    for place in dict.fromkeys(key[:3] for key in rows):
        for end in ends:
            found = [rows[(*place, metric + end)] for metric in METRICS]
            cells = [f"{found[0]['labels']} ({found[0]['share']:.0%})", found[0]["recipe"]]
            cells += [f"{found[0]['tasks']} {PARTS_OF_TASKS[end]}"] if len(ends) > 1 else []
            cells += [number(row, k) for row in found for k in ("1", "5")]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def tables(name: str, said: dict[str, Any]) -> str:
    """A part's section of docs/results-more.md."""
    rows = labels_table(said) if "target" in said else rankers_table(said)
    return _section(name, said, rows)


def claimed(name: str, said: dict[str, Any]) -> str:
    """A part's section of docs/results.md; draws its picture."""
    words = "top-1 of each model, by both metrics, on near and far tasks"
    return _section(name, said, claim([rankers_table(said)], KEPT / f"{name}.png", words))


def _section(name: str, said: dict[str, Any], rows: list[str]) -> str:
    part = PARTS[name]
    ranked = {row["tasks"] for row in said["results"] if row["network"] == MEAN_OVER_TASKS}
    *first, last = map(str, sorted(ranked))
    tasks = f"{', '.join(first)} or {last} tasks per platform" if first else f"{last} tasks"
    seeds = ", ".join(map(str, said["seeds"]))
    about = f"{part.words} {tasks}, seeds {seeds}. {provenance(said)} `{part.line}`"
    return "\n".join([f"### {part.title}", "", about.strip(), "", *rows, ""])


def main() -> None:
    """Run missing parts, then write the tables."""
    parser = argparse.ArgumentParser(description="The tables of docs/results.md and docs/results-more.md.")
    which = parser.add_mutually_exclusive_group()
    which.add_argument("--only", nargs="+", choices=list(PARTS), help="only these parts")
    which.add_argument("--tables", action="store_true", help="write the tables of what is kept; run nothing")
    which.add_argument("--public", action="store_true", help=f"the parts on {LARGEST} and {GPUS} instead")
    parser.add_argument("--again", action="store_true", help="run the parts again even if nothing changed")
    parser.add_argument("--jobs", type=int, default=2)
    asked = parser.parse_args()
    KEPT.mkdir(parents=True, exist_ok=True)
    chosen = asked.only or [
        n for n, part in PARTS.items() if part.public == asked.public and not asked.tables
    ]
    threads = max(1, this_cpu().cores // max(1, min(asked.jobs, len(chosen))))
    with ThreadPoolExecutor(asked.jobs) as pool:
        list(pool.map(lambda name: run(name, asked.again, threads), chosen))
    found = {name: json.loads(f.read_text()) for name in PARTS if (f := KEPT / f"{name}.json").exists()}
    put(PAGES / "results-more.md", "tables", "\n".join(tables(*each) for each in found.items()))
    put(
        PAGES / "results.md",
        "tables",
        "\n".join(claimed(*each) for each in found.items() if PARTS[each[0]].is_claimed),
    )
    if "judged" in found:
        put(ROOT / "README.md", "results", readme_table(found["judged"]))


if __name__ == "__main__":
    main()
