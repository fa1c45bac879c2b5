"""The records of a corpus's programs in the corpus's order; TVM rebuilds the programs from them."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator

import numpy as np

from tlp_tvm.errors import DatasetError
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.framework import framework_named
from tlp_tvm.record_batch import RecordBatch
from tlp_tvm.records.detect import iter_rows
from tlp_tvm.records.source import find_source, is_built


def records_of(corpus: Corpus, tasks: Collection[int]) -> dict[int, list[str]]:
    """A record of every program of some tasks.

    Args:
        corpus: the programs.
        tasks: places in the corpus.

    Returns:
        Task -> what TVM rebuilds its programs from, in the order of `programs_of`.

    Raises:
        DatasetError: the files changed since the corpus was read.
    """
    wanted = {corpus.whole.tasks[task].workload_key: task for task in tasks}
    lines: dict[int, list[str]] = {task: [] for task in wanted.values()}
    known: set[tuple[int, int]] = set()
    text_of = framework_named(corpus.whole.layout.framework).program_text
    for workload_key, sequence_hash, batch, i in _programs(corpus):
        task = wanted.get(workload_key)
        if task is not None and (task, sequence_hash) not in known:
            known.add((task, sequence_hash))
            lines[task].append(text_of(batch, i))
    for task, found in lines.items():
        expected = len(corpus.whole.programs_of(task))
        if len(found) != expected:
            raise DatasetError(
                f"dataset: expected {expected} programs of {corpus.whole.tasks[task].workload_key}, found "
                f"{len(found)}: its files changed meanwhile; evaluate again when nothing writes to them"
            )
    return lines


def _programs(corpus: Corpus) -> Iterator[tuple[str, int, RecordBatch, int]]:
    """Workload key, identity, and where its record is, of every program, as often as it is there."""
    source = corpus.source
    if isinstance(source, (str, os.PathLike)) and is_built(source):
        yield from _programs_of_built(corpus, source)
        return
    framework = corpus.whole.layout.framework
    for group in find_source(source, corpus.platforms).groups:
        for batch in iter_rows(framework, group.files):
            keys = [task.workload_key for task in batch.tasks]
            for i, (task, identity) in enumerate(
                zip(batch.task_ids.tolist(), batch.sequence_hashes.tolist(), strict=True)
            ):
                yield keys[task], identity, batch, i


def _programs_of_built(
    corpus: Corpus, folder: str | os.PathLike[str]
) -> Iterator[tuple[str, int, RecordBatch, int]]:
    from tlp_tvm.dataset.reading.built import open_built  # pyarrow takes a while to import

    built = open_built(folder)
    names = [platform.name for platform in built.manifest.platforms]
    chosen = [i for i, name in enumerate(names) if corpus.platforms is None or name in corpus.platforms]
    for batch in built.batches():
        records = batch.records()
        for i in np.unique(batch.programs[np.isin(batch.platforms, chosen)]).tolist():
            key = built.manifest.tasks[batch.tasks[i]].workload_key
            yield key, int(batch.sequence_hashes[i]), records, i
