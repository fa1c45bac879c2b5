"""Which tasks a run learns from, holds out and judges."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from programs import LAYOUT, write_dataset
from tlp_tvm.errors import DatasetError, TrainingError
from tlp_tvm.folder_lock import held
from tlp_tvm.training.runs.train_run import Recipe, TrainCallbacks, train_model
from trainings import SHORT


def test_the_validation_split_chooses_the_epoch(built: Path, tmp_path: Path) -> None:
    held_out: list[Any] = []
    for name, hold_out in (("split", None), ("cut", 4), ("none", 0)):
        recipe = Recipe(LAYOUT, {"hidden": 8}, replace(SHORT, epochs=1), hold_out=hold_out)
        config = train_model(
            built,
            tmp_path / name,
            recipe,
            device="cpu",
            tell=TrainCallbacks(
                lambda data, validation: held_out.append(
                    (len(data.tasks), validation and [task.split for task in validation.tasks])
                )
            ),
        )
        held_out[-1] += (config.card["training"]["hold_out"], config.card["data"]["validation_tasks"])
    assert held_out == [
        (8, ["validation"] * 2, "split validation", 2),
        (6, ["train"] * 2, 4, 2),
        (8, None, 0, 0),
    ]


def test_two_trainings_into_one_folder_are_refused(built: Path, tmp_path: Path) -> None:
    recipe = Recipe(LAYOUT, {"hidden": 8}, replace(SHORT, epochs=1))
    with (
        held(tmp_path / "run", TrainingError, ""),
        pytest.raises(TrainingError, match="expected nobody else to write there, found process"),
    ):
        train_model(built, tmp_path / "run", recipe, device="cpu")


def test_tasks_held_out_at_random_may_lack_a_platform(tmp_path: Path) -> None:
    records = write_dataset(tmp_path / "records", ("train",) * 8 + ("test",))
    for task in (1, 3, 5, 7):
        (records / "alpha" / "train" / f"task{task}.json.gz").unlink()
    recipe = Recipe(LAYOUT, {"hidden": 8}, replace(SHORT, epochs=1), hold_out=2)
    card = train_model(records, tmp_path / "run", recipe, device="cpu").card
    tasks = {row["platform"]: row["tasks"] for row in card["metrics"]["validation"]}
    held_out = card["data"]["validation_tasks"]
    assert tasks["beta"] == held_out > tasks["alpha"]


def test_a_test_task_that_lacks_a_platform_is_told_before_training(tmp_path: Path) -> None:
    records = write_dataset(tmp_path / "records", ("train",) * 4 + ("test",) * 2)
    (records / "alpha" / "test" / "task5.json.gz").unlink()
    with pytest.raises(DatasetError, match=r"^platform alpha: expected measured programs of .* found none"):
        train_model(records, tmp_path / "run", Recipe(LAYOUT, {"hidden": 8}, SHORT, hold_out=2), device="cpu")
    assert not (tmp_path / "run").exists()
