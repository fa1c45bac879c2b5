"""Models for tests of the search: linear in the embedding, so quick and the same at every call."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.errors import ModelFileError
from tlp_tvm.layout import FeatureLayout


class LinearScorer:
    """Does what the search asks of a model, and keeps count of it."""

    def __init__(self, layout: FeatureLayout | None = None, spoil: float | None = None) -> None:
        self.name = "linear"
        self.layout = layout or FeatureLayout.preset("ansor")
        self.platforms = ("avx512", "avx2")
        self.targets = {"llvm -mcpu=skylake-avx512": "avx512", "llvm -mcpu=core-avx2": "avx2"}
        self.spoil = spoil
        """A score to put in place of the last one of every call."""
        self.batches: list[int] = []
        self.heads: list[str | None] = []
        shape = (self.layout.length, self.layout.width)
        self._weights = np.random.default_rng(0).normal(0, 0.1, shape).astype(np.float32)

    def score(self, X: NDArray[np.float32], platform: str | None = None) -> NDArray[np.float32]:
        self.batches.append(len(X))
        self.heads.append(platform)
        scores = np.einsum("nle,le->n", X, self._weights)
        if self.spoil is not None:
            scores[-1:] = self.spoil
        return scores

    def platform_of(self, target: str) -> str:
        wanted = set(target.split())
        for words, platform in self.targets.items():
            if set(words.split()) <= wanted:
                return platform
        raise ModelFileError(f"no platform of {target}")
