"""Tasks that no training task resembles: the same operator graph at other sizes is no new task to a model."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from tlp_tvm.dataset.building.near_duplicates import near_duplicate_groups
from tlp_tvm.dataset.reading.holding_out import TRAIN_SPLIT
from tlp_tvm.dataset.reading.manifest import read_manifest
from tlp_tvm.errors import ComparisonError
from tlp_tvm.planned_task import AnyTask


def far_tasks(tasks: Sequence[AnyTask], dataset: Path) -> tuple[list[AnyTask], str]:
    """Leave out the tasks that have a near-duplicate among a dataset's training tasks.

    Args:
        tasks: to choose from.
        dataset: folder of a built dataset.

    Returns:
        Those that are left, and the dataset's digest.

    Raises:
        DatasetError: the folder holds no built dataset.
        ComparisonError: it has no training tasks, or none is left.
    """
    manifest, digest = read_manifest(dataset)
    learned = [(task.workload_key, task.description) for task in manifest.tasks if task.split == TRAIN_SPLIT]
    if not learned:
        raise ComparisonError(
            f"{dataset}: expected a dataset with training tasks, found none; give the one that the model "
            "learned from"
        )
    groups = near_duplicate_groups([*learned, *((task.workload_key, task.desc) for task in tasks)])
    known = set(groups[: len(learned)])
    far = [task for task, group in zip(tasks, groups[len(learned) :], strict=True) if group not in known]
    if not far:
        raise ComparisonError(
            f"expected tasks that none of the {len(learned)} training tasks of {dataset} resembles, found "
            f"none among {len(tasks)}; compare on other networks, or without `far`"
        )
    return far, digest
