"""What models choose when nobody measures for them: the tables of docs/search.md and docs/search-more.md.

Question: how much slower than the best known program is the fastest of the first 1, 5 and 16 programs that a
model breeds and chooses by itself, and did a new model become better at it?
Set-up: tasks of networks that neither model learned from at that size, and the logs of their tunings as what
is known. The choices of all models and the known programs are timed one after the other.
Baseline: the shipped model of before.

    python benchmarks/choices.py [--keep runs/choice --called zen5]

`--keep` takes a finished run of `tlp-tvm evaluate MODEL... LOG... --choice NET,... --out FOLDER`, `--called`
the name of its table.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

from commits import checked_out
from marked_pages import put_where_marked

from tlp_tvm.evaluation.choice.model_choices import RESULTS, Choices, read_choices
from tlp_tvm.files import write_whole
from tlp_tvm.metaschedule.loading.targets import flags_of

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "docs" / "results" / "choice"
PAGES = [ROOT / "docs" / name for name in ("search.md", "search-more.md")]


def keep(out: Path, called: str) -> None:
    """Keep a run's results by a name, a task a line."""
    content = {"commit": checked_out(), **read_choices(out).content}
    tasks = ",\n".join(json.dumps(task) for task in content.pop("tasks"))
    (KEPT / called).mkdir(parents=True, exist_ok=True)
    write_whole(KEPT / called / RESULTS, f'{json.dumps(content)[:-1]}, "tasks": [\n{tasks}\n]}}\n')


def lines(found: Choices) -> list[str]:
    """The table, and what it is of."""
    content = found.content
    networks = dict.fromkeys(network for task in content["tasks"] for network in task["networks"])
    head = ["model", "fastest of the first", "geometric mean", "whole networks", "worst task"]
    rows = ["| " + " | ".join(head) + " |", "|---" * len(head) + "|"]
    for row in found.regrets():
        interval = f"({row.interval.low:.2f} to {row.interval.high:.2f})"
        rows.append(
            f"| `{row.model}` | {row.k} | {row.mean:.2f} {interval} | {row.network:.2f} | {row.worst:.2f} |"
        )
    target = content["target"]
    if target.startswith("{"):  # as MetaSchedule's TVM writes it
        target = flags_of(target)
    of = (
        f"{len(content['tasks'])} tasks of {', '.join(networks)}; {content['cpu']}, `{target}`; "
        f"commit {content['commit']}; {content['seconds'] / 60:.0f} minutes."
    )
    return [*rows, "", of, ""]


def main() -> None:
    """Keep a run if asked to, then write the table."""
    parser = argparse.ArgumentParser(description="The table of what models choose by themselves.")
    parser.add_argument("--keep", type=Path, metavar="FOLDER", help="a finished run of evaluate --choice")
    parser.add_argument("--called", default="zen3", metavar="NAME", help="of the table that it is kept for")
    asked = parser.parse_args()
    if asked.keep is not None:
        keep(asked.keep, asked.called)
    for folder in sorted(KEPT.iterdir()):
        put_where_marked(PAGES, f"choices {folder.name}", "\n".join(lines(read_choices(folder))))


if __name__ == "__main__":
    main()
