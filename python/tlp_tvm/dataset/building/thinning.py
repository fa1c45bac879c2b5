"""Keeps some programs of each task where there are thousands, which teach much the same."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

KEPT_WHOLE = "test"
"""The split whose tasks keep all programs: what is found of a task is judged among all that there is."""


@dataclass
class Thinning:
    """Keep at most this many random programs per platform of each task outside the test split.

    Platforms draw in the same order, so that a program that many have measured is kept for all of them.

    Attributes:
        most: programs of a task and platform; None for all.
        seed: of the draw.
        programs: kept of each task so far, by its number.
        measurements: kept of each platform so far, by its number.
    """

    most: int | None
    seed: int = 0
    programs: dict[int, int] = field(default_factory=dict)
    measurements: dict[int, int] = field(default_factory=dict)

    def kept(self, table: pa.Table, splits: Sequence[str]) -> pa.Table:
        """The rows of a table of `shards.SCHEMA` that stay, in their order.

        Args:
            table: all programs of some tasks, sorted by task.
            splits: of every task of the dataset.
        """
        tasks = table.column("task").to_numpy()
        lists = table.column("measurements").combine_chunks()
        rows = np.repeat(np.arange(len(table)), lists.value_lengths().to_numpy())
        platforms = lists.flatten().field("platform").to_numpy().astype(np.int64)
        if self.most is not None:
            stays = np.ones(len(table), bool)
            for task in np.unique(tasks).tolist():
                if splits[task] != KEPT_WHOLE:
                    begin, end = np.searchsorted(tasks, [task, task + 1])
                    of_task = slice(*np.searchsorted(rows, [begin, end]))
                    stays[begin:end] = self._drawn(
                        task, end - begin, rows[of_task] - begin, platforms[of_task]
                    )
            table = table.filter(pa.array(stays))
            tasks, platforms = tasks[stays], platforms[stays[rows]]
        for counts, names in ((self.programs, tasks), (self.measurements, platforms)):
            for name, count in zip(*np.unique(names, return_counts=True), strict=True):
                counts[int(name)] = counts.get(int(name), 0) + int(count)
        return table

    def notes(self) -> list[str]:
        """What the manifest says of it, a sentence or none."""
        if self.most is None:
            return []
        drawn = f"drawn with seed {self.seed}; all of {KEPT_WHOLE} tasks"
        return [f"at most {self.most} programs of a task and platform were kept, {drawn}"]

    def _drawn(
        self, task: int, count: int, rows: NDArray[np.int64], platforms: NDArray[np.int64]
    ) -> NDArray[np.bool_]:
        """Which of a task's programs stay; measurement i is of program `rows[i]` on `platforms[i]`."""
        turn = np.random.default_rng([self.seed, task]).permutation(count)
        stays = np.zeros(count, bool)
        for platform in np.unique(platforms):
            here = np.unique(rows[platforms == platform])
            stays[here[np.argsort(turn[here])[: self.most]]] = True
        return stays
