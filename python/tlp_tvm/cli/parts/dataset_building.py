"""`tlp-tvm dataset build` and `import-tenset`: the split rule, the progress, what was written."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tlp_tvm.cli.parts.common import console, progress_console
from tlp_tvm.cli.parts.progress import text_column

if TYPE_CHECKING:
    from tlp_tvm.dataset.building.build import Progress
    from tlp_tvm.dataset.building.split_rules import SplitRule
    from tlp_tvm.dataset.reading.manifest import Manifest


class Split(str, Enum):
    """The rule that splits tasks into train, validation and test."""

    KEEP = "keep"
    FAMILY = "family"
    TASK = "task"


class Near(str, Enum):
    """What to do with tasks that share an operator graph at other batch or image sizes."""

    TOGETHER = "together"
    APART = "apart"


def rule_of(
    split: Split | None,
    test: list[str] | None,
    test_share: float,
    validation_share: float,
    seed: int,
    near: Near | None,
) -> SplitRule | None:
    """The rule that the options name, or None.

    Raises:
        BadParameter: the options do not go together.
    """
    from tlp_tvm.dataset.building.split_rules import FamilySplit, KeepSplits, TaskSplit

    if test and split is not Split.FAMILY:
        raise typer.BadParameter("expected --split family with it", param_hint="--test")
    if near is not None and split not in (Split.FAMILY, Split.TASK):
        raise typer.BadParameter("expected --split family or task with it", param_hint="--near-duplicates")
    if test_share + validation_share >= 1:
        sentence = f"expected below 1 with --validation-share, found {test_share + validation_share:g}"
        raise typer.BadParameter(sentence, param_hint="--test-share")
    if split is Split.FAMILY:
        return FamilySplit(tuple(test or ()), validation_share, seed, (near or Near.APART).value)
    if split is Split.TASK:
        return TaskSplit(test_share, validation_share, seed, (near or Near.TOGETHER).value)
    return KeepSplits() if split is Split.KEEP else None


@contextmanager
def build_progress() -> Iterator[Callable[[Progress], None]]:
    """A progress bar for the two passes of a build."""
    from rich import progress as rich_progress

    columns = (
        text_column("{task.description}"),
        rich_progress.BarColumn(),
        rich_progress.TextColumn("{task.fields[records]:,} records"),
        rich_progress.TimeElapsedColumn(),
        rich_progress.TimeRemainingColumn(),
    )
    with rich_progress.Progress(*columns, console=progress_console, transient=True) as bar:
        shown: dict[str, Any] = {}

        def progress(at: Progress) -> None:
            if at.step not in shown:
                shown[at.step] = bar.add_task(at.step, total=at.total, records=0)
            bar.update(shown[at.step], completed=at.done, total=at.total, records=at.records)

        yield progress


def print_manifest(manifest: Manifest, out: Path) -> None:
    """What a build wrote."""
    size = sum(shard.bytes for shard in manifest.shards)
    console.print(
        f"{out}: {manifest.programs:,} programs, {manifest.measurements:,} measurements on "
        f"{len(manifest.platforms)} platforms, {len(manifest.tasks):,} tasks, {size / 1e6:,.1f} MB",
        soft_wrap=True,
    )
    for split in sorted({task.split for task in manifest.tasks}):
        tasks = [task for task in manifest.tasks if task.split == split]
        console.print(
            f"  {split}: {len(tasks):,} tasks, {sum(task.programs for task in tasks):,} programs",
            soft_wrap=True,
        )
    for reason, count in manifest.skipped.items():
        console.print(f"  skipped: {count:,} lines ({reason})", soft_wrap=True)
    for note in manifest.notes:
        console.print(f"  note: {note}", soft_wrap=True)
