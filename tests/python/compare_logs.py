"""Compares the native reader with Python's json on whole logs, line by line.

    python tests/python/compare_logs.py SOURCE...

SOURCE is a log or a folder of logs. Every line that `reference.steps` takes must be the same record to the
native reader, and every line that it refuses must be skipped there too. The exit code is 1 if any is not.
"""

from __future__ import annotations

import gzip
import sys
from collections.abc import Iterator
from pathlib import Path

from reference import steps as reference
from tlp_tvm.record_batch import RecordBatch
from tlp_tvm.records.detect import read_records
from tlp_tvm.records.record_files import record_files


def lines_of(file: str) -> list[bytes]:
    data = Path(file).read_bytes()
    return (gzip.decompress(data) if file.endswith(".gz") else data).split(b"\n")


def native_record(batch: RecordBatch, i: int) -> tuple[reference.Record, float]:
    task = batch.tasks[batch.task_ids[i]]
    costs = batch.cost_values[batch.cost_offsets[i] : batch.cost_offsets[i + 1]].tolist()
    record = reference.Record(
        steps=batch.steps(i),
        costs=costs,
        error=int(batch.errors[i]),
        timestamp=int(batch.timestamps[i]),
        workload_key=task.workload_key,
        target=task.target,
        hardware=task.hardware,
        target_host=task.target_host,
    )
    return record, float(batch.latencies[i])


def disagreements(file: str) -> tuple[int, list[str]]:
    """How many lines a log has, blank ones aside, and what the readers disagree about."""
    batch = read_records(file, errors="skip")
    row_of = {line: i for i, line in enumerate(batch.line_numbers.tolist())}
    found = []
    count = 0
    for number, line in enumerate(lines_of(file), 1):
        if not line.strip(b" \t\r"):
            if number in row_of:
                found.append(f"{file}:{number}: a blank line, read as a record")
            continue
        count += 1
        try:
            expected = reference.parse(line)
        except reference.RefusedError as error:
            if number in row_of:
                found.append(f"{file}:{number}: read as a record, but json says {error}")
            continue
        if number not in row_of:
            found.append(f"{file}:{number}: skipped, but json reads it")
        elif native_record(batch, row_of[number]) != (expected, expected.latency):
            found.append(f"{file}:{number}: read as another record than json does")
    return count, found


def compare(sources: list[str]) -> Iterator[tuple[int, list[str]]]:
    for file in record_files(sources):
        yield disagreements(file)


def main() -> int:
    files = lines = wrong = 0
    for count, found in compare(sys.argv[1:]):
        files += 1
        lines += count
        wrong += len(found)
        for sentence in found[:10]:
            sys.stdout.write(f"{sentence}\n")
    sys.stdout.write(f"{lines:,} lines of {files:,} files: {wrong:,} disagreements\n")
    return 1 if wrong or not lines else 0


if __name__ == "__main__":
    sys.exit(main())
