"""What a model's trees say of programs that TVM has lowered, where nothing of the task is measured yet.

Breeding asks the network alone, thousands of times a second. Of the programs that it finds, TVM lowers some,
and the trees see what their steps amount to (`model.trees`). A search that measures does not ask them: of 16
programs that the network chooses to differ one is as fast as the fastest of 16 that both choose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.informed import both
from tlp_tvm.breeding.evolution import Found
from tlp_tvm.breeding.herd_scores import embedded
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.trees.store_trees import StoreTrees
from tlp_tvm.model.trees.tile_sizes import tile_sizes

RowsOf = Callable[[Sequence[Any]], tuple[NDArray[np.float32], NDArray[np.integer[Any]]]]
"""Programs of a task -> (S, 164) rows of all their stores, and (n,) how many each has."""


class SecondOpinion:
    """Scores programs of one task by the network and the trees, in units of the network's score."""

    def __init__(self, trees: StoreTrees, platform: str, rows_of: RowsOf, layout: FeatureLayout) -> None:
        """Prepare.

        Args:
            trees: of the model.
            platform: one of theirs.
            rows_of: what the trees read of the task's programs.
            layout: by which they see how programs are tiled.
        """
        self._trees, self._platform, self._rows_of, self._layout = trees, platform, rows_of, layout

    @classmethod
    def by(cls, model: Any, platform: str, rows_of: RowsOf) -> SecondOpinion | None:
        """What a model has to say beside its network; None where that is nothing.

        Args:
            model: that scores.
            platform: one of the model's.
            rows_of: as above.
        """
        trees: StoreTrees | None = getattr(model, "trees", None)
        if trees is None or platform not in trees.platforms:
            return None
        return cls(trees, platform, rows_of, FeatureLayout.preset(model.layout.framework))

    def best(self, programs: Sequence[tuple[int, Any]], found: Found) -> list[tuple[int, Any]]:
        """Programs in the order of both scores, the best first, without those that cannot be lowered.

        Args:
            programs: places among those that were bred, and what `rows_of` reads.
            found: what was bred.
        """
        places = np.array([i for i, _ in programs], np.intp)
        tiles = tile_sizes(embedded(found.herd.take(places), self._layout), self._layout)
        rows = self._rows_of([program for _, program in programs])
        known = both(found.scores[places], self._trees.speeds(*rows, tiles, self._platform))
        return [programs[i] for i in np.argsort(-known, kind="stable") if np.isfinite(known[i])]
