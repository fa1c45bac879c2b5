"""A tuned network beside peers that really run it."""

from __future__ import annotations

import math
import os
import signal
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import torch
from onnx import numpy_helper

from beside_tunings import tuned
from exported import conv_net, export_reader
from tlp_tvm.ansor.networks.library import load_tuned
from tlp_tvm.beside import counted_turns, timing_peers
from tlp_tvm.beside.beside_result import AGREEMENT, BesideResult, Timed, read_beside
from tlp_tvm.beside.counted_turns import Stretch
from tlp_tvm.beside.peer_child import _reason
from tlp_tvm.beside.peer_kinds import OURS
from tlp_tvm.beside.peer_processes import peer_process
from tlp_tvm.beside.runtimes import Job, inputs_of
from tlp_tvm.beside.timing_peers import time_beside
from tlp_tvm.errors import BesideError
from tlp_tvm.machine.core_distance import placements
from tlp_tvm.machine.cpu import this_cpu

NEAR, FAR = 1.2e-7, 5.2e-7
"""Seconds of a cache line's way between cores that share a cache, and between others."""


@pytest.fixture(autouse=True)
def every_turn_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    """However busy the machine is, and wherever its cores are."""
    monkeypatch.setattr(counted_turns, "SLOWED", math.inf)
    monkeypatch.setattr(counted_turns, "STEADY", math.inf)
    monkeypatch.setattr(counted_turns, "placements", lambda trips: [(0.0, math.inf)])


def timed(network: Path, folder: Path, *peers: str, tell: Callable[[str], None] = print) -> BesideResult:
    how = {"threads": 2, "programs": 3, "turns": 2}
    return time_beside(folder, str(network), peers, **how, tell=tell, seconds=0.001)


def test_an_onnx_file_is_timed_beside_onnxruntime(tuned_onnx: tuple[Path, Path]) -> None:
    network, folder = tuned_onnx
    told: list[str] = []

    result = timed(network, folder, "onnxruntime", "torch", tell=told.append)

    peer, refused = result.peers
    assert (result.network, result.threads, result.programs) == ("net", 2, 3)
    assert len(result.ours.turns) == len(peer.turns) == 2
    assert len(result.ours.round_trips) == len(peer.round_trips) == 2
    assert all((trip > 0) == (this_cpu().cores > 1) for trip in result.ours.round_trips)
    assert peer.problem == ""
    assert peer.difference is not None
    assert peer.difference < 1e-5
    assert result.fastest == peer
    assert refused.turns == ()
    assert refused.problem == (
        f"{network}: expected a file that torch wrote for torch, found .onnx; "
        "tune the TorchScript file of the same network"
    )
    assert read_beside(folder) == result
    assert told == [
        "loading the network with tlp-tvm",
        "loading the network with onnxruntime",
        "loading the network with torch",
        "timing the network in turns with onnxruntime, torch",
    ]
    assert list(folder.glob(".beside*")) == []


def test_torchscript_is_timed_beside_torch_and_as_onnx(tuned_torchscript: tuple[Path, Path]) -> None:
    result = timed(*tuned_torchscript, "onnxruntime", "torch")
    assert [peer.problem for peer in result.peers] == ["", ""]
    assert [len(peer.turns) for peer in result.peers] == [2, 2]
    assert all(peer.difference is not None and peer.difference < 1e-5 for peer in result.peers)


@pytest.mark.parametrize("name", ["reader.onnx", "reader.pt"])
def test_integer_inputs_and_several_outputs(tmp_path: Path, name: str) -> None:
    network, folder = tuned(export_reader(tmp_path / name))

    inputs = inputs_of(folder)
    peers = ["onnxruntime"] if name.endswith(".onnx") else ["onnxruntime", "torch"]
    result = timed(network, folder, *peers)

    assert 20 < inputs["ids"].max() < 50
    assert set(inputs["mask"].ravel()) == {0, 1}
    assert [output.shape for output in load_tuned(folder)(inputs)] == [(1, 40, 8), (1, 8)]
    assert [peer.problem for peer in result.peers] == [""] * len(peers)


def test_all_run_the_same_inputs(tuned_torchscript: tuple[Path, Path]) -> None:
    inputs = inputs_of(tuned_torchscript[1])
    [ours] = load_tuned(tuned_torchscript[1])(inputs)
    assert inputs["image"].std() > 0.5
    expected = conv_net()(torch.from_numpy(inputs["image"])).detach().numpy()
    np.testing.assert_allclose(ours, expected, atol=1e-4)


