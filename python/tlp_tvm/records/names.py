"""Numbers platforms and tasks in the order of their first record; refuses contradicting sources."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.errors import DatasetError
from tlp_tvm.record_batch import TaskKey
from tlp_tvm.records.source import DatasetSource, RecordGroup


class Names:
    """Numbers what records name.

    Attributes:
        targets: platform -> its target, in the order of the numbers.
        splits: workload key -> the split that its source puts it in, in the order of the numbers.
        odd_targets: platform -> records of other targets, where those are allowed.
    """

    def __init__(self, *, keep_splits: bool = True, allow_odd_targets: bool = False) -> None:
        """Start empty.

        Args:
            keep_splits: a task in two splits is an error.
            allow_odd_targets: a platform's first target stands for all its records.
        """
        self.targets: dict[str, str] = {}
        self.splits: dict[str, str] = {}
        self.odd_targets: dict[str, set[str]] = {}
        self._keep_splits = keep_splits
        self._allow_odd_targets = allow_odd_targets
        self._platform_of: dict[str, int] = {}
        self._task_of: dict[str, int] = {}

    def platforms(
        self, source: DatasetSource, group: RecordGroup, tasks: Iterable[TaskKey]
    ) -> NDArray[np.int64]:
        """The platform of each of a batch's tasks.

        Raises:
            DatasetError: a platform has records of two targets.
        """
        return np.array([self._platform(source, group, task.target.strip()) for task in tasks], np.int64)

    def tasks(self, source: DatasetSource, group: RecordGroup, tasks: Iterable[TaskKey]) -> NDArray[np.int64]:
        """The number of each of a batch's tasks.

        Raises:
            DatasetError: the table of the source lacks one, or one is in two splits.
        """
        return np.array([self._task(source, group, task.workload_key) for task in tasks], np.int64)

    def _platform(self, source: DatasetSource, group: RecordGroup, target: str) -> int:
        name = group.platform or target
        known = self.targets.setdefault(name, target)
        if known != target:
            if not self._allow_odd_targets:
                raise DatasetError(
                    f'{source.name}: platform {name}: expected one target, found "{known}" and "{target}"; '
                    "give each a folder of its own"
                )
            self.odd_targets.setdefault(name, set()).add(target)
        return self._platform_of.setdefault(name, len(self._platform_of))

    def _task(self, source: DatasetSource, group: RecordGroup, workload_key: str) -> int:
        if source.table is not None and source.is_complete and workload_key not in source.table:
            raise DatasetError(
                f"{group.files[0]} or a file beside it: expected workloads that tasks.json lists as "
                f"measured, found {workload_key}"
            )
        split = self.splits.setdefault(workload_key, group.split)
        if self._keep_splits and split != group.split:
            raise DatasetError(
                f"{source.name}: expected each task in one split, found {workload_key} in "
                f"{split} and {group.split}"
            )
        return self._task_of.setdefault(workload_key, len(self._task_of))


def split_of_missing(entries: list[dict[str, object]]) -> str:
    """The split of a task that a table lists as measured and no record has."""
    return "test" if any(e["split"] == "test" for e in entries) else str(entries[0]["split"])


def description_of(entries: Sequence[dict[str, Any]]) -> str | None:
    """The compiler's name of a task's function, if a table's entries of the task have one."""
    return next((str(entry["desc"]) for entry in entries if entry.get("desc")), None)
