"""Model files of the first format version, written once and never again: they stay readable."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import numpy as np
import pytest
import torch

from places import DATA
from programs import LAYOUT, TARGETS, random_embeddings, tiny_config
from tlp_tvm.errors import ModelFileError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.checkpoint import load_model, save_checkpoint
from tlp_tvm.model.config import BEFORE, as_before
from tlp_tvm.model.export import export_model

FROZEN = DATA / "model-v1"


@pytest.mark.parametrize("name", ["tiny", "tiny.pt"])
def test_a_file_of_the_first_version_scores_as_it_did(name: str) -> None:
    model = load_model(FROZEN / name)
    expected = np.array(json.loads((FROZEN / "scores.json").read_text()))
    known = random_embeddings(layout_of_version_1(), count=len(expected))
    since = np.random.default_rng(1).random((*known.shape[:2], LAYOUT.width - known.shape[2]), np.float32)
    x = np.concatenate([known, since * known.any(2)[:, :, None]], 2)
    np.testing.assert_allclose(model.score_all(x), expected, atol=1e-5)
    assert model.layout == LAYOUT
    assert dict(zip(model.platforms, model.targets, strict=True)) == TARGETS
    assert (model.card["seed"], model.card["training"]) == (3, {"epochs": 1})


def test_a_file_of_the_first_version_is_exported_as_one_of_this(tmp_path: Path) -> None:
    model = load_model(FROZEN / "tiny")
    export_model(model, tmp_path / "tiny.pt")
    again = load_model(tmp_path / "tiny.pt")
    assert again.card["layout"]["version"] == 3
    x = random_embeddings()
    np.testing.assert_allclose(again.score_all(x), model.score_all(x), atol=1e-6)


@pytest.mark.parametrize(("name", "version"), BEFORE)
def test_models_of_every_earlier_layout_score_as_they_did(name: str, version: int, tmp_path: Path) -> None:
    now = FeatureLayout.preset(name)
    then = as_before(now, version)
    config, network = tiny_config(then)
    save_checkpoint(tmp_path / "model", config, network.state_dict())
    model = load_model(tmp_path / "model")
    assert model.layout == now
    x = random_embeddings(now)
    known = torch.from_numpy(np.ascontiguousarray(x[..., : then.width]))
    with torch.inference_mode():
        expected = network(known).numpy()
    np.testing.assert_allclose(model.score_all(x), expected, atol=1e-5)


def test_other_columns_than_those_of_the_first_version_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "tiny"
    shutil.copytree(FROZEN / "tiny", folder)
    card = json.loads((folder / "config.json").read_text())
    card["layout"]["fields"]["SP"]["extent"]["log2"] = False
    card["layout_digest"] = FeatureLayout.from_dict(card["layout"]).digest
    (folder / "config.json").write_text(json.dumps(card))
    with pytest.raises(ModelFileError, match='expected version 3 of the layout "ansor", found 1; install'):
        load_model(folder)


def layout_of_version_1() -> FeatureLayout:
    """Of the frozen files."""
    return FeatureLayout.from_dict(json.loads((FROZEN / "tiny" / "config.json").read_text())["layout"])
