"""What a cross-validation picked of each task, kept in a file, and the rows of a table made from it.

A file holds what tasks weigh once, and of each pick only how near it comes to the task's fastest program:

    {"of": what the tasks are of,
     "tasks": {group: [[weight, near], ...]},
     "picks": {name: {seed: {"commit": ..., "groups": {group: [[first, five], ...]}}}}}

A group is a fold, or a platform of a fold. A task's weight is the latency of its fastest program times how
often its networks have it, as the published metric weighs it, in microseconds.
"""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.files import write_whole
from tlp_tvm.metrics.bootstrap import of_ratio
from tlp_tvm.metrics.topk import RankedTask

KS = (1, 5)
HEADS = ("tasks", *(f"{metric} top-{k}" for metric in ("published", "mean") for k in KS))
PARTS = {"all": (False, True), "near": (True,), "far": (False,)}
"""What a row is of, and whether its tasks have a near-duplicate among those that were learned from."""

NearTask = tuple[RankedTask, bool | None]
"""A task, and whether training knows a near-duplicate of it; None where nobody can tell."""


class Picks:
    """A file of picks.

    Attributes:
        file: where they are kept.
        of: what the tasks are of.
        tasks: what each group's tasks weigh, and whether they are near; None where nobody can tell.
        found: the picks.
    """

    def __init__(self, file: Path, of: Sequence[str]) -> None:
        """Read a file.

        Args:
            file: it may be missing.
            of: datasets, and what else the picks depend on; those of others are not read.
        """
        self.file, self.of = file, list(of)
        kept = json.loads(file.read_text()) if file.exists() else {}
        if kept.get("of") != self.of:
            kept = {"tasks": {}, "picks": {}}
        self.tasks: dict[str, list[tuple[float, bool | None]]] = kept["tasks"]
        self.found: dict[str, dict[str, Any]] = kept["picks"]

    def has(self, name: str, seed: int, group: str) -> bool:
        """Whether a group has been picked from."""
        return group in self.found.get(name, {}).get(str(seed), {"groups": {}})["groups"]

    def has_any(self, fold: str, seed: int) -> bool:
        """Whether a fold, which is kept as a whole, has been picked from."""
        groups = [group for group in self.tasks if group.split()[0] == fold]
        return any(self.has(name, seed, group) for name in self.found for group in groups)

    def add(self, name: str, seed: int, group: str, tasks: Sequence[NearTask], commit: str) -> None:
        """Keep what scores pick of a group's tasks.

        Args:
            name: of what ranks.
            seed: of the training, which breaks ties, too.
            group: their fold, or a platform of it.
            tasks: each with whether it is near.
            commit: of the code.
        """
        best = [float(task.latencies.min()) for task, _ in tasks]
        self.tasks[group] = [
            (_rounded(low * task.weight * 1e6), near) for low, (task, near) in zip(best, tasks, strict=True)
        ]
        entry = self.found.setdefault(name, {}).setdefault(str(seed), {"commit": commit, "groups": {}})
        entry["groups"][group] = [
            [_rounded(low / task.best_of(k, seed)) for k in KS]
            for low, (task, _) in zip(best, tasks, strict=True)
        ]

    def save(self) -> None:
        """Write the file, a line for each group of tasks, and of picks."""
        tasks = ",\n".join(
            f"  {json.dumps(name)}: {json.dumps(rows)}" for name, rows in sorted(self.tasks.items())
        )
        picks = ",\n".join(
            f"  {json.dumps(name)}: {{\n"
            + ",\n".join(
                f"   {json.dumps(seed)}: {json.dumps(entry)}" for seed, entry in sorted(seeds.items())
            )
            + "\n  }"
            for name, seeds in sorted(self.found.items())
        )
        self.file.parent.mkdir(parents=True, exist_ok=True)
        of = json.dumps(self.of)
        write_whole(
            self.file, f'{{\n "of": {of},\n "tasks": {{\n{tasks}\n }},\n "picks": {{\n{picks}\n }}\n}}\n'
        )

    def seeds(self, name: str, groups: Collection[str]) -> list[int]:
        """The seeds of which all groups are there."""
        return sorted(int(seed) for seed in self.found.get(name, {}) if self._whole(name, int(seed), groups))

    def commits(self, names: Collection[str]) -> str:
        """Those that made the picks, in words."""
        found = {entry["commit"] for name in names for entry in self.found.get(name, {}).values()}
        return ", ".join(sorted(found))

    def rows(self, name: str, groups: Sequence[str]) -> Iterator[list[str]]:
        """The cells of a table: all tasks, then those that are near, then those that are far.

        Args:
            name: of what ranks.
            groups: whose tasks count; there are none of a seed that lacks one.
        """
        seeds = self.seeds(name, groups)
        if not seeds:
            return
        of_tasks = [task for group in groups for task in self.tasks[group]]
        weights, near = np.array([weight for weight, _ in of_tasks]), [is_near for _, is_near in of_tasks]
        entries = [self.found[name][str(seed)]["groups"] for seed in seeds]
        reached = np.array([[pick for group in groups for pick in entry[group]] for entry in entries])
        for part, which in PARTS.items():
            chosen = np.array([part == "all" or is_near in which for is_near in near])
            if not chosen.any() or (part != "all" and None in near):
                continue
            of_part = reached[:, chosen].transpose(2, 1, 0)  # (ks, tasks, seeds)
            heavy = np.broadcast_to(weights[chosen, None], of_part.shape[1:])
            published = [_figure(heavy, heavy / each) for each in of_part]
            means = [_figure(each, np.ones_like(each)) for each in of_part]
            yield [f"{chosen.sum()} {part}", *published, *means]

    def _whole(self, name: str, seed: int, groups: Collection[str]) -> bool:
        return all(self.has(name, seed, group) for group in groups)


def _rounded(value: float) -> float:
    return float(f"{value:.4g}")


def _figure(above: NDArray[np.float64], below: NDArray[np.float64]) -> str:
    """The ratio of sums over tasks: mean and standard deviation over seeds, interval over tasks.

    Args:
        above: (tasks, seeds).
        below: of the same shape.
    """
    seeds, interval = above.sum(0) / below.sum(0), of_ratio(above, below)
    spread = f" ± {seeds.std(ddof=1):.3f}" if len(seeds) > 1 else ""
    return f"{seeds.mean():.3f}{spread} ({interval.low:.2f}-{interval.high:.2f})"


def part_of_page(lines: Sequence[str], commits: str) -> str:
    """Tables and the commits that they are of, for the marks of a page."""
    return "\n".join(["", *lines, "", f"Commit {commits}.", ""]) if commits else "Not measured yet.\n"


def table(first: Sequence[str], rows: Sequence[tuple[Sequence[str], list[str]]]) -> list[str]:
    """Its lines.

    Args:
        first: the heads of the first columns.
        rows: the cells of these columns, and those of `Picks.rows`.
    """
    heads = [*first, *HEADS]
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    return [*lines, *(f"| {' | '.join([*before, *cells])} |" for before, cells in rows)]
