"""What is kept of peers, and which of them counts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tlp_tvm.beside.beside_result import REPORT, BesideResult, Timed, read_beside, write_beside
from tlp_tvm.beside.peer_kinds import ONNX, PEERS, Peer, file_for_peers, peers_named
from tlp_tvm.errors import BesideError

PEERS_TIMED = (
    Timed("torch", "2", (0.004, 0.003, 0.008), 1e-6),
    Timed("openvino", "3", (0.001, 0.001, 0.001), 0.5, "openvino: outputs differ"),
    Timed("onnxruntime", "1", problem="onnxruntime: no such file"),
)
RESULT = BesideResult("net", "a CPU", 2, 7, Timed("tlp-tvm", "0.1", (0.002, 0.001, 0.003)), PEERS_TIMED)


def test_the_fastest_peer_computes_the_same() -> None:
    assert RESULT.fastest == PEERS_TIMED[0]
    assert RESULT.ours.latency == 0.002
    assert RESULT.ours.lowest == 0.001
    assert RESULT.speedup == 2.0


def test_a_result_is_read_back(tmp_path: Path) -> None:
    assert read_beside(tmp_path) is None
    write_beside(tmp_path, RESULT)
    assert read_beside(tmp_path) == RESULT
    assert json.loads((tmp_path / REPORT).read_text())["speedup"] == 2.0


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("[", "JSONDecodeError: Expecting value: line 1 column 2 (char 1)"),
        ("[]", "TypeError: list indices must be integers or slices, not str"),
        ('{"format": "tlp-tvm-beside", "format_version": 2}', "ValueError: tlp-tvm-beside of version 2"),
    ],
)
def test_a_damaged_file_is_said(tmp_path: Path, text: str, found: str) -> None:
    (tmp_path / REPORT).write_text(text)
    with pytest.raises(BesideError) as refused:
        read_beside(tmp_path)
    assert str(refused.value) == (
        f"{tmp_path / REPORT}: expected what `beside` writes, found {found}; "
        "run the same tuning with `beside` again"
    )


def test_peers_are_named_once() -> None:
    assert peers_named("torch, onnxruntime,torch") == ("torch", "onnxruntime")


def test_an_unknown_peer_is_refused() -> None:
    with pytest.raises(BesideError) as refused:
        peers_named("torch,onnx")
    assert str(refused.value) == (
        '`beside`: expected some of onnxruntime, openvino, torch, torch-compile, found "onnx"'
    )


def test_a_peer_that_is_not_installed_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(PEERS, "openvino", Peer("no_such_package", ONNX))
    with pytest.raises(BesideError) as refused:
        peers_named("torch,openvino")
    assert str(refused.value) == (
        "`beside` openvino: expected the package no_such_package, found none; install tlp-tvm[peers]"
    )


def test_a_built_in_network_is_refused() -> None:
    with pytest.raises(BesideError) as refused:
        file_for_peers("mlp", ["torch"])
    assert str(refused.value) == (
        "`beside`: expected a network in a file, found the built-in mlp, which no peer can read; "
        "export a network, and tune the file"
    )


def test_a_file_that_no_peer_runs_is_refused() -> None:
    with pytest.raises(BesideError) as refused:
        file_for_peers("net.onnx", ["torch"])
    assert str(refused.value) == (
        "`beside`: net.onnx: expected a file that torch wrote for torch, found .onnx; "
        "tune the TorchScript file of the same network"
    )
    assert file_for_peers("net.onnx", ["torch", "onnxruntime"]) == Path("net.onnx")
