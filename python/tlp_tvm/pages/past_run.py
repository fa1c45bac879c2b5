"""A complete or stopped tuning run, read from its folder; the folder is not changed."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.errors import DatasetError, TuningError
from tlp_tvm.record_batch import RecordBatch
from tlp_tvm.records.detect import read_records
from tlp_tvm.tuning.history import History, history_of
from tlp_tvm.tuning.run_folder import FORMAT, FORMAT_VERSION, framework_of_run


@dataclass(frozen=True)
class ReportedTask:
    """One task, as far as known.

    Attributes:
        name: TVM's description; a number if the run was stopped before it was known.
        workload_key: TVM's key.
        weight: how often the task appears in the network; 1 where that is not known.
        flops: floating-point operations; None where they are not known, negative where TVM cannot count them.
        programs: measured.
        failed: of those.
        first: latency of the first program that ran, seconds; infinity if none did.
        best: lowest latency, of earlier logs' programs too; infinity if none is known.
        chosen: whether the network has a program of the search there; None where that is not known.
    """

    name: str
    workload_key: str
    weight: int
    flops: float | None
    programs: int
    failed: int
    first: float
    best: float
    chosen: bool | None


@dataclass(frozen=True)
class TuningRun:
    """A run, as its folder describes it.

    Attributes:
        folder: where it is.
        content: run.json.
        tasks: of the network; those of the log if the run was stopped before the network was split.
        history: what was measured; its task ids are places in `tasks`.
        batch: the records of the log.
        rows: (N,) the records of `history`.
        cut: whether the log ends in an incomplete line.
    """

    folder: Path
    content: dict[str, Any]
    tasks: list[ReportedTask]
    history: History
    batch: RecordBatch
    rows: NDArray[np.int64]
    cut: bool

    @property
    def log(self) -> str:
        """Name of the file with what was measured."""
        return framework_of_run(self.content).log

    @property
    def ended(self) -> bool:
        """Whether run.json has results."""
        return "tasks" in self.content

    @property
    def unreported(self) -> int:
        """Programs of the log newer than the results: the run was resumed and stopped."""
        return len(self.history) - int(self.content["trials"]) if self.ended else 0

    @property
    def estimate(self) -> float:
        """The network's latency as the weighted sum of its tasks' best, seconds; NaN if no program ran."""
        times = [task.best * task.weight for task in self.tasks if np.isfinite(task.best)]
        return sum(times) if times else float("nan")

    @property
    def clock(self) -> NDArray[np.float64]:
        """(N,) seconds from the first program's start to each program's end; empty where a log has none."""
        times = self.batch.timestamps[self.rows].astype(np.float64)
        if len(times) < 2 or (np.diff(times) < 0).any() or times[-1] <= times[0]:
            return np.empty(0)
        begin = float(times[0]) - float(self.batch.elapsed[self.rows[0]])
        return np.asarray(times - begin, np.float64)


def read_run(folder: Path) -> TuningRun:
    """Read a run.

    Args:
        folder: with run.json.

    Raises:
        TuningError: run.json is damaged, or there is no log.
        RecordError: the log is damaged.
    """
    path = folder / "run.json"
    content = _content(path)
    log = folder / framework_of_run(content).log
    batch, cut = _log(log)
    try:
        told = {str(task["workload_key"]): task for task in content.get("tasks", content.get("planned", ()))}
        keys = list(told) or list(dict.fromkeys(task.workload_key for task in batch.tasks))
        history, rows = history_of(batch, keys)
        columns = (history.counts, history.failures, history.first, history.best)
        tasks = [
            _task(i, key, told.get(key), *(column[i] for column in columns)) for i, key in enumerate(keys)
        ]
        run = TuningRun(folder, content, tasks, history, batch, rows, cut)
        _check(run)
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise TuningError(
            f"{path}: expected what a tuning writes, found {type(error).__name__}: {error}; tune again"
        ) from error
    return run


def _content(path: Path) -> dict[str, Any]:
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TuningError(f"{path}: expected JSON, found {error}; tune again") from error
    found = (content.get("format"), content.get("format_version")) if isinstance(content, dict) else None
    if found != (FORMAT, FORMAT_VERSION):
        raise TuningError(
            f'{path}: expected "{FORMAT}" of version {FORMAT_VERSION}, found {found}; tune again'
        )
    return dict(content)


def _log(path: Path) -> tuple[RecordBatch, bool]:
    """The records, and whether the last line is incomplete, as after a kill."""
    try:
        text = path.read_bytes()
    except OSError as error:
        raise _no_log(path, error) from error
    try:
        if not text or text.endswith(b"\n"):
            return read_records(path), False
        batch = read_records(path, errors="skip")
        lines = text.count(b"\n") + 1
        last = f"{path}:{lines}:"
        if any(not sentence.startswith(last) for sentence in batch.skipped_lines):
            return read_records(path), False  # says what is wrong
    except DatasetError as error:
        raise TuningError(str(error)) from error
    return batch, bool(batch.skipped)


def _no_log(path: Path, error: OSError) -> TuningError:
    return TuningError(f"{path}: expected the log of the run, found: {error.strerror}; tune again")


def _task(
    i: int,
    key: str,
    told: dict[str, Any] | None,
    programs: int,
    failed: int,
    first: float,
    best: float,
) -> ReportedTask:
    told = told or {}
    of_all_logs = told.get("best")
    return ReportedTask(
        name=str(told.get("name", f"task {i + 1}")).removeprefix("vm_mod_fused_"),
        workload_key=key,
        weight=int(told.get("weight", 1)),
        flops=float(told["flops"]) if "flops" in told else None,
        programs=int(programs),
        failed=int(failed),
        first=float(first),
        best=min(float(best), np.inf if of_all_logs is None else float(of_all_logs)),
        chosen=told.get("chosen"),
    )


def _check(run: TuningRun) -> None:
    """Touch what the page shows, so that a damaged file fails here."""
    content = run.content
    for entry in ("network", "target", "model"):
        content[entry].strip()
    for name in ("versions", "measure"):
        content.get(name, {}).items()
    for name in ("seconds", "failures"):
        for value in content.get(name, {}).values():
            float(value)
    if (ended := content.get("end_to_end")) is not None:
        for name in ("untuned_latency", "tuned_latency", "speedup", "difference"):
            float(ended[name])
    int(run.unreported)
