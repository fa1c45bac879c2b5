"""Few labels of a platform: what recipes look at and make of them, and what an interruption costs."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from programs import LAYOUT, tiny_settings, write_dataset
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import ModelFileError
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.few_shot import imputing
from tlp_tvm.evaluation.few_shot import lab as lab_module
from tlp_tvm.evaluation.few_shot.few_shot_run import FewShot, few_shot
from tlp_tvm.evaluation.few_shot.few_shot_settings import FewShotSettings
from tlp_tvm.evaluation.few_shot.imputing import with_imputed
from tlp_tvm.evaluation.few_shot.labels import measured_on, with_labels
from tlp_tvm.evaluation.few_shot.recipes import RECIPES
from tlp_tvm.evaluation.labelling import Choose, label_counts, label_order
from tlp_tvm.metrics.ranked_groups import MEAN_OVER_TASKS
from tlp_tvm.training import start
from tlp_tvm.training.runs import new_head
from tlp_tvm.training.train_settings import TrainSettings

MODEL = {"hidden": 32, "members": 1}


TRAINING = TrainSettings(epochs=30, learning_rate=1e-2, batch_programs=1, average=0.5)


@pytest.fixture(autouse=True)
def short_trainings(monkeypatch: pytest.MonkeyPatch) -> None:
    """The made-up rule is learned in fewer steps than real labels."""
    monkeypatch.setattr(start, "FEW_STEPS", 60)
    monkeypatch.setattr(new_head, "STEPS", 100)


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("few"))


@pytest.fixture
def data(source: Path) -> MeasuredDataset:
    return load_measured(source, LAYOUT).of_split("train")


def settings(cache: Path, **changes: Any) -> FewShotSettings:
    base = FewShotSettings(
        "beta", cache, ["mtl"], label_counts("16"), model=MODEL, training=TRAINING, device="cpu"
    )
    return replace(base, **changes)


def means(found: FewShot) -> dict[tuple[str, int], float]:
    rows = [row for row in found.rows if row.network == MEAN_OVER_TASKS]
    return {(row.recipe, row.labels): row.spearman.mean for row in rows}


def test_labels_are_relative_to_what_is_known(data: MeasuredDataset) -> None:
    chosen = data.programs_of(1)[np.argsort(data.latencies[data.programs_of(1), 1])[5:9]]
    known = with_labels(data, 1, chosen)
    assert np.nanmax(known.labels[:, 1]) == 1.0  # the fastest of those chosen, not of the task
    assert list(measured_on(known, 1)) == sorted(chosen)
    np.testing.assert_array_equal(known.latencies[:, 0], data.latencies[:, 0])


def test_missing_labels_are_imputed_from_other_platforms(
    data: MeasuredDataset, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(imputing, "PRIOR", 1.0)  # there are 24 labels here, not hundreds
    latencies = np.repeat(data.latencies, [2, 1], axis=1)  # two platforms, of which the second is noise
    latencies[:, 1] = np.exp(np.random.default_rng(0).normal(size=len(data)))
    latencies[:, 2] = 3.0 * latencies[:, 0] ** 2  # steeper, and at another level
    platforms = (data.platforms[0], replace(data.platforms[0], name="noise"), data.platforms[1])
    three = replace(data, platforms=platforms, latencies=latencies)
    labelled = np.arange(0, len(data), 3)
    filled = with_imputed(with_labels(three, 2, labelled), 2, labelled)
    np.testing.assert_array_equal(filled.latencies[labelled], three.latencies[labelled])
    error = np.abs(np.log(filled.latencies[:, 2] / three.latencies[:, 2]))
    assert error.max() < 0.35  # of latencies that differ by a factor of thousands
    none = with_imputed(with_labels(three, 2, labelled[:0]), 2, labelled[:0])
    np.testing.assert_allclose(none.latencies[:, 2], np.sqrt(latencies[:, 0] * latencies[:, 1]))
    latencies[4, 0] = np.inf
    failed = with_imputed(with_labels(three, 2, labelled[:0]), 2, labelled[:0])
    assert list(np.flatnonzero(np.isnan(failed.latencies[:, 2]))) == [4]


def test_every_recipe_learns_from_labels(source: Path, tmp_path: Path) -> None:
    told: list[tuple[int, int]] = []
    found = few_shot(
        Corpus(source, LAYOUT),
        settings(tmp_path, recipes=list(RECIPES), counts=label_counts("0,all")),
        lambda done, total, words: told.append((done, total)),
    )
    by = means(found)
    unlabelled = ("mtl", "blend", "finetune", "impute")
    assert set(by) == {("random", 0), *((n, 72) for n in RECIPES), *((n, 0) for n in unlabelled)}
    assert by["mtl", 0] == by["finetune", 0]  # both are the mean of the other heads
    for name in RECIPES:
        assert by[name, 72] > 0.6, name
        assert by[name, 72] > by["mtl", 0], name  # the best tile of the other platform is another
    assert found.left_out == ("local needs labels: no row with 0",)
    assert told[0] == (0, 9)
    assert told[-1] == (9, 9)


def test_a_head_counts_as_far_as_it_has_labels(data: MeasuredDataset, tmp_path: Path) -> None:
    lab = lab_module.Lab(data, settings(tmp_path), lambda words: None)
    order = measured_on(data, lab.target)
    heads = torch.tensor([[1.0, 4.0], [0.5, -1.0]])
    few, whole = (RECIPES["blend"].fit(lab, labelled, 0) for labelled in (order[:18], order))
    assert len(measured_on(data, 0)) == 72
    assert few.own == 0.5  # the root of 18 / 72
    torch.testing.assert_close(few.score(heads), torch.tensor([3.25, -0.625]))
    assert torch.equal(whole.score(heads), heads[:, 1])
    assert torch.equal(replace(few, own=0.0).score(heads), heads.mean(1))


def test_labels_that_were_not_paid_for_change_nothing(source: Path, tmp_path: Path) -> None:
    """Every other label of the target is damaged; the result is the same."""
    corpora = [Corpus(source, LAYOUT) for _ in range(2)]
    whole = corpora[1].whole
    train = whole.of_split("train")
    measured = measured_on(train, 1)
    order = label_order(
        Choose.RANDOM,
        train.task_index[measured],
        lambda rows: pytest.fail("no embedding is needed"),
        0,
        lambda: pytest.fail("no model is needed"),
    )
    place = np.flatnonzero([whole.tasks[task].split == "train" for task in whole.task_index])
    secret = place[np.setdiff1d(measured, measured[order[:16]])]
    whole.latencies[secret, 1] = np.random.default_rng(0).permutation(whole.latencies[secret, 1])
    wanted = [
        settings(tmp_path / str(i), recipes=list(RECIPES), training=replace(TRAINING, epochs=1))
        for i in (0, 1)
    ]
    first, second = (few_shot(corpus, each) for corpus, each in zip(corpora, wanted, strict=True))
    assert first.rows == second.rows


def test_an_interruption_costs_one_training(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    wanted = settings(tmp_path / "cut", recipes=["mtl", "local", "impute"])
    whole = few_shot(Corpus(source, LAYOUT), replace(wanted, cache=tmp_path / "whole"))
    trainings: list[int] = []
    train = lab_module.train

    def killed(*arguments: Any, **options: Any) -> Any:
        trainings.append(1)
        if len(trainings) == 2:
            raise KeyboardInterrupt
        return train(*arguments, **options)

    monkeypatch.setattr(lab_module, "train", killed)
    with pytest.raises(KeyboardInterrupt):
        few_shot(Corpus(source, LAYOUT), wanted)
    assert few_shot(Corpus(source, LAYOUT), wanted).rows == whole.rows
    assert len(trainings) == 4  # mtl, local (killed), local, impute
    assert few_shot(Corpus(source, LAYOUT), wanted).rows == whole.rows
    assert len(trainings) == 4
    kept = sorted((tmp_path / "cut").glob("*.safetensors"))
    assert len(kept) == 3
    assert not [path for path in (tmp_path / "cut").iterdir() if path.is_dir()]
    kept[0].write_bytes(b"damaged")
    with pytest.raises(
        ModelFileError, match=f"^{kept[0]}: expected the weights of a training, found .*; delete"
    ):
        few_shot(Corpus(source, LAYOUT), wanted)


def test_of_two_runs_that_need_a_training_one_makes_it(data: MeasuredDataset, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    trained: list[int] = []

    def make(folder: Path) -> dict[str, torch.Tensor]:
        trained.append(1)
        time.sleep(0.3)
        assert folder.is_dir()
        return {"weight": torch.ones(2)}

    labs = [lab_module.Lab(data, settings(cache), lambda words: None) for _ in range(2)]
    training = labs[0].training(0)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda lab: lab._kept("fit", data, tiny_settings(), training, [], make), labs))

    assert len(trained) == 1
    assert all(torch.equal(weights["weight"], torch.ones(2)) for weights in found)
