"""Training: a tiny model learns, a killed run goes on to the same numbers, seeds decide everything."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from logs import DATASETS
from programs import LAYOUT, tiny_settings, write_dataset
from tlp_tvm.dataset.reading.measured import MeasuredDataset, load_measured
from tlp_tvm.errors import ModelFileError, TrainingError
from tlp_tvm.evaluation.few_shot.labels import of_programs
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.losses import Loss
from tlp_tvm.training.batches import PART_PROGRAMS, Lists, batch_of, epoch_of
from tlp_tvm.training.learner import Learner
from tlp_tvm.training.loop import Trained, train
from tlp_tvm.training.peers import ALONE
from tlp_tvm.training.state import STATE
from tlp_tvm.training.train_settings import TrainSettings
from tlp_tvm.training.validation import validate

SETTINGS = TrainSettings(epochs=6, learning_rate=3e-3, batch_programs=36, average=0.5)
CPU = torch.device("cpu")


@pytest.fixture
def data(tmp_path: Path) -> MeasuredDataset:
    return load_measured(write_dataset(tmp_path / "data"), LAYOUT)


def same(a: dict[str, torch.Tensor], b: dict[str, torch.Tensor]) -> bool:
    return a.keys() == b.keys() and all(torch.equal(a[name], b[name]) for name in a)


class Killed(Exception):
    """Stands for the end of the process."""


def run(data: MeasuredDataset, folder: Path, settings: TrainSettings = SETTINGS, **options: Any) -> Trained:
    folder.mkdir(exist_ok=True)
    train_data, validation = data.of_split("train"), data.of_split("test")
    return train(
        train_data, validation, tiny_settings(dropout=0.1), settings, folder, device="cpu", **options
    )


def test_a_tiny_model_learns_what_is_fast_on_each_platform(data: MeasuredDataset, tmp_path: Path) -> None:
    model_settings = tiny_settings(hidden=32)
    settings = TrainSettings(epochs=30, learning_rate=1e-2, batch_programs=1, average=0.5)
    held_out = data.of_split("test")
    trained = train(data.of_split("train"), held_out, model_settings, settings, tmp_path, device="cpu")
    assert trained.history[-1]["loss"] < 0.2 * trained.history[0]["loss"]
    best = trained.history[trained.best_epoch - 1]["validation"]
    assert best["top1"] > 0.9
    assert best["spearman"] > 0.7
    assert validate(trained.weights, model_settings, held_out, CPU) == best


@pytest.mark.parametrize("loss", list(Loss))
def test_every_loss_ranks_programs_of_a_real_task(loss: Loss, tmp_path: Path) -> None:
    layout = FeatureLayout.preset("ansor")
    file = DATASETS / "epyc" / "epyc-avx2-1c" / "train" / "mobilenet-224__60fbb51376ce.json.gz"
    data = load_measured(file, layout)
    model_settings = tiny_settings(layout, heads=1, hidden=32)
    settings = TrainSettings(loss=loss, epochs=60, learning_rate=5e-3, average=0.5)
    trained = train(data, None, model_settings, settings, tmp_path, device="cpu")
    fitted = validate(trained.weights, model_settings, data, CPU)
    assert fitted["spearman"] > 0.4
    assert fitted["top5"] > 0.8
    assert trained.best_epoch == 60


def test_best_is_the_best_epoch(data: MeasuredDataset, tmp_path: Path) -> None:
    trained = run(data, tmp_path)
    scores = [entry["validation"]["score"] for entry in trained.history]
    assert trained.best_epoch == int(np.argmax(scores)) + 1


def test_the_seed_decides_everything(data: MeasuredDataset, tmp_path: Path) -> None:
    first, second = run(data, tmp_path / "a"), run(data, tmp_path / "b")
    assert first.history == second.history
    assert same(first.weights, second.weights)
    assert run(data, tmp_path / "c", replace(SETTINGS, seed=1)).history != first.history


def test_training_leaves_the_random_state_alone(data: MeasuredDataset, tmp_path: Path) -> None:
    before = torch.get_rng_state()
    run(data, tmp_path, replace(SETTINGS, epochs=1))
    assert torch.equal(torch.get_rng_state(), before)


@pytest.mark.parametrize("epochs_before", [1, 4, 6])
def test_a_killed_run_goes_on_to_the_same_numbers(
    data: MeasuredDataset, tmp_path: Path, epochs_before: int
) -> None:
    whole = run(data, tmp_path / "whole")

    def kill(entry: dict[str, Any]) -> None:
        if entry["epoch"] == epochs_before:
            raise Killed

    with pytest.raises(Killed):
        run(data, tmp_path / "cut", on_epoch=kill)
    (tmp_path / "cut" / "metrics.csv").unlink()  # as if the kill had come before it was written
    seen: list[int] = []
    again = run(data, tmp_path / "cut", on_epoch=lambda entry: seen.append(entry["epoch"]))
    assert seen == list(range(1, 7))
    assert again.history == whole.history
    assert same(again.weights, whole.weights)
    lines = (tmp_path / "cut" / "metrics.jsonl").read_text()
    assert lines == (tmp_path / "whole" / "metrics.jsonl").read_text()
    assert [json.loads(line)["epoch"] for line in lines.splitlines()] == seen
    assert sorted(p.name for p in (tmp_path / "cut").iterdir()) == ["metrics.csv", "metrics.jsonl", STATE]


def test_patience_ends_a_run(data: MeasuredDataset, tmp_path: Path) -> None:
    trained = run(data, tmp_path, replace(SETTINGS, epochs=40, learning_rate=0.0, patience=3))
    assert (trained.best_epoch, len(trained.history)) == (1, 4)


def test_the_state_of_another_run_is_refused(data: MeasuredDataset, tmp_path: Path) -> None:
    run(data, tmp_path)
    with pytest.raises(ModelFileError) as error:
        run(data, tmp_path, replace(SETTINGS, learning_rate=1e-3))
    assert str(error.value) == (
        f"{tmp_path / STATE}: expected the state of a run with the same settings and data, found another's: "
        "learning_rate 0.003, not 0.001; repeat that run's settings, choose another folder, or delete "
        "the file"
    )
    (tmp_path / STATE).write_bytes((tmp_path / STATE).read_bytes()[:500])
    with pytest.raises(ModelFileError) as error:
        run(data, tmp_path)
    assert str(error.value).startswith(f"{tmp_path / STATE}: expected the state of a training run, found ")
    assert str(error.value).endswith("; delete it to start anew")


def test_batches_are_whole_lists_and_an_epoch_is_every_program(data: MeasuredDataset) -> None:
    batches = list(epoch_of(data, 36, 256, (0, 0)))
    assert [[len(each) for each in lists] for lists in batches] == [[18, 18]] * 3
    for lists in batches:
        assert all((data.task_index == task).sum() == 18 for each in lists for task in data.task_index[each])
    order = flat(batches)
    assert sorted(order) == list(range(len(data)))
    assert not np.array_equal(order, flat(list(epoch_of(data, 36, 256, (0, 1)))))


def test_large_tasks_are_cut_into_lists_of_bounded_size(data: MeasuredDataset) -> None:
    batches = list(epoch_of(data, 12, 7, (0, 0)))
    assert [[len(each) for each in lists] for lists in batches] == [[6, 6]] * 9
    assert all(len(set(data.task_index[each])) == 1 for lists in batches for each in lists)
    assert sorted(flat(batches)) == list(range(len(data)))


def test_programs_without_a_label_cost_nothing(data: MeasuredDataset, tmp_path: Path) -> None:
    known = np.arange(len(data)) % 3 > 0
    some = replace(data, latencies=np.where(known[:, None], data.latencies, np.nan))
    told: list[tuple[int, int]] = []
    trained = run(some, tmp_path / "some", on_batch=lambda done, total: told.append((done, total)))
    labelled = of_programs(data, np.flatnonzero(known))
    alone = run(labelled, tmp_path / "alone")
    assert same(trained.weights, alone.weights)
    total = len(trained.history) * len(labelled.of_split("train"))
    assert told[-1] == (total, total)


def test_parts_of_a_task_stay_lists_of_their_own(data: MeasuredDataset) -> None:
    programs = data.programs_of(2)
    lists = [programs[:4], programs[4:9]]
    batch = batch_of(data, lists, CPU, cut=True)
    assert sorted(batch.groups.tolist()) == [0] * 4 + [1] * 5
    assert batch.labels.shape == (9, 2)


@pytest.mark.parametrize("cut", [False, True])
def test_parts_are_programs_of_like_length(
    data: MeasuredDataset, monkeypatch: pytest.MonkeyPatch, cut: bool
) -> None:
    monkeypatch.setitem(PART_PROGRAMS, "cpu", 10)
    programs = np.random.default_rng(0).permutation(len(data))[:33]
    lists = [programs[:20], programs[20:]]
    batch = batch_of(data, lists, CPU, cut=cut)
    lengths = np.sort(data.counts[programs])
    assert [len(part) for part in batch.parts] == [9, 8, 8, 8]
    longest = [each.max() if cut else LAYOUT.length for each in np.array_split(lengths, 4)]
    assert [part.shape[1] for part in batch.parts] == longest
    order = np.argsort(data.counts[programs], kind="stable")
    rows = [row for part in batch.parts for row in np.asarray(part)]
    for x, program, label, group in zip(rows, programs[order], batch.labels, batch.groups, strict=True):
        np.testing.assert_array_equal(x, data.features(np.array([program]))[0, : len(x)])
        np.testing.assert_array_equal(label, data.labels[program])
        assert program in lists[int(group)]
    empty = batch_of(data, [], CPU, cut=cut)
    assert (len(empty), empty.parts, empty.labels.shape) == (0, [], (0, 2))


@pytest.mark.parametrize("faithful", [False, True])
def test_parts_do_not_change_the_scores(
    data: MeasuredDataset, monkeypatch: pytest.MonkeyPatch, faithful: bool
) -> None:
    monkeypatch.setitem(PART_PROGRAMS, "cpu", 10)
    model = tiny_settings(faithful=faithful)
    learner = Learner(model, SETTINGS, CPU, ALONE)
    programs = data.programs_of(1)
    batch = batch_of(data, [programs], CPU, cut=learner.cuts_padding)
    assert len({part.shape for part in batch.parts}) == (1 if faithful else 2)
    order = np.argsort(data.counts[programs], kind="stable")
    expected = learner.network.of_members(torch.from_numpy(data.features(programs[order])))
    torch.testing.assert_close(learner._scores(batch), expected)
    metrics = validate(learner.average, model, data, CPU)
    monkeypatch.setitem(PART_PROGRAMS, "cpu", len(data))
    assert validate(learner.average, model, data, CPU) == pytest.approx(metrics, abs=1e-3)


def flat(batches: list[Lists]) -> Any:
    return np.concatenate([each for lists in batches for each in lists])


def test_a_loss_that_is_no_number_ends_the_training_with_a_sentence(
    data: MeasuredDataset, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Learner, "step", lambda *_: torch.tensor(float("nan")))
    with pytest.raises(TrainingError) as error:
        run(data, tmp_path / "run")
    assert str(error.value) == (
        f"{tmp_path / 'run'}: epoch 1: expected a finite loss, found nan: the programs' numbers are too "
        "large for the network; delete the folder and train in float32, or without --faithful, which "
        "scales them"
    )
