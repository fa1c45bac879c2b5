"""The tuned network of a file as a library: a fresh process runs it, and it computes what torch does."""

from __future__ import annotations

import dataclasses
import json
import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from small_tunings import TASKS, settings

from exported import SHAPE, conv_net, export_onnx, image
from scorers import LinearScorer
from tlp_tvm.ansor import load_tuned
from tlp_tvm.ansor.compiling import newer_network
from tlp_tvm.ansor.compiling.kept_code import name_of
from tlp_tvm.ansor.compiling.linking import Linked
from tlp_tvm.ansor.compiling.newer_llvm import linked_with
from tlp_tvm.ansor.compiling.relinking import Relinker
from tlp_tvm.ansor.networks import inside
from tlp_tvm.errors import TuningError
from tlp_tvm.framework import framework_named
from tlp_tvm.machine.loop_threads import VARIABLE
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.network.tuned_library import line_that_runs
from tlp_tvm.tuning.tune_observer import TuneObserver
from tlp_tvm.tuning.tune_settings import TuneResult, TuneSettings

TARGET = "llvm -mcpu=core-avx2 -num-cores=2"


@pytest.fixture(scope="module")
def result(tmp_path_factory: pytest.TempPathFactory) -> TuneResult:
    folder = tmp_path_factory.mktemp("tuned")
    settings = TuneSettings(
        network=str(export_onnx(folder / "net.onnx", open_batch=True)),
        out=folder / "run",
        model=LinearScorer(),
        target=TARGET,
        trials=6,
        population=32,
        turns=1,
        measure=MeasureSettings(timing=Timing(repeat=1, min_repeat_ms=1), threads=0),
        shapes={"image": SHAPE},
    )
    return tune_network(settings)


def test_a_network_from_a_file_is_tuned(result: TuneResult) -> None:
    assert result.network == json.loads(result.report.read_text())["network"] == "net"
    assert result.trials == 6
    assert result.end_to_end is not None
    assert result.end_to_end.difference < 1e-4
    assert result.library == result.log.parent / "tuned.so"


def test_a_fresh_process_runs_the_printed_line(result: TuneResult, tmp_path: Path) -> None:
    np.save(tmp_path / "image.npy", image())
    line = line_that_runs(result.log.parent)
    assert line.endswith("(image=array)")
    program = (
        f"import numpy; array = numpy.load('{tmp_path}/image.npy'); {line}; "
        f"numpy.save('{tmp_path}/found.npy', outputs[0])"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    expected = conv_net()(torch.from_numpy(image())).detach()
    np.testing.assert_allclose(np.load(tmp_path / "found.npy"), expected, atol=1e-4)


def test_its_loops_are_shared_out(result: TuneResult) -> None:
    program = (
        "import numpy; from tlp_tvm import _core; from tlp_tvm.ansor import load_tuned\n"
        f"load_tuned('{result.log.parent}')(image=numpy.ones({SHAPE}))\n"
        "print(_core.shared_loops())"
    )
    done = subprocess.run(
        [sys.executable, "-c", program],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | {VARIABLE: "2"},
    )
    assert int(done.stdout.split()[-1]) > 0


def test_inputs_are_checked(result: TuneResult) -> None:
    network = load_tuned(result.log.parent)
    assert str(network.inputs["image"]) == "float32 (1, 3, 8, 8)"
    assert [output.shape for output in network.outputs] == [(1, 10)]
    np.testing.assert_array_equal(
        network({"image": image().astype(np.float64)})[0], network(image=image())[0]
    )
    for given, message in (
        ({}, "net: expected the inputs image: float32 (1, 3, 8, 8), found none; give each of them once"),
        (
            {"image": np.zeros((1, 3, 8, 9))},
            (
                "net: expected image to be float32 (1, 3, 8, 8), found float64 (1, 3, 8, 9); "
                "reshape or convert it"
            ),
        ),
    ):
        with pytest.raises(TuningError) as error:
            network(given)
        assert str(error.value) == message


def test_a_folder_without_a_tuned_network_is_refused(result: TuneResult, tmp_path: Path) -> None:
    with pytest.raises(TuningError) as error:
        load_tuned(tmp_path)
    assert str(error.value).startswith(
        f"{tmp_path}: expected tuned.json and the library that it names, found: "
    )
    text = (result.log.parent / "tuned.json").read_text()
    (tmp_path / "tuned.json").write_text(text)
    (tmp_path / "tuned.so").write_bytes(b"nothing")
    with pytest.raises(TuningError, match="expected a library for this machine, found: "):
        load_tuned(tmp_path)
    (tmp_path / "tuned.json").write_text(text.replace('"format_version": 1', '"format_version": 9'))
    with pytest.raises(TuningError, match="expected format_version 1, found 9; install a newer tlp-tvm"):
        load_tuned(tmp_path)


def test_a_tuning_links_what_it_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    functions: list[dict[str, Linked]] = []

    def spy(tvm: Any, compiled: bytes, found: dict[str, Linked]) -> Any:
        functions.append(found)
        return linked_with(tvm, compiled, found)

    relinked: list[bool] = []
    network = Relinker.network

    def noted(self: Relinker, lines: dict[str, str]) -> Any:
        found = network(self, lines)
        relinked.append(found is not None)
        return found

    monkeypatch.setattr(newer_network, "linked_with", spy)
    monkeypatch.setattr(Relinker, "network", noted)
    monkeypatch.setattr(inside, "SLOWEST", math.inf)
    result = tune_network(settings(tmp_path))

    assert result.end_to_end is not None
    assert result.end_to_end.difference < 1e-4
    assert len(functions[0]) == TASKS
    programs = {name_of(json.loads(line)["i"]) for line in (tmp_path / "log.json").read_text().splitlines()}
    assert {each.code.name for found in functions for each in found.values()} <= programs
    assert relinked[0], "TVM builds the network of the second programs again"


def test_time_is_kept_for_as_many_networks_as_are_tried(tmp_path: Path) -> None:
    framework, given = framework_named("ansor"), settings(tmp_path)
    newer = given.measure.at_best(framework.caches, framework.code())

    tuners = [
        framework.tuner(dataclasses.replace(given, measure=how), LinearScorer(), TuneObserver())
        for how in (given.measure, newer)
    ]

    assert [(each.relinks, each.builds_after) for each in tuners] == [
        (False, inside.BUILT + 2),
        (True, inside.CANDIDATES + 2),
    ]