def test_outputs_that_differ_are_said(tuned_onnx: tuple[Path, Path], tmp_path: Path) -> None:
    model = onnx.load(tuned_onnx[0])
    bias = next(tensor for tensor in model.graph.initializer if tensor.name == "dense.bias")
    other = numpy_helper.to_array(bias) + np.arange(10, dtype=np.float32) / 100
    bias.CopyFrom(numpy_helper.from_array(other, bias.name))
    onnx.save(model, tmp_path / "other.onnx")

    result = timed(tmp_path / "other.onnx", tuned_onnx[1], "onnxruntime")

    [peer] = result.peers
    assert peer.difference is not None
    assert peer.difference > AGREEMENT
    assert peer.problem == (
        "onnxruntime: expected outputs within 0.001 of the largest value, found a difference of "
        f"{peer.difference:.2g}; do not compare"
    )
    assert (result.fastest, result.speedup) == (None, None)


def test_a_file_that_a_peer_cannot_load_is_said(tuned_onnx: tuple[Path, Path], tmp_path: Path) -> None:
    broken = tmp_path / "broken.onnx"
    broken.write_bytes(b"no model")
    [peer] = timed(broken, tuned_onnx[1], "onnxruntime").peers
    begin = f"{broken}: expected a network that onnxruntime can run, found: InvalidProtobuf: "
    assert peer.problem.startswith(begin)
    assert peer.problem.endswith("; leave it out")


def test_what_a_peer_says_comes_after_places_in_its_code() -> None:
    places = "Exception from src/core.cpp:84:\nException from src/plugin.cpp:9:\n"
    assert _reason(RuntimeError(f"{places}Axis 3 is too long.\n")) == "RuntimeError: Axis 3 is too long"
    assert _reason(RuntimeError("in core.cpp:\n")) == "RuntimeError: in core.cpp:"
    assert _reason(ValueError()) == "ValueError"


def test_other_inputs_are_said(tuned_onnx: tuple[Path, Path], tmp_path: Path) -> None:
    model = onnx.load(tuned_onnx[0])
    model.graph.node[0].input[0] = model.graph.input[0].name = "x"
    onnx.save(model, other := tmp_path / "other.onnx")
    [peer] = timed(other, tuned_onnx[1], "onnxruntime").peers
    assert "found: ValueError: inputs x instead of image; leave it out" in peer.problem


def test_a_library_that_does_not_run_ends_it(tuned_onnx: tuple[Path, Path], tmp_path: Path) -> None:
    (tmp_path / "tuned.json").write_bytes((tuned_onnx[1] / "tuned.json").read_bytes())
    (tmp_path / "tuned.so").write_bytes(b"no library")
    with pytest.raises(BesideError) as refused:
        timed(tuned_onnx[0], tmp_path, "onnxruntime")
    assert str(refused.value).startswith(
        f"{tmp_path}: expected a tuned network that runs, found: TuningError: "
    )


def test_a_process_that_ends_is_said(tuned_onnx: tuple[Path, Path], tmp_path: Path) -> None:
    job = Job("onnxruntime", *tuned_onnx, tmp_path, 2)
    with (tmp_path / "log").open("wb") as log, peer_process(job, log) as process:
        assert all(stretch.seconds > 0 for stretch in process.time(0.0))
        os.kill(process.number, signal.SIGKILL)
        with pytest.raises(BesideError, match="^its process ended with signal 9$"):
            process.time(0.0)


class Fake:
    """A process that notes when it is asked, and may end."""

    def __init__(
        self,
        name: str,
        asked: list[str],
        ends: bool = False,
        taken: Sequence[float] = (1.0,),
        turns: Sequence[Sequence[Stretch]] = (),
    ) -> None:
        self.name, self.asked, self.ends = name, asked, ends
        self.turns = turns or [[Stretch(each, NEAR, NEAR)] for each in taken]

    def time(self, seconds: float) -> Sequence[Stretch]:
        self.asked.append(self.name)
        if self.ends:
            raise BesideError("its process ended with signal 9")
        return self.turns[(self.asked.count(self.name) - 1) % len(self.turns)]


def turns_of(processes: Sequence[Fake], monkeypatch: pytest.MonkeyPatch) -> dict[str, Timed]:
    monkeypatch.setattr(timing_peers, "PAUSE", 0.0)
    monkeypatch.setattr(counted_turns, "SLOWED", 1.25)
    monkeypatch.setattr(counted_turns, "placements", placements)
    found = {process.name: Timed(process.name, "1") for process in processes}
    running: Any = {process.name: process for process in processes}
    timing_peers._take_turns(running, found, 3, 1.0)
    return found


