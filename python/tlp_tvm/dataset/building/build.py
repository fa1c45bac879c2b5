"""Records -> a built dataset: shards, and a manifest written last."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace as replaced
from pathlib import Path
from typing import Any, Literal, NamedTuple

from tlp_tvm.dataset.building.kinds_of_labels import mixed_labels
from tlp_tvm.dataset.building.spill import Spill
from tlp_tvm.dataset.building.split_rules import Assignment, KeepSplits, SplitRule, TaskFacts
from tlp_tvm.dataset.building.thinning import Thinning
from tlp_tvm.dataset.building.whole_folder import fresh_folder
from tlp_tvm.dataset.reading.built import file_sha256
from tlp_tvm.dataset.reading.manifest import Manifest, PlatformEntry, ShardEntry, TaskEntry
from tlp_tvm.dataset.reading.shards import write_shard
from tlp_tvm.errors import DatasetError
from tlp_tvm.records.detect import framework_of, iter_rows
from tlp_tvm.records.names import Names, description_of, split_of_missing
from tlp_tvm.records.source import PLAIN_NETWORK, DatasetSource, find_source, is_built

PARTITION_BYTES = 96 << 20
"""Text of the records of a partition, which the second pass holds in memory."""

MOST_PARTITIONS = 256
"""Each has two open files in the first pass."""

GZIP_RATIO = 12
"""About how often packed records hold their size; only the number of partitions depends on it."""


class Progress(NamedTuple):
    """How far a build is."""

    step: Literal["reading", "writing"]
    done: int
    total: int
    records: int


def build_dataset(
    sources: Sequence[str | os.PathLike[str]],
    out: str | os.PathLike[str],
    *,
    platform: str | None = None,
    split: SplitRule | None = None,
    errors: Literal["raise", "skip"] = "raise",
    allow_odd_targets: bool = False,
    programs_per_task: int | None = None,
    seed: int = 0,
    replace: bool = False,
    threads: int = 0,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Manifest:
    """Build a dataset out of dataset folders and logs.

    Memory is bounded by the largest task, not by the number of records. An interrupted build leaves what lay
    at `out`; call it again.

    Args:
        sources: dataset folders, record files, or folders of them; "NAME=PATH" names plain logs' platform.
        out: the folder to write: new, or a dataset to replace.
        platform: name of the platform of plain logs that say none; their target when None.
        split: which tasks train, validate and test; as the sources say when None.
        errors: "skip" passes over bad lines and counts them in the manifest.
        allow_odd_targets: records of a platform may name several targets; the first stands for all, and the
            manifest notes the others.
        programs_per_task: at most this many programs per task and platform, drawn at random, but all of
            test tasks; all when None.
        seed: of that draw.
        replace: a built dataset at `out` gives way, once the new one is whole.
        threads: native threads; 0 for all cores. The result does not depend on it.
        progress: called after every batch of records and every shard.

    Raises:
        DatasetError: a source is missing, or sources disagree.
        RecordError: a line is no record.
        OSError: e.g. the disk is full.
    """
    found = [_source(source, platform) for source in sources]
    return build_from(
        found,
        out,
        split=split,
        errors=errors,
        replace=replace,
        allow_odd_targets=allow_odd_targets,
        programs_per_task=programs_per_task,
        seed=seed,
        threads=threads,
        progress=progress,
    )


def build_from(
    sources: Sequence[DatasetSource],
    out: str | os.PathLike[str],
    *,
    split: SplitRule | None = None,
    errors: Literal["raise", "skip"] = "raise",
    replace: bool = False,
    allow_odd_targets: bool = False,
    programs_per_task: int | None = None,
    seed: int = 0,
    threads: int = 0,
    progress: Callable[[Progress], None] = lambda _: None,
) -> Manifest:
    """`build_dataset` of sources that were found already.

    Args:
        sources: what to read.
        out: as for `build_dataset`, and so are the rest.
        split: see there.
        errors: see there.
        replace: see there.
        allow_odd_targets: see there.
        programs_per_task: see there.
        seed: see there.
        threads: see there.
        progress: see there.

    Raises:
        DatasetError: as `build_dataset` does.
        RecordError: as `build_dataset` does.
        OSError: as `build_dataset` does.
    """
    rule = split or KeepSplits()
    framework = framework_of([file for source in sources for file in source.files], "sources")
    if all(source.table is not None for source in sources):
        rule.apply(_facts(sources, {}, lambda _: 1))  # what it refuses now need not be read first
    with fresh_folder(Path(out), replace=replace) as folder:
        names = Names(keep_splits=isinstance(rule, KeepSplits), allow_odd_targets=allow_odd_targets)
        spill = Spill(folder / "spill", _partitions(sources))
        skipped, records = _read(framework, sources, names, spill, errors, threads, progress)
        facts = _facts(sources, names.splits, spill.numbers.count)
        assignment = rule.apply(facts)
        kept = Thinning(programs_per_task, seed)
        shards = _write(folder, spill, kept, assignment.splits, records, progress)
        spill.folder.rmdir()
        platforms = [
            PlatformEntry(name, target, kept.measurements.get(number, 0))
            for number, (name, target) in enumerate(names.targets.items())
        ]
        manifest = Manifest(
            platforms=tuple(platforms),
            split=assignment.stated,
            tasks=tuple(_entries(facts, assignment, kept.programs)),
            shards=tuple(shards),
            sources=[Path(source.name).name for source in sources],  # the digest shall not tell of places
            skipped=skipped,
            notes=[
                f"platform {name}: also has records of {', '.join(sorted(odd))}, taken for its first target"
                for name, odd in names.odd_targets.items()
            ]
            + mixed_labels(sources)
            + kept.notes(),
            framework=framework,
        )
        manifest.write(folder)
    return manifest


def _source(name: str | os.PathLike[str], platform: str | None) -> DatasetSource:
    before, equals, after = os.fspath(name).partition("=")
    if equals and before and not Path(name).exists():
        platform, name = before, after
    if is_built(name):
        raise DatasetError(f"{name}: expected records, found a built dataset; name what it was built from")
    found = find_source(name)
    if found.table is None and platform is not None:
        return replaced(found, groups=tuple(replaced(group, platform=platform) for group in found.groups))
    return found


def _partitions(sources: Iterable[DatasetSource]) -> int:
    size = sum(
        Path(file).stat().st_size * (GZIP_RATIO if file.endswith(".gz") else 1)
        for source in sources
        for file in source.files
    )
    return min(MOST_PARTITIONS, 1 + size // PARTITION_BYTES)


def _read(
    framework: str,
    sources: Sequence[DatasetSource],
    names: Names,
    spill: Spill,
    errors: Literal["raise", "skip"],
    threads: int,
    progress: Callable[[Progress], None],
) -> tuple[dict[str, int], int]:
    """The first pass. Returns the lines passed over by reason, and how many records there are."""
    total = sum(len(source.files) for source in sources)
    skipped: dict[str, int] = {}
    files = records = 0
    for source in sources:
        for group in source.groups:
            place = {file: i for i, file in enumerate(group.files)}
            for batch in iter_rows(framework, group.files, errors=errors, threads=threads):
                for reason, count in batch.skipped.items():
                    skipped[reason] = skipped.get(reason, 0) + count
                platforms = names.platforms(source, group, batch.tasks)[batch.task_ids]
                tasks = names.tasks(source, group, batch.tasks)[batch.task_ids]
                if len(batch):
                    spill.add(batch, tasks, platforms)
                records += len(batch)
                progress(Progress("reading", files + place[batch.files[-1]], total, records))
            files += len(group.files)
    if not records:
        raise DatasetError(f"{sources[0].name}: expected measure records, found none")
    return skipped, records


def _write(
    folder: Path,
    spill: Spill,
    thinning: Thinning,
    splits: Sequence[str],
    records: int,
    progress: Callable[[Progress], None],
) -> list[ShardEntry]:
    """The second pass."""
    shards: list[ShardEntry] = []
    for whole in spill.tables():
        table = thinning.kept(whole, splits)
        file = folder / f"programs-{len(shards):05d}.arrow"
        write_shard(file, table)
        measured = len(table.column("measurements").combine_chunks().flatten())
        shards.append(ShardEntry(file.name, len(table), measured, file.stat().st_size, file_sha256(file)))
        progress(Progress("writing", len(shards), spill.partitions, records))
    return shards


def _facts(
    sources: Sequence[DatasetSource], measured: dict[str, str], programs: Callable[[int], int]
) -> list[TaskFacts]:
    """Every task that has records, then those that a table lists as measured.

    Args:
        sources: for their tables.
        measured: workload key -> split of the tasks that have records; none before records were read.
        programs: of a task's number.
    """
    entries: dict[str, list[dict[str, Any]]] = {key: [] for key in measured}
    splits = dict(measured)
    for source in sources:
        for key, listed in (source.table or {}).items():
            if measured and key not in measured and not source.is_complete:
                continue
            entries.setdefault(key, []).extend(listed)
            splits.setdefault(key, split_of_missing(listed))
    return [
        TaskFacts(
            workload_key=key,
            split=split,
            networks={str(e["network"]): (int(e["weight"]), str(e["split"])) for e in reversed(entries[key])}
            or {PLAIN_NETWORK: (1, split)},
            programs=programs(number),
            flop=next((float(e["flop"]) for e in entries[key] if e.get("flop") is not None), None),
            description=description_of(entries[key]),
        )
        for number, (key, split) in enumerate(splits.items())
    ]


def _entries(
    facts: Sequence[TaskFacts], assignment: Assignment, programs: Mapping[int, int]
) -> Iterable[TaskEntry]:
    sides = zip(assignment.splits, assignment.networks, strict=True)
    for number, (task, (split, here)) in enumerate(zip(facts, sides, strict=True)):
        weights = {network: weight for network, (weight, _) in task.networks.items()}
        yield TaskEntry(
            workload_key=task.workload_key,
            split=split,
            weights={network: weight for network, weight in weights.items() if network in here},
            also_in={network: weight for network, weight in weights.items() if network not in here},
            programs=programs.get(number, 0),
            flop=task.flop,
            description=task.description,
        )
