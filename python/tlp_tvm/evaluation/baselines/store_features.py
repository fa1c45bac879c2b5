"""TVM's per-store features of a corpus's programs, cached in one file per task.

A program has a row of 164 numbers for each store of its lowered loops. Lowering needs the task itself, which
records only name: tasks are split off the networks again, built-in ones and given files. TVM gives the rows
of a program in the order of addresses, another one at every call, so rows are sorted: the same program has
the same features. They do not depend on a CPU's -mcpu; a program's are computed for the first platform of the
corpus.

The cache: <cache>/store-features/<dataset digest>/<task>-<digest of its programs>.npz with `rows` (S, 164)
float32 and `counts` (n,) int32, the rows of each program; none where TVM could not lower it.
"""

from __future__ import annotations

import hashlib
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.dataset.reading.measured import MeasuredTask
from tlp_tvm.evaluation.baselines.program_records import records_of
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.rankers import Programs, Tell
from tlp_tvm.files import fresh_file
from tlp_tvm.framework import framework_named
from tlp_tvm.model.trees.store_trees import STORE_WIDTH
from tlp_tvm.planned_task import task_id

KEPT = "store features"
FORMAT = 1
"""Of the files; another one is computed anew."""


@dataclass(frozen=True)
class StoreFeatures:
    """Rows of all programs of a corpus, one after the other."""

    rows: NDArray[np.float32]
    """(S, 164); TVM has put the logarithm on what is large."""
    counts: NDArray[np.int64]
    """(N,) rows of each program of the corpus; 0 where there are none."""
    missing: dict[int, str]
    """Task -> why its programs have none."""

    def unscored(self, corpus: Corpus) -> dict[int, str]:
        """Task -> why no baseline on these features can score it."""
        if set(corpus.training_tasks) <= self.missing.keys():
            judged = np.unique(corpus.whole.task_index[corpus.judged_programs]).tolist()
            return (
                dict.fromkeys(judged, "no training task has per-store features to learn from") | self.missing
            )
        return self.missing

    def notes(self, corpus: Corpus) -> list[str]:
        """What was left out of learning and judging, in words."""
        without = [
            task
            for task in corpus.training_tasks
            if task in self.missing and len(corpus.whole.programs_of(task))
        ]
        judged = np.isin(np.arange(len(corpus.whole)), corpus.judged_programs)
        asked = judged | np.isin(corpus.whole.task_index, corpus.training_tasks)
        lost = asked & (self.counts == 0) & ~np.isin(corpus.whole.task_index, list(self.missing))
        notes = []
        if without:
            keys = ", ".join(corpus.whole.tasks[task].workload_key for task in without)
            notes.append(f"{len(without)} training tasks without features were not learned from: {keys}")
        if lost.any():
            notes.append(f"{int(lost.sum())} programs that TVM could not lower again count as the slowest")
        return notes

    def of(self, programs: Programs) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        """Rows of some programs, (s, 164), and of which each is, (s,) places in `programs`, ascending."""
        counts = self.counts[programs]
        starts = np.cumsum(self.counts) - self.counts
        owner = np.repeat(np.arange(len(programs)), counts)
        within = np.arange(len(owner)) - np.repeat(np.cumsum(counts) - counts, counts)
        return self.rows[starts[programs][owner] + within], owner


def store_features(
    corpus: Corpus, cache: Path, tell: Tell, network_files: Mapping[str, str] | None = None
) -> StoreFeatures:
    """Features of the programs that are learned from and judged.

    Args:
        corpus: the programs.
        cache: where files are kept; tasks that are there are not computed again.
        tell: receives a line before each step. An interrupted run resumes at the same network.
        network_files: name -> file of networks that are not built in; one beside it that the framework
            takes is taken in its place.

    Raises:
        TvmNotFoundError: features are missing in the cache, and there is no TVM to compute them.
        DatasetError: there is nothing to learn from.
    """
    if KEPT not in corpus.kept:
        corpus.kept[KEPT] = _store_features(corpus, cache, tell, network_files or {})
    features: StoreFeatures = corpus.kept[KEPT]
    return features


def _store_features(
    corpus: Corpus, cache: Path, tell: Tell, network_files: Mapping[str, str]
) -> StoreFeatures:
    framework = framework_named(corpus.whole.layout.framework)
    judged = set(corpus.whole.task_index[corpus.judged_programs].tolist())
    tasks = sorted(judged | set(corpus.training_tasks))
    tell("reading the records of all programs")
    records = records_of(corpus, tasks)
    elsewhere = [task for task in tasks if not records[task]]
    tasks = [task for task in tasks if records[task]]
    folder = cache / "store-features" / corpus.whole.digest
    files = {task: folder / _file_name(corpus.whole.tasks[task], records[task]) for task in tasks}
    found = {task: content for task in tasks if (content := _read(files[task])) is not None}
    wanted = {corpus.whole.tasks[task].workload_key: task for task in tasks if task not in found}
    described = {
        key: {
            own_file(network_files[name], framework.exported) if name in network_files else name: times
            for name, times in corpus.whole.tasks[task].weights.items()
        }
        for key, task in wanted.items()
    }
    records_of_key = {key: records[task] for key, task in wanted.items()}
    targets = [platform.target for platform in corpus.whole.platforms]
    computed = framework.store_rows(described, targets, records_of_key, tell) if described else ()
    for key, rows, counts in computed:
        task = wanted.pop(key)
        folder.mkdir(parents=True, exist_ok=True)
        with fresh_file(files[task]) as fresh, fresh.open("wb") as file:
            np.savez_compressed(file, rows=rows, counts=counts)
        found[task] = rows, counts
    missing = {
        task: f"none of its networks has it when built here: {', '.join(corpus.whole.tasks[task].weights)}"
        for task in wanted.values()
    }
    missing |= dict.fromkeys(elsewhere, "none of its programs ran on the chosen platforms")
    of_program = np.zeros(len(corpus.whole), np.int64)
    for task, (_, counts) in found.items():
        of_program[corpus.whole.programs_of(task)] = counts
    parts = [found[task][0] for task in sorted(found)]
    return StoreFeatures(
        np.concatenate([np.empty((0, STORE_WIDTH), np.float32), *parts]), of_program, missing
    )


def own_file(file: str, suffix: str) -> str:
    """Of a network's files side by side, the one that a framework takes.

    Args:
        file: any of them.
        suffix: of what the framework takes.
    """
    own = Path(file).with_suffix(suffix)
    return str(own) if own.is_file() else file


def _file_name(task: MeasuredTask, lines: Sequence[str]) -> str:
    digest = hashlib.sha256(f"{FORMAT}\n{task.workload_key}\n{''.join(lines)}".encode()).hexdigest()
    return f"{task_id(task.workload_key)}-{digest[:16]}.npz"


def _read(path: Path) -> tuple[NDArray[np.float32], NDArray[np.int32]] | None:
    """A task's features; None where there are none that can be read."""
    try:
        with path.open("rb") as file, np.load(file, allow_pickle=False) as arrays:
            rows, counts = arrays["rows"], arrays["counts"]
    except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile):
        return None
    return (rows, counts) if rows.shape == (int(counts.sum()), STORE_WIDTH) else None