def test_turns_are_taken_one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    a, b = (1.0, 1.1, 1.2), (2.4, 2.2, 2.0)
    found = turns_of([Fake("a", asked, taken=a), Fake("b", asked, taken=b)], monkeypatch)
    assert asked == ["a", "b"] * 3
    assert (found["a"].turns, found["b"].turns) == (a, b)


def test_turns_on_a_slowed_machine_are_taken_again(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    a, b = (9.0, 1.0, 1.2, 1.1), (40.0, 2.0, 2.4, 2.2)
    found = turns_of([Fake("a", asked, taken=a), Fake("b", asked, taken=b)], monkeypatch)
    assert asked == ["a", "b"] * 4
    assert (found["a"].turns, found["b"].turns) == (a[1:], b[1:])


def test_what_is_slow_alone_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    fakes = [Fake("a", []), Fake("b", []), Fake("c", [], taken=(1.0, 9.0, 9.0))]
    assert turns_of(fakes, monkeypatch)["c"].turns == (1.0, 9.0, 9.0)


def test_stretches_count_in_which_the_cores_are_where_they_mostly_are(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []
    near, far = Stretch(1.0, NEAR, 1.1 * NEAR), Stretch(1.2, FAR, FAR)
    moved, back = Stretch(1.3, NEAR, FAR), Stretch(1.4, FAR, NEAR)
    a = [[near, near, near], [moved, far, far, back], [near, moved, far], [moved, back, near]]
    fakes = [Fake("a", asked, turns=a), Fake("b", asked, turns=[[near], [far], [near, far]])]

    found = turns_of(fakes, monkeypatch)

    assert asked == ["a", "b"] * 4
    assert (found["a"].turns, found["b"].turns) == ((1.0, 1.0, 1.0), (1.0, 1.0, 1.0))
    assert found["a"].round_trips == (1.1 * NEAR,) * 3


def test_a_turn_with_few_stretches_in_place_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    near, far = Stretch(1.0, NEAR, NEAR), Stretch(1.2, FAR, FAR)
    few = Fake("a", [], turns=[[near, far, far, far], [near, near], [near, near], [near, near, far]])
    assert turns_of([few], monkeypatch)["a"].turns == (1.0, 1.0, 1.0)


def test_where_cores_never_stay_all_turns_count(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = [[Stretch(seconds, NEAR, FAR)] for seconds in (1.0, 1.1, 1.2)]
    found = turns_of([Fake("a", [], turns=turns)], monkeypatch)
    assert found["a"].turns == (1.0, 1.1, 1.2) * 3
    assert set(found["a"].round_trips) == {FAR}


def test_there_is_an_end_where_no_turn_is_like_another(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    found = turns_of([Fake("a", asked, taken=(1.0, *(2.0 + i for i in range(9))))], monkeypatch)
    assert len(asked) == 9
    assert found["a"].turns == (1.0,)


def test_turns_go_on_while_what_is_compared_differs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(counted_turns, "STEADY", 0.05)
    ours = (1.0, 1.5, 1.0, 1.0, 1.0, 1.5)
    fakes = [Fake(OURS, [], taken=ours), Fake("b", [], taken=(2.0,)), Fake("c", [], taken=(3.0, 3.5))]
    found = turns_of(fakes, monkeypatch)
    assert found[OURS].turns == ours[:5]  # the middle half of four ends at 1.125
    assert found["c"].turns == (3.0, 3.5, 3.0, 3.5, 3.0)


def test_where_all_end_nothing_is_timed(monkeypatch: pytest.MonkeyPatch) -> None:
    found = turns_of([Fake(OURS, [], ends=True)], monkeypatch)
    assert found[OURS].turns == ()
    assert found[OURS].problem == (
        f"{OURS}: expected a peer that runs to the end, found: its process ended with signal 9; leave it out"
    )


def test_a_peer_that_ends_leaves_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    found = turns_of([Fake("a", asked), Fake("b", asked, ends=True)], monkeypatch)
    assert asked == ["a", "b", "a", "a"]
    assert len(found["a"].turns) == 3
    assert (found["b"].turns, found["b"].problem) == (
        (),
        "b: expected a peer that runs to the end, found: its process ended with signal 9; leave it out",
    )
