"""Training at scale: streamed, cut short anywhere, by several processes, in less precision."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from programs import LAYOUT, tiny_settings, write_dataset
from tlp_tvm.dataset.building.build import build_dataset
from tlp_tvm.dataset.reading import shards, streaming
from tlp_tvm.dataset.reading.measured import MeasuredDataset, load_measured
from tlp_tvm.errors import DatasetError, TrainingError
from tlp_tvm.model.checkpoint import load_model
from tlp_tvm.model.tlp import Backbone, TLPSettings
from tlp_tvm.training import loop
from tlp_tvm.training.batches import AHEAD, made_ahead
from tlp_tvm.training.epoch_log import TABLE, board_of, need_tensorboard
from tlp_tvm.training.loop import Trained, train
from tlp_tvm.training.peers import Peers
from tlp_tvm.training.runs.train_run import Recipe, train_model
from tlp_tvm.training.train_settings import Precision, TrainSettings

SETTINGS = TrainSettings(epochs=3, learning_rate=3e-3, batch_programs=36, list_programs=10, average=0.5)
SPLITS = ("train",) * 8 + ("validation",) * 2 + ("test",)


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """198 programs in blocks of 10."""
    monkeypatch.setattr(shards, "ROWS_A_BATCH", 10)
    build_dataset([write_dataset(tmp_path / "records", SPLITS)], tmp_path / "built")
    return tmp_path / "built"


def run(
    data: MeasuredDataset,
    folder: Path,
    settings: TrainSettings = SETTINGS,
    model: TLPSettings | None = None,
    **options: Any,
) -> Trained:
    folder.mkdir(exist_ok=True)
    parts = data.of_split("train"), data.of_split("validation")
    return train(*parts, model or tiny_settings(dropout=0.1), settings, folder, device="cpu", **options)


def assert_same(a: Trained, b: Trained) -> None:
    assert a.history == b.history
    assert a.weights.keys() == b.weights.keys()
    assert all(torch.equal(a.weights[name], b.weights[name]) for name in a.weights)


def test_a_streamed_run_has_the_numbers_of_one_in_memory(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "NEIGHBOURHOOD_BLOCKS", 20)
    memory = run(load_measured(built, LAYOUT), tmp_path / "memory")
    assert_same(run(load_measured(built, LAYOUT, stream=True), tmp_path / "streamed"), memory)


class Killed(Exception):
    """Stands for the end of the process."""


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("cut_at", [36, 180, 300])
def test_a_run_cut_short_within_an_epoch_goes_on_to_the_same_numbers(
    built: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, stream: bool, cut_at: int
) -> None:
    monkeypatch.setattr(streaming, "NEIGHBOURHOOD_BLOCKS", 2)
    monkeypatch.setattr(loop, "SAVE_SECONDS", 0.0)
    data = load_measured(built, LAYOUT, stream=stream)
    whole = run(data, tmp_path / "whole")

    def kill(done: int, total: int) -> None:
        assert total == 3 * 144
        if done >= cut_at:
            raise Killed

    with pytest.raises(Killed):
        run(data, tmp_path / "cut", on_batch=kill)
    assert threading.active_count() == 1  # the thread that makes batches is gone
    seen: list[int] = []
    again = run(data, tmp_path / "cut", on_batch=lambda done, total: seen.append(done))
    assert cut_at <= seen[0] < cut_at + 72  # it did not begin anew
    assert seen[-1] == 3 * 144
    assert_same(again, whole)
    lines = [(tmp_path / name / "metrics.jsonl").read_text() for name in ("whole", "cut")]
    assert lines[0] == lines[1]


def test_batches_are_made_a_few_ahead_and_in_order() -> None:
    made: list[int] = []

    def make(i: int) -> int:
        if i == 20:
            raise ValueError("the twentieth")
        made.append(i)
        return i

    found = made_ahead(make, range(30))
    for i in range(20):
        assert next(found) == i
        assert len(made) <= i + AHEAD + 1
    with pytest.raises(ValueError, match="the twentieth"):
        next(found)


def test_every_list_goes_to_one_process_and_programs_are_balanced() -> None:
    rng = np.random.default_rng(0)
    lists = [rng.integers(1000, size=size) for size in rng.integers(1, 257, size=40)]
    shares = [Peers(rank, 3).share(lists) for rank in range(3)]
    assert sorted(id(each) for share in shares for each in share) == sorted(map(id, lists))
    sizes = [sum(map(len, share)) for share in shares]
    assert max(sizes) - min(sizes) <= 32
    assert [Peers(rank, 3).share(lists[:1]) for rank in range(3)] == [[lists[0]], [], []]


def command(*arguments: object, processes: int = 1) -> str:
    """Run `tlp-tvm train` as a user does."""
    script = [str(Path(sys.executable).with_name("tlp-tvm")), "train", *map(str, arguments)]
    several = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python"]
    launcher = [*several, "--nproc-per-node", str(processes)] if processes > 1 else []
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*launcher, *script], env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_processes_train_the_model_of_one(built: Path, tmp_path: Path) -> None:
    # 7 tasks and 1 a batch: the second process gets 3, and then none.
    options = ("--epochs", 8, "--hidden", 16, "--dropout", 0, "--batch", 120, "--stream", "--json")
    alone = command(built, "--out", tmp_path / "alone", *options)
    together = command(built, "--out", tmp_path / "together", *options, processes=2)
    assert len(together.splitlines()) == len(alone.splitlines()) == 1  # one of them talks
    names = sorted(path.name for path in (tmp_path / "alone").iterdir())
    assert sorted(path.name for path in (tmp_path / "together").iterdir()) == names
    losses = [
        [json.loads(line)["loss"] for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("alone", "together")
    ]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    assert losses[0][-1] < losses[0][0]
    models = [load_model(tmp_path / name) for name in ("alone", "together")]
    x = load_measured(built, LAYOUT.with_shape(length=models[0].layout.length)).features()
    scores = [model.score_all(x) for model in models]
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-3 * np.ptp(scores[0]))


@pytest.mark.parametrize("backbone", list(Backbone))
@pytest.mark.parametrize("positions", [False, True])
def test_bfloat16_comes_close_on_a_cpu_too(
    built: Path, tmp_path: Path, backbone: Backbone, positions: bool
) -> None:
    data = load_measured(built, LAYOUT)
    model = tiny_settings(backbone=backbone, positions=positions)
    settings = replace(SETTINGS, epochs=2)
    full = run(data, tmp_path / "full", settings, model)
    less = run(data, tmp_path / "less", replace(settings, precision=Precision.BFLOAT16), model)
    assert all(tensor.dtype == torch.float32 for tensor in less.weights.values())
    losses = [[entry["loss"] for entry in trained.history] for trained in (full, less)]
    assert losses[0] != losses[1]
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.02)


def test_precision_is_chosen_by_the_device() -> None:
    cpu = torch.device("cpu")
    found = [precision.on(cpu) for precision in Precision]
    assert found == [torch.float32, torch.float32, torch.bfloat16]


def test_the_table_has_the_lines_and_the_times(built: Path, tmp_path: Path) -> None:
    run(load_measured(built, LAYOUT), tmp_path / "run")
    lines = [json.loads(line) for line in (tmp_path / "run/metrics.jsonl").read_text().splitlines()]
    with (tmp_path / "run" / TABLE).open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [int(row["epoch"]) for row in rows] == [1, 2, 3]
    for row, entry in zip(rows, lines, strict=True):
        assert float(row["loss"]) == entry["loss"]
        assert float(row["validation_top1"]) == entry["validation"]["top1"]
        assert float(row["programs_per_second"]) == pytest.approx(144 / float(row["seconds"]))


def test_the_validation_split_chooses_the_epoch(built: Path, tmp_path: Path) -> None:
    held_out: list[Any] = []
    for name, hold_out in (("split", None), ("cut", 4), ("none", 0)):
        recipe = Recipe(LAYOUT, {"hidden": 8}, replace(SETTINGS, epochs=1), hold_out=hold_out)
        config = train_model(
            built,
            tmp_path / name,
            recipe,
            device="cpu",
            on_data=lambda data, validation: held_out.append(
                (len(data.tasks), validation and [task.split for task in validation.tasks])
            ),
        )
        held_out[-1] += (config.card["training"]["hold_out"], config.card["data"]["validation_tasks"])
    assert held_out == [
        (8, ["validation"] * 2, "split validation", 2),
        (6, ["train"] * 2, 4, 2),
        (8, None, 0, 0),
    ]


def test_tasks_held_out_at_random_may_lack_a_platform(tmp_path: Path) -> None:
    records = write_dataset(tmp_path / "records", ("train",) * 8 + ("test",))
    for task in (1, 3, 5, 7):
        (records / "alpha" / "train" / f"task{task}.json.gz").unlink()
    recipe = Recipe(LAYOUT, {"hidden": 8}, replace(SETTINGS, epochs=1), hold_out=2)
    card = train_model(records, tmp_path / "run", recipe, device="cpu").card
    tasks = {row["platform"]: row["tasks"] for row in card["metrics"]["validation"]}
    held_out = card["data"]["validation_tasks"]
    assert tasks["beta"] == held_out > tasks["alpha"]


def test_a_test_task_that_lacks_a_platform_is_told_before_training(tmp_path: Path) -> None:
    records = write_dataset(tmp_path / "records", ("train",) * 4 + ("test",) * 2)
    (records / "alpha" / "test" / "task5.json.gz").unlink()
    with pytest.raises(DatasetError, match=r"^platform alpha: expected measured programs of .* found none"):
        train_model(
            records, tmp_path / "run", Recipe(LAYOUT, {"hidden": 8}, SETTINGS, hold_out=2), device="cpu"
        )
    assert not (tmp_path / "run").exists()


def test_tensorboard_reads_the_numbers(tmp_path: Path) -> None:
    pytest.importorskip("tensorboard", reason="the optional package tensorboard is not installed")
    from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

    for _ in range(2):  # a run that goes on tells its epochs again
        tell = board_of(tmp_path)
        for epoch in (1, 2):
            tell({"epoch": epoch, "loss": 0.5 / epoch, "validation": {"top1": 0.75}})
    board = EventAccumulator(str(tmp_path / "tensorboard"))
    board.Reload()
    assert [(event.step, event.value) for event in board.Scalars("loss")] == [(1, 0.5), (2, 0.25)]
    assert [event.value for event in board.Scalars("validation_top1")] == [0.75, 0.75]


def test_no_tensorboard_is_said_before_anything_is_done(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    with pytest.raises(TrainingError) as error:
        need_tensorboard()
    assert str(error.value) == (
        "--tensorboard: expected the package tensorboard, found none; install it (pip install tensorboard) "
        "or leave the option out: metrics.csv has the same numbers"
    )
    with pytest.raises(TrainingError):
        train_model(tmp_path / "none", tmp_path / "out", Recipe(LAYOUT), tensorboard=True)
    assert not (tmp_path / "out").exists()
