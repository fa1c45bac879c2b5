"""Files and folders of records: which are read, what a bad one leaves behind, and any number of threads."""

from __future__ import annotations

import gzip
import json
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from logs import DATASETS, STEPS, WriteLog
from tlp_tvm.errors import RecordError
from tlp_tvm.features import extract_records
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.records import record_files as record_files_module
from tlp_tvm.records.detect import read_records
from tlp_tvm.records.record_files import NOT_RECORDS, record_files


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no\.json"):
        read_records(tmp_path / "no.json")


def test_a_folder_without_records_is_named(tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("no records")
    with pytest.raises(FileNotFoundError, match=r"expected record files \(\.json, .*\), found none"):
        read_records(tmp_path)


def test_copies_in_a_folder_are_left_alone(record: dict[str, Any], tmp_path: Path) -> None:
    line = json.dumps(record).encode()
    for name in ("a.json.bak.gz", "a.json.bak", "a.json~", "b.log.1"):
        (tmp_path / name).write_bytes(gzip.compress(line) if name.endswith(".gz") else line)
    with pytest.raises(
        FileNotFoundError, match=r"found none but a\.json\.bak, .*; name a file itself to read it"
    ):
        read_records(tmp_path)
    assert len(read_records(tmp_path / "a.json.bak.gz")) == 1

    (tmp_path / "a.json").write_bytes(line)
    assert [Path(file).name for file in read_records(tmp_path).files] == ["a.json"]


def test_an_unreadable_file_is_named(tmp_path: Path) -> None:
    path = tmp_path / "loop.json"
    path.symlink_to(path)
    with pytest.raises(OSError, match=r"loop\.json"):
        read_records(path)


@pytest.mark.parametrize(
    "damage",
    [
        pytest.param(lambda data: data[:-20], id="cut"),
        pytest.param(lambda data: data[:6], id="header alone"),
        pytest.param(lambda data: data[:-6] + bytes(6), id="checksum"),
        pytest.param(lambda data: data[:40] + b"\xff" * 40 + data[80:], id="garbled"),
        pytest.param(lambda data: b"no gzip" + data, id="no gzip"),
        pytest.param(lambda data: data + b"trailing", id="trailing bytes"),
    ],
)
def test_a_damaged_gzip_is_refused(
    record: dict[str, Any], tmp_path: Path, damage: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "log.json.gz"
    path.write_bytes(damage(gzip.compress((json.dumps(record) + "\n").encode() * 100)))
    with pytest.raises(
        RecordError, match=r"log\.json\.gz: expected a whole gzip file, found .*fetch or write"
    ):
        read_records(path)


@pytest.mark.parametrize("packed", [False, True])
def test_a_line_that_would_fill_the_memory_is_refused(
    record: dict[str, Any], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, packed: bool
) -> None:
    monkeypatch.setattr(record_files_module, "LONGEST_LINE", 2 << 20)
    path = tmp_path / ("log.json.gz" if packed else "log.json")
    line = json.dumps(record).encode()
    data = line + b"\n" + line[:-1] + b" " * (8 << 20) + b"}\n"
    path.write_bytes(gzip.compress(data) if packed else data)
    with pytest.raises(RecordError) as refused:
        read_records(path)
    assert str(refused.value) == (
        f"{path}: expected lines of at most {2 << 20} bytes, found a longer one; name a record file"
    )
    with pytest.raises(RecordError):
        read_records(path, errors="skip")
    data = line + b"\n" + line[:-1] + b" " * (1 << 20) + b"}\n"
    path.write_bytes(gzip.compress(data) if packed else data)
    assert len(read_records(path)) == 2


def test_a_gzip_of_several_members_is_one_log(record: dict[str, Any], tmp_path: Path) -> None:
    path = tmp_path / "log.json.gz"
    path.write_bytes(gzip.compress((json.dumps(record) + "\n").encode()) * 3)
    assert len(read_records(path)) == 3


def test_an_empty_file_has_no_records(tmp_path: Path) -> None:
    path = tmp_path / "log.json"
    path.write_bytes(b"")
    layout = FeatureLayout.preset("paper-cpu")

    batch = extract_records(path, layout)

    assert len(batch) == 0
    assert batch.features.shape == (0, layout.length, layout.width)
    assert batch.cost_offsets.tolist() == [0]
    assert batch.tasks == []


def test_a_folder_is_read_in_the_order_of_names(record: dict[str, Any], tmp_path: Path) -> None:
    for name in ("b/2.log", "b/1.json.gz", "a.json", "notes.txt"):
        path = tmp_path / name
        path.parent.mkdir(exist_ok=True)
        record["i"][0][0] = name
        data = (json.dumps(record) + "\n").encode()
        path.write_bytes(gzip.compress(data) if name.endswith(".gz") else data)

    batch = read_records(tmp_path)

    assert [batch.tasks[i].workload_key for i in batch.task_ids] == ["a.json", "b/1.json.gz", "b/2.log"]
    assert [Path(batch.files[i]).name for i in batch.file_ids] == ["a.json", "1.json.gz", "2.log"]
    assert batch.line_numbers.tolist() == [1, 1, 1]


# errors="skip".


def damaged_log(record: dict[str, Any]) -> list[Any]:
    good = json.dumps(record)
    other = json.dumps(record | {"i": [["other", "llvm"], record["i"][1]], "r": [[1]]})
    return [good, good[:50], good, "", other, good.replace('"CA"', '"CAT"'), good + "x", good]


def test_skip_counts_by_reason_and_keeps_the_rest(record: dict[str, Any], write_log: WriteLog) -> None:
    batch = read_records(write_log(damaged_log(record)), errors="skip")

    assert batch.line_numbers.tolist() == [1, 3, 8]
    assert [batch.steps(i) for i in range(3)] == [STEPS] * 3
    assert batch.cost_values.tolist() == [0.25, 0.5] * 3
    assert batch.cost_offsets.tolist() == [0, 2, 4, 6]
    assert batch.skipped == {"truncated line": 1, "missing field": 1, "unknown step kind": 1, "not JSON": 1}


def test_a_skipped_line_leaves_nothing_behind(record: dict[str, Any], write_log: WriteLog) -> None:
    with_bad = read_records(write_log(damaged_log(record), name="bad.json"), errors="skip")
    good = read_records(write_log([record] * 3, name="good.json"))

    assert with_bad.tasks == good.tasks
    assert with_bad.sequence_hashes.tolist() == good.sequence_hashes.tolist()
    assert with_bad.cost_values.tolist() == good.cost_values.tolist()
    layout = FeatureLayout.preset("ansor")
    assert with_bad.encode(layout).tobytes() == good.encode(layout).tobytes()


def test_raise_names_the_first_bad_line_whatever_the_threads(
    record: dict[str, Any], write_log: WriteLog
) -> None:
    lines = [json.dumps(record)] * 4000
    lines[1500] = lines[3000] = "{}"
    path = write_log(lines)
    for threads in (1, 4, 7):
        with pytest.raises(RecordError, match=r"log\.json:1501: "):
            read_records(path, threads=threads)


def test_errors_is_raise_or_skip(record: dict[str, Any], write_log: WriteLog) -> None:
    with pytest.raises(ValueError, match='expected "raise" or "skip", found \'ignore\''):
        read_records(write_log([record]), errors="ignore")  # type: ignore[arg-type]


# Threads and blocks.


def everything(paths: Iterable[Path], threads: int) -> list[bytes]:
    batch = extract_records(list(paths), FeatureLayout.preset("ansor"), threads=threads, errors="skip")
    assert batch.features is not None
    arrays = [batch.features, batch.latencies, batch.errors, batch.timestamps, batch.task_ids, batch.lengths]
    arrays += [
        batch.cost_values,
        batch.cost_offsets,
        batch.line_numbers,
        batch.sequence_hashes,
        batch.file_ids,
    ]
    return [np.ascontiguousarray(array).tobytes() for array in arrays] + [
        repr((batch.tasks, batch.skipped, batch.report)).encode()
    ]


def test_any_number_of_threads_gives_the_same_bytes(record: dict[str, Any], write_log: WriteLog) -> None:
    measured = sorted((DATASETS / "epyc").rglob("*.json.gz"))[::20]
    damaged = write_log(damaged_log(record) * 1000)
    one, four, seven = (everything([*measured, damaged], threads) for threads in (1, 4, 7))
    assert one == four == seven


def test_a_log_longer_than_a_block_loses_no_line(record: dict[str, Any], write_log: WriteLog) -> None:
    count = 20_000  # some 17 MB: three blocks
    lines = []
    for i in range(count):
        record["r"][3] = i
        lines.append(json.dumps(record))
    batch = read_records(write_log(lines))
    assert batch.timestamps.tolist() == list(range(count))
    assert batch.line_numbers.tolist() == list(range(1, count + 1))
    assert len(batch.tasks) == 1


def test_lines_are_counted_through_blank_and_bad_ones(record: dict[str, Any], write_log: WriteLog) -> None:
    count = 20_000  # some 12 MB: two blocks of many chunks
    batch = read_records(write_log([json.dumps(record), "", "{}"] * count), errors="skip")
    assert batch.line_numbers.tolist() == list(range(1, 3 * count, 3))
    assert batch.skipped == {"missing field": count}
    path = write_log([json.dumps(record), ""] * count + ["{}"])
    with pytest.raises(RecordError, match=rf"log\.json:{2 * count + 1}: "):
        read_records(path)


def test_a_line_longer_than_a_block_is_read(record: dict[str, Any], write_log: WriteLog) -> None:
    long = record | {"x": "x" * (20 << 20)}
    batch = read_records(write_log([record, long, record]))
    assert batch.line_numbers.tolist() == [1, 2, 3]


def test_files_of_this_project_beside_the_records_are_none(tmp_path: Path) -> None:
    for name in (*NOT_RECORDS, "log.json"):
        (tmp_path / name).write_text("{}\n")

    assert record_files(tmp_path) == [str(tmp_path / "log.json")]
