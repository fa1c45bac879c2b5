"""Model files of the first format version, written once and never again: they stay readable."""

from __future__ import annotations

import json

import numpy as np
import pytest

from places import DATA
from programs import TARGETS, random_embeddings
from tlp_tvm.model.checkpoint import load_model

FROZEN = DATA / "model-v1"


@pytest.mark.parametrize("name", ["tiny", "tiny.pt"])
def test_a_file_of_the_first_version_scores_as_it_did(name: str) -> None:
    model = load_model(FROZEN / name)
    expected = np.array(json.loads((FROZEN / "scores.json").read_text()))
    np.testing.assert_allclose(model.score_all(random_embeddings(count=len(expected))), expected, atol=1e-5)
    assert dict(zip(model.platforms, model.targets, strict=True)) == TARGETS
    assert (model.card["seed"], model.card["training"]) == (3, {"epochs": 1})
