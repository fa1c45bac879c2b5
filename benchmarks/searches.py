"""The search tables of docs/search.md, docs/search-more.md and the README.

Question: how fast do searches under TLP match what TVM's own model finds, and how good are they in the end?
Set-up: `COMPARISONS`, each a `tlp-tvm compare` command. It needs an idle machine for one to two hours; every
program of every search is kept in docs/results/searches/.
Baseline: TVM's XGBModel in the same run, with the rounds and population of TVM's scheduler.
Checked: only complete comparisons are kept.

    python benchmarks/searches.py [--run NAME]

Each framework has its own environment: `make searches` creates both.

Without --run, the pages are rewritten from the kept comparisons.
"""

from __future__ import annotations

import argparse
import json
import shlex
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from marked_pages import put
from own_command import MAIN

from tlp_tvm.comparison.against import Against
from tlp_tvm.comparison.matched_plot import draw_matched
from tlp_tvm.comparison.search_run import Run
from tlp_tvm.comparison.stopwatch import PARTS
from tlp_tvm.comparison.summary import RESULTS, Comparison, read_comparison
from tlp_tvm.files import write_whole
from tlp_tvm.metrics.bootstrap import Interval

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "docs" / "results" / "searches"
PICTURE = "matched.png"


@dataclass(frozen=True)
class Compared:
    """A comparison and its command."""

    title: str
    command: str
    """Arguments of `tlp-tvm compare`, without --out."""
    environment: str = ".venv"
    """The environment whose Python has the framework."""
    tasks: int = 6
    seeds: int = 2
    """Fewer of either are no whole comparison."""

    @property
    def networks(self) -> list[str]:
        """The networks whose tasks are searched."""
        words = shlex.split(self.command)
        return words[: next(i for i, word in enumerate(words) if word.startswith("--"))]


COMPARISONS: dict[str, Compared] = {
    "ansor-far": Compared(
        "Ansor, far: six tasks unlike those of training",
        "build/test/convnext-192.pt build/test/efficientnet-192.pt build/test/regnet-192.pt "
        "build/test/gpt2-640x112.pt build/test/video-96.pt build/test/segmentation-192.pt "
        "--far build/dataset-x86 --tasks 1 --seeds 2 --trials 200 --models tlp-online,xgb,xgb:16:512",
    ),
    "ansor": Compared(
        "Ansor, near: six tasks of networks held out",
        "resnet_50-224 bert_base-128 inception_v3 --tasks 2 --seeds 2 --trials 200 --models tlp-online,xgb "
        '--target "llvm -mcpu=skylake-avx512 -num-cores=2"',
    ),
    "ansor-long": Compared(
        "Ansor, long: two tasks of networks held out",
        "resnet_50-224 bert_base-128 --tasks 1 --seeds 1 --trials 1000 --models tlp-online,xgb",
        tasks=2,
        seeds=1,
    ),
    "metaschedule": Compared(
        "MetaSchedule: six tasks of held-out networks",
        "resnet_50-224 bert_base-128 bert_tiny-128 --framework metaschedule --tasks 2 --seeds 2 --trials 128 "
        '--models tlp-online,xgb,mlp --target "llvm -mcpu=skylake-avx512 -num-cores=2"',
        ".venv-metaschedule",
    ),
}


def table(comparison: Comparison) -> list[str]:
    """Every search: its final latency, when it matched the baseline's final latency, and its total time."""
    baseline = comparison.baseline
    assert baseline is not None
    names = [baseline, *(name for name in comparison.contenders if name != baseline)]
    lines = [
        "| task | seed | " + " | ".join(f"{name}: ms | {_times(name, baseline)}" for name in names) + " |"
    ]
    lines.append("|---" * (2 + 2 * len(names)) + "|")
    found = {(run.task, run.seed, run.contender): run for run in comparison.runs()}
    for group in comparison.content["groups"]:
        key = (group["task"], group["seed"])
        goal = float(found[(*key, baseline)].best[-1])
        networks = ", ".join(f"{name} x{times}" for name, times in group["networks"].items())
        cells = [f"{group['desc'].removeprefix('vm_mod_fused_')} ({networks})", str(group["seed"])]
        for name in names:
            run = found[(*key, name)]
            cells += [f"{run.last * 1e3:.3f}", _when(run, goal)]
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _times(name: str, baseline: str) -> str:
    return "best after / total, s" if name == baseline else "matched after / total, s"


def _when(run: Run, goal: float) -> str:
    reached = run.reached(goal)
    return f"{'never' if reached is None else format(reached[1], '.0f')} / {run.clock[-1]:.0f}"


