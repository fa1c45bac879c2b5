"""Distillation: the loss beside its definition, and a student that ends near its teacher."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from commands import refused, succeed
from programs import write_dataset
from tlp_tvm.dataset.reading.measured import load_measured
from tlp_tvm.model.checkpoint import load_model
from tlp_tvm.model.losses import imitation
from tlp_tvm.model.scoring import ScoringModel


def test_imitation_is_its_definition() -> None:
    generator = torch.Generator().manual_seed(0)
    groups = torch.tensor([2, 0, 1, 0, 2, 2, 0])
    scores, wanted = (torch.randn(7, 3, generator=generator) for _ in range(2))
    parts = []
    for group in range(3):
        for head in range(3):
            apart = (scores - wanted)[groups == group, head].numpy()
            parts.append(np.mean((apart - apart.mean()) ** 2))
    assert imitation(scores, wanted, groups).item() == pytest.approx(np.mean(parts) * 3 / 3, rel=1e-5)


def test_a_number_that_a_list_has_in_common_does_not_matter() -> None:
    groups = torch.tensor([0, 0, 1, 1])
    wanted = torch.randn(4, 2)
    assert imitation(wanted + 5.0 * groups[:, None], wanted, groups).item() == pytest.approx(0, abs=1e-9)
    assert imitation(wanted + torch.randn(4, 2), wanted, groups).item() > 0.01


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("dataset"), ("train",) * 5 + ("test",) * 2)


@pytest.fixture(scope="module")
def teacher(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("models") / "teacher"
    succeed("train", dataset, "--out", out, "--epochs", 24, "--hidden", 32, "--batch", 12)
    return out


def test_a_student_scores_more_as_its_teacher_does(dataset: Path, teacher: Path, tmp_path: Path) -> None:
    small = ["--epochs", 24, "--hidden", 16, "--members", 1, "--batch", 12]
    succeed("train", dataset, "--out", tmp_path / "alone", *small)
    succeed("train", dataset, "--out", tmp_path / "student", *small, "--teacher", teacher)

    judged = load_measured(dataset, load_model(teacher).layout).of_split("test")

    def apart(model: ScoringModel) -> float:
        x = torch.from_numpy(judged.features(slice(0, len(judged))))
        with torch.no_grad():
            theirs, own = load_model(teacher).network(x), model.network(x)
        return imitation(own, theirs, torch.from_numpy(judged.task_index)).item()

    student = load_model(tmp_path / "student")
    assert apart(student) < 0.7 * apart(load_model(tmp_path / "alone"))
    assert len(student.card["training"]["teacher"]) == 64


def test_a_teacher_of_other_platforms_is_refused(dataset: Path, teacher: Path, tmp_path: Path) -> None:
    command = ["train", dataset, "--out", tmp_path / "student", "--teacher", teacher, "--platform", "beta"]

    sentence = refused(*command)

    assert 'expected a teacher of the layout "ansor" and of beta, found "ansor" and alpha, beta' in sentence
    assert not (tmp_path / "student" / "config.json").exists()
