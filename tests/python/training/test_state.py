"""An interrupted run resumes to the numbers of an uninterrupted one, wherever it was cut."""

from __future__ import annotations

import json
import shutil
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from logs import DATASETS
from places import DATA
from programs import LAYOUT
from tlp_tvm.dataset.reading import streaming
from tlp_tvm.dataset.reading.holding_out import fold_of
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import ModelFileError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.tlp import TLPSettings
from tlp_tvm.training import loop
from tlp_tvm.training.loop import train
from tlp_tvm.training.state import STATE
from tlp_tvm.training.train_settings import TrainSettings
from trainings import SETTINGS, SHORT, Killed, assert_same, run


@pytest.mark.parametrize("epochs_before", [1, 4, 6])
def test_a_run_interrupted_after_an_epoch_resumes_to_the_same_numbers(
    data: MeasuredDataset, tmp_path: Path, epochs_before: int
) -> None:
    whole = run(data, tmp_path / "whole")

    def kill(entry: dict[str, Any]) -> None:
        if entry["epoch"] == epochs_before:
            raise Killed

    with pytest.raises(Killed):
        run(data, tmp_path / "cut", on_epoch=kill)
    (tmp_path / "cut" / "metrics.csv").unlink()  # as if the end had come before it was written
    seen: list[int] = []
    again = run(data, tmp_path / "cut", on_epoch=lambda entry: seen.append(entry["epoch"]))
    assert seen == list(range(1, 7))
    assert_same(again, whole)
    lines = (tmp_path / "cut" / "metrics.jsonl").read_text()
    assert lines == (tmp_path / "whole" / "metrics.jsonl").read_text()
    assert [json.loads(line)["epoch"] for line in lines.splitlines()] == seen
    assert sorted(p.name for p in (tmp_path / "cut").iterdir()) == ["metrics.csv", "metrics.jsonl", STATE]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("cut_at", [36, 180, 300])
def test_a_run_interrupted_within_an_epoch_resumes_to_the_same_numbers(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool, cut_at: int
) -> None:
    monkeypatch.setattr(streaming, "NEIGHBOURHOOD_BLOCKS", 2)
    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    data = load_measured(built, LAYOUT, stream=stream)
    whole = run(data, tmp_path / "whole", SHORT)

    def kill(done: int, total: int) -> None:
        assert total == 3 * 144
        if done >= cut_at:
            raise Killed

    before = set(threading.enumerate())
    with pytest.raises(Killed):
        run(data, tmp_path / "cut", SHORT, on_batch=kill)
    assert set(threading.enumerate()) <= before  # the thread that makes batches is gone
    seen: list[int] = []
    again = run(data, tmp_path / "cut", SHORT, on_batch=lambda done, total: seen.append(done))
    assert cut_at <= seen[0] < cut_at + 72  # it did not begin anew
    assert seen[-1] == 3 * 144
    assert_same(again, whole)
    lines = [(tmp_path / name / "metrics.jsonl").read_text() for name in ("whole", "cut")]
    assert lines[0] == lines[1]


FROZEN = DATA / "interrupted-run"
"""A run that version 0.1.0 began and nobody finished, killed in epoch 3 of 4; and what that version would
have made of it: finished.safetensors and finished.jsonl. Never written again."""


def test_a_run_of_the_first_version_resumes_to_its_weights(tmp_path: Path) -> None:
    files = sorted((DATASETS / "epyc" / "epyc-avx2-1c" / "train").glob("*.json.gz"))[:8]
    of_then = json.loads((DATA / "model-v1" / "tiny" / "config.json").read_text())["layout"]
    data = load_measured(files, FeatureLayout.from_dict(of_then | {"length": 56}))
    model = TLPSettings.of_layout(data.layout, 1, hidden=8, dropout=0.1)
    settings = TrainSettings(epochs=4, learning_rate=5e-3, batch_programs=64, list_programs=16, average=0.5)
    shutil.copy(FROZEN / STATE, tmp_path)
    seen: list[int] = []
    trained = train(
        *fold_of(data, 2, 3, 0), model, settings, tmp_path, device="cpu",
        on_batch=lambda done, total: seen.append(done),
    )  # fmt: skip
    lines = [json.loads(line) for line in (FROZEN / "finished.jsonl").read_text().splitlines()]
    assert trained.best_epoch == 3
    assert seen[0] > 2 * seen[-1] / 4  # it did not begin anew
    # Other processors round otherwise: the weights were up to 4e-5 apart on those that were tried.
    losses = [[entry["loss"] for entry in entries] for entries in (trained.history, lines)]
    np.testing.assert_allclose(losses[0], losses[1], rtol=1e-5)
    expected = safetensors.torch.load_file(FROZEN / "finished.safetensors")
    assert trained.weights.keys() == expected.keys()
    for name, tensor in trained.weights.items():
        torch.testing.assert_close(tensor, expected[name], rtol=1e-3, atol=3e-4)


def test_the_state_of_another_run_is_refused(data: MeasuredDataset, tmp_path: Path) -> None:
    run(data, tmp_path)
    with pytest.raises(ModelFileError) as error:
        run(data, tmp_path, replace(SETTINGS, learning_rate=1e-3))
    assert str(error.value) == (
        f"{tmp_path / STATE}: expected the state of a run with the same settings and data, found another's: "
        "learning_rate 0.003, not 0.001; repeat that run's settings, choose another folder, or delete "
        "the file"
    )


def test_a_damaged_state_is_refused(data: MeasuredDataset, tmp_path: Path) -> None:
    run(data, tmp_path, replace(SETTINGS, epochs=1))
    whole = (tmp_path / STATE).read_bytes()
    for damaged in (whole[:500], b"", whole.replace(b'"best/', b'"rest/')):
        (tmp_path / STATE).write_bytes(damaged)
        with pytest.raises(ModelFileError) as error:
            run(data, tmp_path, replace(SETTINGS, epochs=1))
        sentence = str(error.value)
        assert sentence.startswith(f"{tmp_path / STATE}: expected the state of a training run, found ")
        assert sentence.endswith("; delete it to start again")
