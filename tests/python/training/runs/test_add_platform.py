"""A head for one more platform: the old ones score as before, the new one learns."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from commands import refused, succeed
from measured import part_of_epyc
from programs import LAYOUT, TARGETS, tiny_settings, write_dataset
from tlp_tvm.dataset.ranking import ranking_rows
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.checkpoint import load_model
from tlp_tvm.model.tlp import TLP
from tlp_tvm.training import start
from tlp_tvm.training.loop import train
from tlp_tvm.training.runs.new_head import with_new_head
from tlp_tvm.training.start import FEW_STEPS, Start, long_enough
from tlp_tvm.training.train_settings import TrainSettings

EPYC = ("epyc-avx2-1c", "epyc-avx512-2c", "epyc-sse42-1c")


@pytest.fixture(scope="module")
def dataset(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_dataset(tmp_path_factory.mktemp("dataset"), ("train",) * 5 + ("test",) * 2)


@pytest.fixture(scope="module")
def model(dataset: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("models") / "alpha"
    succeed("train", dataset, "--platform", "alpha", "--out", out, "--epochs", 2, "--hidden", 16)
    return out


@pytest.mark.parametrize("heads", [1, 2, 3])
def test_the_new_head_is_the_mean_of_the_others_and_they_are_as_before(dataset: Path, heads: int) -> None:
    data = load_measured(dataset, LAYOUT)
    settings = tiny_settings(heads=heads, members=2)
    torch.manual_seed(2)
    network = TLP(settings).eval()
    grown_settings, weights, fixed = with_new_head(settings, network.state_dict(), data)
    grown = TLP.with_weights(grown_settings, weights)
    x = torch.from_numpy(data.features())
    with torch.inference_mode():
        before, after = network(x), grown(x)
    assert torch.equal(before, after[:, :heads])
    mean = before.mean(1)
    # Of random heads of 16 columns: 45 of 48 such networks.
    assert np.corrcoef(mean, after[:, heads])[0, 1] > 0.95
    assert {name for name in weights if name not in fixed} == {
        f"members.{m}.heads.{heads}.{layer}.{part}"
        for m in (0, 1)
        for layer in (0, 2, 4)
        for part in ("weight", "bias")
    }


def test_what_is_fixed_stays_while_the_rest_learns(dataset: Path, tmp_path: Path) -> None:
    data = load_measured(dataset, LAYOUT)
    settings, weights, fixed = with_new_head(tiny_settings(), TLP(tiny_settings()).state_dict(), data)
    three = replace(
        data,
        platforms=(*data.platforms, replace(data.platforms[0], name="gamma")),
        latencies=np.concatenate([np.full((len(data), 2), np.nan), data.latencies[:, 1:]], axis=1),
    )
    training = TrainSettings(epochs=4, learning_rate=1e-2)
    trained = train(three, None, settings, training, tmp_path, device="cpu", start=Start(weights, fixed))
    changed = {name for name, tensor in trained.weights.items() if not torch.equal(tensor, weights[name])}
    assert changed == weights.keys() - fixed
    assert Start(weights, fixed).digest != Start(weights).digest


def test_few_programs_make_many_epochs() -> None:
    training = TrainSettings(epochs=40, batch_programs=256)
    assert long_enough(training, 50).epochs == FEW_STEPS
    assert long_enough(training, 5120).epochs == 40


@pytest.fixture
def _few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(start, "FEW_STEPS", 20)


@pytest.mark.usefixtures("_few_steps")
def test_a_head_is_added_and_nothing_forgotten(dataset: Path, model: Path, tmp_path: Path) -> None:
    out = tmp_path / "both"
    printed = succeed(
        "train", dataset, "--add-to", model, "--platform", "beta", "--out", out, "--epochs", 3, "--json"
    )
    assert json.loads(printed)["added"] == {"platform": "beta"}
    before, after = load_model(model), load_model(out)
    assert after.platforms == ("alpha", "beta")
    assert after.targets == tuple(TARGETS.values())
    features = load_measured(dataset, LAYOUT.preset("ansor")).features()
    np.testing.assert_array_equal(before.score(features, "alpha"), after.score(features, "alpha"))
    rows = after.card["metrics"]["test"]
    assert [row for row in rows if row["platform"] == "alpha"] == before.card["metrics"]["test"]
    assert any(row["platform"] == "beta" for row in rows)
    assert after.card["added"]["to"]["weights"] == before.card["weights"]
    text = (out / "CARD.md").read_text()
    assert (
        f"The head of `beta` was added to a model with the weights `{before.card['weights']['sha256']}`"
        in text
    )
    assert "Only the new head was trained: all\nother heads score as before, bit for bit." in text
    assert sorted(p.name for p in out.iterdir()) == [
        "CARD.md",
        "config.json",
        "metrics.csv",
        "metrics.jsonl",
        "model.safetensors",
    ]


def test_the_new_head_beats_the_mean_of_the_others_on_real_programs(tmp_path: Path) -> None:
    """The same programs, ranked for the third platform after its labels are known."""
    source = part_of_epyc(tmp_path / "data", programs=40, platforms=EPYC)
    first, second = tmp_path / "two", tmp_path / "three"
    succeed(
        "train", source, "--platform", EPYC[0], "--platform", EPYC[1], "--out", first, "--epochs", 30,
        "--hidden", 32, "--members", 1, "--hold-out", 0,
    )  # fmt: skip
    succeed("train", source, "--add-to", first, "--platform", EPYC[2], "--out", second, "--hold-out", 0)
    data = load_measured(source, FeatureLayout.preset("ansor"), platforms=EPYC[2:]).of_split("train")
    old, new = load_model(first), load_model(second)
    features = data.features()
    np.testing.assert_array_equal(old.score_all(features), new.score_all(features)[:, :2])
    mean = _spearman(data, old.score(features, "mean"))
    assert _spearman(data, new.score(features, EPYC[2])) > mean + 0.02


def _spearman(data, scores) -> float:  # type: ignore[no-untyped-def]
    return ranking_rows(data, scores[:, None])[-1].spearman


@pytest.mark.parametrize(
    ("options", "code", "sentence"),
    [
        (
            ["--platform", "alpha"],
            1,
            'none of alpha, found "alpha"; choose a new name',
        ),
        ([], 2, "expected one new --platform, found none"),
        (["--platform", "beta", "--hidden", "16"], 2, "found --hidden; leave it out"),
        (["--platform", "beta", "--faithful"], 2, "found --faithful; leave it out"),
        (["--platform", "beta", "--cross-validate", "2"], 2, "found --cross-validate; leave it out"),
        (["--platform", "beta", "--layout", "ansor"], 2, "found --layout; leave it out"),
        (["--platform", "gamma"], 1, "gamma"),
    ],
)
def test_what_cannot_be_added_is_refused(
    dataset: Path, model: Path, tmp_path: Path, options: list[str], code: int, sentence: str
) -> None:
    out = tmp_path / "out"
    assert sentence in refused("train", dataset, "--add-to", model, "--out", out, *options, code=code)
    assert not out.exists()


def test_a_test_task_that_the_new_platform_lacks_is_told_before_training(model: Path, tmp_path: Path) -> None:
    lacking = write_dataset(tmp_path / "lacking", ("train",) * 5 + ("test",) * 2)
    (lacking / "beta" / "test" / "task6.json.gz").unlink()
    out = tmp_path / "out"
    sentence = refused("train", lacking, "--add-to", model, "--platform", "beta", "--out", out)
    assert "platform beta: expected measured programs of" in sentence
    assert not out.exists()


def test_exported_files_and_finished_folders_are_refused(dataset: Path, model: Path, tmp_path: Path) -> None:
    succeed("export", model, "-o", tmp_path / "model.pt")
    arguments = ["train", dataset, "--platform", "beta", "--add-to"]
    assert "found an exported file; give the folder that it was exported from" in refused(
        *arguments, tmp_path / "model.pt", "--out", tmp_path / "out"
    )
    assert "found a finished model" in refused(*arguments, model, "--out", model)
