"""The benchmark of records and the comparison of whole logs: once, small, and able to fail."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from typing import Any

import pytest

import compare_logs
from logs import DATASETS, WriteLog
from places import ROOT
from tlp_tvm.bench.python_route import PythonEncoder
from tlp_tvm.features import extract_records
from tlp_tvm.layout import FeatureLayout

BENCHMARK = ROOT / "benchmarks" / "records.py"


def test_the_benchmark_runs() -> None:
    command = [sys.executable, str(BENCHMARK), "--megabytes", "1", "--rounds", "1", "--memory", "0.002"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    for line in (
        r"native / Python, file to embedding, 1 thread: [\d.]+x",
        r"2 threads / 1 thread, streamed: [\d.]+x \(CPU seconds [\d.]+x\)",
        r"records alone: peak \d+ MB",
        r"embedded in the layout paper-cpu: peak \d+ MB",
    ):
        assert re.search(line, done.stdout), done.stdout


def test_the_python_encoder_is_for_flat_layouts() -> None:
    with pytest.raises(ValueError, match="layout ansor: expected a flat one"):
        PythonEncoder(FeatureLayout.preset("ansor"))


def test_the_python_encoder_takes_unknown_names(record: dict[str, Any], write_log: WriteLog) -> None:
    layout = FeatureLayout.preset("paper-cpu")
    record["i"][1][1] = [["PR", 1, 0, "unheard_of"], ["CHW", 1, "somewhere"]]
    features = extract_records(write_log([record]), layout).features
    assert features is not None
    assert PythonEncoder(layout).encode(record["i"][1][1]).tobytes() == features[0].tobytes()


def test_whole_logs_are_compared(record: dict[str, Any], write_log: WriteLog) -> None:
    log = write_log([record, "", "{}", json.dumps(record)[:40], record])
    assert compare_logs.disagreements(str(log)) == (4, [])
    measured = min((DATASETS / "epyc").rglob("*.json.gz"))
    count, found = compare_logs.disagreements(str(measured))
    assert count > 10
    assert not found


def test_a_disagreement_is_found(
    record: dict[str, Any], write_log: WriteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    parse = compare_logs.reference.parse

    def wrong(line: bytes) -> Any:
        if b"CIX" in line:
            raise compare_logs.reference.RefusedError("CIX")
        return parse(line.replace(b'"CI", 7', b'"CI", 8'))

    log = write_log([record, json.dumps(record) + " ", json.dumps({**record, "x": "CIX"})])
    monkeypatch.setattr(compare_logs.reference, "parse", wrong)
    count, found = compare_logs.disagreements(str(log))
    assert count == 3
    assert [sentence.split(": ")[1] for sentence in found] == [
        "read as another record than json does",
        "read as another record than json does",
        "read as a record, but json says CIX",
    ]