def against_table(comparison: Comparison) -> list[str]:
    """A row per contender: all of its searches against the baseline's."""
    heads = [*AGAINST, "worst task", "worst search, as timed while searching"]
    rows = [
        [*_against(each, comparison), f"{each.slowest_task:.3f}", f"{each.slowest_found:.3f}"]
        for each in comparison.against_baseline()
    ]
    return _rows(heads, rows)


AGAINST = (
    *("model", "baseline", "matched", "speedup", "speedup, all searches"),
    *("fewer programs", "final latency", "worst search"),
)


def _against(each: Against, comparison: Comparison) -> list[str]:
    return [
        *(f"`{each.contender}`", f"`{comparison.baseline}`", f"{each.reached} of {each.runs}"),
        *(f"{each.sooner:.1f}x", f"{each.sooner_all:.1f}x{_interval(each.sooner_all_interval, '.1f')}"),
        f"{each.fewer:.1f}x",
        *(f"{each.latency:.3f}{_interval(each.latency_interval, '.3f')}", f"{each.slowest:.3f}"),
    ]


def _interval(interval: Interval, form: str) -> str:
    return f" ({interval.low:{form}} to {interval.high:{form}})"


def _rows(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    ruler = "|---" * len(heads) + "|"
    return [f"| {' | '.join(heads)} |", ruler, *(f"| {' | '.join(row)} |" for row in rows)]


def spent(comparison: Comparison) -> list[str]:
    """Where the time went, summed over all searches."""
    lines = [f"| seconds | {' | '.join(PARTS)} | all |", "|---" * (2 + len(PARTS)) + "|"]
    for name in comparison.contenders:
        runs = [run for run in comparison.runs() if run.contender == name]
        parts = [sum(run.spent[part] for run in runs) for part in PARTS]
        lines.append(f"| {name} | {' | '.join(f'{value:.0f}' for value in [*parts, sum(parts)])} |")
    return lines


def section(name: str, comparison: Comparison) -> str:
    """A comparison's section of docs/search-more.md."""
    about, content = COMPARISONS[name], comparison.content
    how = (
        f"`tlp-tvm compare {about.command}`: {content['trials']} programs each, {content['cpu']}, "
        f"TVM {content['versions']['tvm']}."
    )
    lines = [f"### {about.title}", "", how, "", *table(comparison), "", *against_table(comparison), ""]
    return "\n".join([*lines, *spent(comparison), ""])


def kept() -> dict[str, Comparison]:
    """The kept comparisons."""
    return {name: read_comparison(KEPT / name) for name in COMPARISONS if (KEPT / name / RESULTS).is_file()}


def run(name: str) -> None:
    """Compare, or resume the comparison, and keep its results."""
    about, out = COMPARISONS[name], ROOT / "runs" / f"compare-{name}"
    python = str(ROOT / about.environment / "bin" / "python")
    command = [python, "-c", MAIN, "compare", *shlex.split(about.command), "--out", str(out)]
    subprocess.run(command, cwd=ROOT, check=True)
    keep(name, out)


def keep(name: str, out: Path) -> None:
    """Keep a comparison's results, in lines short enough for a diff."""
    (KEPT / name).mkdir(parents=True, exist_ok=True)
    content = dict(read_comparison(out).content)
    groups = ",\n".join(json.dumps(group) for group in content.pop("groups"))
    text = f'{json.dumps(content)[:-1]}, "groups": [\n{groups}\n]}}\n'
    write_whole(KEPT / name / RESULTS, text)


def write_pages(found: dict[str, Comparison], docs: Path, readme: Path) -> None:
    """Write the tables of docs/search.md, docs/search-more.md and the README, and the picture."""
    draw_matched({COMPARISONS[name].title: each for name, each in found.items()}, docs / PICTURE)
    put(docs / "search-more.md", "searches", "\n".join(section(name, each) for name, each in found.items()))
    for page in (docs / "search.md", readme):
        put(page, "searches", summary(found))


def summary(found: dict[str, Comparison]) -> str:
    """A row per framework and contender."""
    rows = [
        [COMPARISONS[name].title.partition(":")[0], *_against(each, comparison)]
        for name, comparison in found.items()
        for each in comparison.against_baseline()
    ]
    return "\n".join(["", *_rows(["search", *AGAINST], rows), "", ""])


def main() -> None:
    """Run a comparison if asked to, then write the pages."""
    parser = argparse.ArgumentParser(description="The tables of comparisons.")
    parser.add_argument("--run", choices=list(COMPARISONS))
    asked = parser.parse_args()
    if asked.run:
        run(asked.run)
    write_pages(kept(), ROOT / "docs", ROOT / "README.md")


if __name__ == "__main__":
    main()
