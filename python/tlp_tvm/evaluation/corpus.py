"""The programs of an evaluation: those to learn from and those to rank.

A program is named by its place in the whole dataset, which is the same under every layout: rankers with
different layouts rank the same programs.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from copy import copy
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.dataset.ranking import near_training
from tlp_tvm.dataset.reading.holding_out import TEST_SPLIT, TRAIN_SPLIT
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.embedding import Embedding
from tlp_tvm.errors import DatasetError
from tlp_tvm.layout import FeatureLayout

Source = str | os.PathLike[str] | Sequence[str | os.PathLike[str]]


class Corpus:
    """A dataset and the split to evaluate.

    Attributes:
        source: where it was read from.
        platforms: the names that it was read with; None for all.
        whole: all programs, in the first layout.
        split: the one to evaluate; None for all tasks.
        judges: whether programs are to be ranked.
        judged: the programs to rank.
        judged_programs: (n,) their places in `whole`.
        kept: results of one ranker that others reuse.
    """

    def __init__(
        self,
        source: Source,
        layout: FeatureLayout,
        *,
        platforms: Sequence[str] | None = None,
        split: str | None = None,
        judges: bool = True,
    ) -> None:
        """Read a dataset.

        Args:
            source: as `load_measured` takes it.
            layout: of the first ranker.
            platforms: the platforms to take; all when None.
            split: the one to evaluate; None for the test split, or for all tasks if there is none.
            judges: whether programs are to be ranked; without, there are only some to learn from.

        Raises:
            DatasetError: as `load_measured`, or there is no such split.
        """
        self.source = source
        self.platforms = tuple(platforms) if platforms else None
        self.whole = load_measured(source, layout, platforms=self.platforms)
        self.split = TEST_SPLIT if split is None and TEST_SPLIT in self.whole.splits else split
        self.kept: dict[str, Any] = {}
        self._layouts = {layout.digest: self.whole}
        self.judges = judges
        self.judged = self._ranked_of(self.whole)
        inside = [judges and self.split in (None, task.split) for task in self.whole.tasks]
        self.judged_programs: NDArray[np.int64] = np.flatnonzero(np.array(inside)[self.whole.task_index])

    @cached_property
    def near(self) -> set[str] | None:
        """Workload keys of tasks with a near-duplicate among the training tasks, as `near_training` has them.

        None too where the training tasks themselves are evaluated.
        """
        return None if self.split in (None, TRAIN_SPLIT) else near_training(self.whole)

    @cached_property
    def training_tasks(self) -> list[int]:
        """Tasks to learn from, as places in `whole.tasks`.

        Raises:
            DatasetError: there are none, or they are the ones that are judged.
        """
        tasks = [i for i, task in enumerate(self.whole.tasks) if task.split == TRAIN_SPLIT]
        if not self.judges:
            if not tasks:
                raise DatasetError(
                    f'dataset: expected tasks of the split "{TRAIN_SPLIT}" to learn from, found none'
                )
            return tasks
        if self.split in (None, TRAIN_SPLIT) or not tasks:
            judged = f'the split "{self.split}"' if self.split else "all tasks"
            raise DatasetError(
                f'dataset: expected tasks of the split "{TRAIN_SPLIT}" to fit baselines to, beside '
                f"the evaluated ones, found {judged} evaluated and {len(tasks)} to fit to; choose "
                f"`split` {TEST_SPLIT}, or `baselines` random"
            )
        return tasks

    def in_layout(self, layout: FeatureLayout) -> MeasuredDataset:
        """The whole dataset in another layout; programs keep their places.

        Raises:
            DatasetError: the files changed since they were first read.
        """
        if layout.digest not in self._layouts:
            measured = load_measured(self.source, layout, platforms=self.platforms)
            if measured.digest != self.whole.digest or not np.array_equal(
                measured.latencies, self.whole.latencies, equal_nan=True
            ):
                raise DatasetError(
                    f"dataset: expected the files that were read before, digest {self.whole.digest}, found "
                    "others: they changed meanwhile; evaluate again when nothing writes to them"
                )
            self._layouts[layout.digest] = measured
        return self._layouts[layout.digest]

    def embeddings(self, layout: FeatureLayout, programs: NDArray[np.int64]) -> Embedding:
        """(n, L, E) embeddings of programs in a layout."""
        return self.in_layout(layout).features(programs)

    def learning_from(self, latencies: NDArray[np.float64], columns: Sequence[int]) -> Corpus:
        """The same programs, to learn from other labels; what was computed of programs is shared.

        It is there in the layouts that were asked for before, and in no other.

        Args:
            latencies: (N, P) of the platforms here; NaN for what is hidden.
            columns: places of the platforms to keep.
        """
        changed = copy(self)
        kept = tuple(self.whole.platforms[column] for column in columns)
        known = np.ascontiguousarray(latencies[:, list(columns)])
        digest = hashlib.sha256(self.whole.digest.encode() + known.tobytes()).hexdigest()
        changed._layouts = {
            layout: replace(each, platforms=kept, latencies=known, digest=digest)
            for layout, each in self._layouts.items()
        }
        changed.whole = changed._layouts[self.whole.layout.digest]
        changed.judged = self._ranked_of(changed.whole)
        return changed

    def _ranked_of(self, whole: MeasuredDataset) -> MeasuredDataset:
        if not self.judges:
            return whole.of_tasks([])
        return whole if self.split is None else whole.of_split(self.split)

    def judged_without(self, hidden: NDArray[np.bool_]) -> MeasuredDataset:
        """The programs to rank, some measurements hidden.

        Args:
            hidden: (n, P) which, for each platform.
        """
        return replace(self.judged, latencies=np.where(hidden, np.nan, self.judged.latencies))
