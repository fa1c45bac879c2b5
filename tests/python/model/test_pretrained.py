"""The models that come with the package are what their cards say."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from logs import DATASETS
from tlp_tvm.dataset.building.build import build_dataset
from tlp_tvm.dataset.ranking import ranking_rows
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.framework import FRAMEWORKS, framework_named
from tlp_tvm.model.checkpoint import CONFIG, SHIPPED, load_model, shipped_models
from tlp_tvm.model.export import export_model
from tlp_tvm.training.runs.model_folder import CARD

SIZE_LIMIT = 6_000_000


LISTS = {"epyc-small": "epyc"}
"""The list of a model that shares another's."""


def taught(model: str) -> tuple[str, ...]:
    """The folders whose programs taught a shipped model."""
    return tuple((DATASETS / "taught" / f"{LISTS.get(model, model)}.txt").read_text().split())


TRAINED_ON = {
    name: taught(name) for name in ("epyc", "epyc-metaschedule", "epyc-small", "x86", "x86-metaschedule")
}
NAMES = tuple(TRAINED_ON)


def test_both_sizes_and_both_frameworks_are_shipped() -> None:
    assert shipped_models() == NAMES
    for framework in FRAMEWORKS:
        name = framework_named(framework).default_model
        assert load_model(name).layout.framework == framework


@pytest.mark.parametrize("name", NAMES)
def test_shipped_models_are_small_and_have_cards(name: str) -> None:
    folder = SHIPPED / name
    assert sum(file.stat().st_size for file in folder.iterdir()) < SIZE_LIMIT
    card, text = load_model(name).card, (folder / CARD).read_text()
    trained_on = json.loads((folder / CONFIG).read_text())["layout_digest"]
    for word in (f"# Model `{name}`", card["data"]["digest"], trained_on):
        assert word in text
    for row in card["metrics"]["test"]:
        assert f"| {row['top']['1']:.3f} | {row['top']['5']:.3f} | {row['random']['1']['mean']:.3f} " in text


@pytest.fixture(scope="module")
def datasets(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    folder = tmp_path_factory.mktemp("datasets")
    built = {folders: folder / "-".join(folders) for folders in set(TRAINED_ON.values())}
    for folders, out in built.items():
        build_dataset([DATASETS / name for name in folders], out)
    return {name: built[folders] for name, folders in TRAINED_ON.items()}


@pytest.mark.parametrize("name", NAMES)
def test_models_rank_the_test_networks_as_their_cards_say(name: str, datasets: dict[str, Path]) -> None:
    model = load_model(name)
    measured = load_measured(datasets[name], model.layout)
    assert measured.digest in (DATASETS / "README.md").read_text()
    assert measured.digest == model.card["data"]["digest"]
    assert tuple(platform.name for platform in measured.platforms) == model.platforms
    assert tuple(platform.target for platform in measured.platforms) == model.targets
    test = measured.of_split("test")
    rows = ranking_rows(test, model.score_all(test.features()))
    for row, written in zip(rows, model.card["metrics"]["test"], strict=True):
        assert (row.platform, row.network) == (written["platform"], written["network"])
        # Another build of torch rounds otherwise: a tie may fall the other way, a ranking may not change.
        assert row.spearman == pytest.approx(written["spearman"], abs=0.01)
        assert row.random[1].mean == pytest.approx(written["random"]["1"]["mean"], abs=1e-6)
        for k, share in row.top.items():
            assert share == pytest.approx(written["top"][str(k)], abs=0.02)


@pytest.mark.parametrize("name", NAMES)
def test_the_exported_file_scores_as_the_checkpoint(name: str, tmp_path: Path) -> None:
    model, shipped = load_model(name), load_model(SHIPPED / name / "model.pt")
    assert shipped.card["weights"] == model.card["weights"]
    assert export_model(model, tmp_path / "again.pt") <= 1e-6
    files = sorted((DATASETS / TRAINED_ON[name][0] / model.platforms[0]).rglob("*.json.gz"))[:2]
    x = load_measured(files, model.layout).features()
    for exported in (shipped, load_model(tmp_path / "again.pt")):
        np.testing.assert_allclose(exported.score_all(x), model.score_all(x), rtol=1e-6, atol=1e-6)
