"""`tlp-tvm tune --beside` as it is typed, and the page of the run."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from pathlib import Path

import pytest

from commands import refused, succeed
from exported import dense_net, export_traced
from programs import tiny_config
from tlp_tvm.beside import counted_turns, timing_peers
from tlp_tvm.beside.beside_result import BesideResult, Timed, read_beside, write_beside
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.checkpoint import save_checkpoint
from tlp_tvm.pages import report_page

TARGET = "llvm -mcpu=core-avx2 -num-cores=2"


@pytest.fixture(autouse=True)
def short_turns(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in {
        "TURNS": 2,
        "SECONDS": 0.001,
        "PAUSE": 0.0,
    }.items():
        monkeypatch.setattr(timing_peers, name, value)
    monkeypatch.setattr(counted_turns, "placements", lambda trips: [(0.0, math.inf)])
    for name in ("SLOWED", "STEADY"):
        monkeypatch.setattr(counted_turns, name, math.inf)


@pytest.fixture(scope="module")
def command(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    folder = tmp_path_factory.mktemp("beside")
    config, network = tiny_config(FeatureLayout.preset("ansor"))
    save_checkpoint(folder / "tiny", config, network.state_dict())
    file, out = export_traced(folder / "net.pt", network=dense_net()), folder / "run"
    return [
        "tune",
        *map(str, (file, "--model", folder / "tiny", "--trials", 2, "--target", TARGET, "--out", out)),
    ]


def test_peers_are_timed_after_the_tuning_or_later(command: list[str]) -> None:
    out = Path(command[-1])
    succeed(*command)
    assert not (out / "beside.json").exists()

    printed = succeed(*command, "--beside", "onnxruntime,torch")

    result = read_beside(out)
    assert result is not None
    assert (result.threads, result.programs, len(result.ours.turns)) == (2, 2, 2)
    assert "net beside its peers, 2 threads, 2 turns" in printed
    assert result.fastest is not None
    assert f"x as fast as the fastest peer, {result.fastest.name}" in printed

    value = json.loads(succeed(*command, "--beside", "torch", "--json"))
    assert value["reused"] == 2
    assert [peer["name"] for peer in value["beside"]["peers"]] == ["torch"]


def test_what_cannot_be_is_refused_before_the_tuning(tmp_path: Path) -> None:
    out = tmp_path / "run"
    sentence = refused("tune", "mlp", "--out", out, "--beside", "torch")
    assert sentence.startswith("error: --beside: expected a network in a file, found the built-in mlp")
    assert refused("tune", "net.pt", "--out", out, "--beside", "caffe").endswith('found "caffe"')
    assert not out.exists()


def test_another_targets_network_is_refused_after_the_tuning(command: list[str], tmp_path: Path) -> None:
    changed = [*command[:4], "--trials", "0", "--target", "cuda -arch=sm_70", "--out", str(tmp_path / "run")]
    sentence = refused(*changed, "--beside", "torch")
    assert "error: --beside: expected a network tuned for this machine's CPU, found one for cuda" in sentence


def test_the_page_shows_the_peers(command: list[str]) -> None:
    out = Path(command[-1])
    succeed(*command)
    unlike = Timed("openvino", "<3>", (0.001,), 0.5, "openvino: <differs>")
    peers = (Timed("torch", "2", (0.0031,), 1e-6), unlike, Timed("onnxruntime", "1", problem="no file"))
    result = BesideResult("net", "a <CPU>", 2, 2, Timed("tlp-tvm", "0.1", (0.00155,)), peers)

    write_beside(out, result)
    page = report_page(out)

    for text in (
        "Beside other runtimes",
        "a &lt;CPU&gt;",
        "&lt;3&gt;",
        "openvino: &lt;differs&gt;",
        "2.00x",
        "no file",
    ):
        assert text in page
    assert "fastest peer, torch" in page
    assert "the log holds" not in page
    write_beside(out, replace(result, programs=8))
    assert "The peers were timed after 8 programs; the log holds 2 now." in report_page(out)
    (out / "beside.json").unlink()
    assert "Beside other runtimes" not in report_page(out)
