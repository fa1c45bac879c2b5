"""Scores of bred programs: encoded and scored natively in one pass, where the model's network is native."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core
from tlp_tvm.adapting.search_scores import SearchScores
from tlp_tvm.embedding import Embedding
from tlp_tvm.errors import ModelFileError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.scoring import MEAN, ScoringModel

BATCH = 4096
"""Programs whose embeddings are in memory at a time, where another than the native network scores them."""

HerdScores = Callable[[_core.Herd], NDArray[np.float32]]
"""(N,) scores of programs, higher is better."""

_NONE = np.empty(0, np.int64)


def scores_by(layout: FeatureLayout, score: Callable[[Embedding], NDArray[np.float32]]) -> HerdScores:
    """Scores by any function of embeddings.

    Args:
        layout: of the embeddings.
        score: (n, L, E) -> (n,).
    """

    def scores(herd: _core.Herd) -> NDArray[np.float32]:
        found = np.empty(len(herd), np.float32)
        for begin in range(0, len(herd), BATCH):
            part = herd.take(np.arange(begin, min(begin + BATCH, len(herd))))
            found[begin : begin + len(part)] = score(embedded(part, layout))
        return found

    return scores


def model_scores(model: SearchScores, key: str, target: str) -> HerdScores:
    """What a cost model's `scores` says of a task's programs, before TVM knows them.

    Args:
        model: that scores, and that may have learned from the task's measurements.
        key: of the task, to the model.
        target: TVM target.
    """
    scorer, platform = model.model, model.platform_for(target)
    if not isinstance(scorer, ScoringModel) or (network := scorer.native) is None:
        return scores_by(scorer.layout, lambda embeddings: model.scores_of(key, target, embeddings))
    head = -1 if platform == MEAN else scorer.column(platform)

    def scores(herd: _core.Herd) -> NDArray[np.float32]:
        adapter = model.adapter(key)
        ready = adapter is not None and adapter.ready
        columns = adapter.columns if adapter is not None and ready else _NONE
        by_head, kept = herd.score(scorer.layout.encoder, network, head, columns, 0)
        own = by_head.mean(1) if head < 0 else by_head[:, 0]
        if not np.isfinite(own).all():
            raise ModelFileError(
                f"model {scorer.name}: expected finite scores, found others; train or export the model again"
            )
        return own if adapter is None or not ready else adapter.speeds_by(kept, own)

    return scores


def embedded(herd: _core.Herd, layout: FeatureLayout) -> Embedding:
    """(N, L, E) of programs."""
    out = np.empty((len(herd), layout.length, layout.width), np.float32)
    herd.encode(layout.encoder, out, 0)
    return out
