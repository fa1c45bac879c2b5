"""What a model's trees say of programs that TVM has lowered, where nothing of the task is measured yet.

Breeding asks the network alone, thousands of times a second. Of the programs that it finds, TVM lowers some,
and the trees see what their steps amount to (`model.trees`). Lowering takes most of the time, so it goes by
steps: after each, a Gaussian process on what the trees said so far says which programs they may like next. A
search that measures does not ask them: of 16 programs that the network chooses to differ one is as fast as
the fastest of 16 that both choose.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.adaptation import UNIT
from tlp_tvm.adapting.informed import both
from tlp_tvm.adapting.process import ENOUGH, Process
from tlp_tvm.breeding.evolution import Found
from tlp_tvm.breeding.herd_scores import embedded
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.trees.store_trees import StoreTrees
from tlp_tvm.model.trees.tile_sizes import tile_sizes

RowsOf = Callable[[Sequence[Any]], tuple[NDArray[np.float32], NDArray[np.integer[Any]]]]
"""Programs of a task -> (S, 164) rows of all their stores, and (n,) how many each has."""


ProgramsOf = Callable[[Sequence[int]], list[tuple[int, Any]]]
"""Places among those that were bred -> those that TVM does not refuse, with what `RowsOf` reads."""

FIRST, STEP = 3, 6
"""A third of the programs that are lowered are so first, a sixth with each step."""


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

    def best(
        self, found: Found, places: Sequence[int], programs_of: ProgramsOf, count: int
    ) -> list[tuple[int, Any]]:
        """Have some programs lowered, all at once where there are no more, in the order of both scores.

        Args:
            found: what was bred, the network's favourites first.
            places: those among it to choose from, in that order.
            programs_of: what `rows_of` reads of them.
            count: how many to lower.

        Returns:
            Places with programs, without those that cannot be lowered.
        """
        waiting = np.array(places, np.intp)
        embeddings = embedded(found.herd, self._layout)
        tiles, rows = tile_sizes(embeddings, self._layout), embeddings.reshape(len(embeddings), -1)
        known: list[tuple[int, Any]] = []
        speeds = np.empty(0)
        left = min(count, len(waiting))
        asked = waiting if left == len(waiting) else _first(waiting, max(1, count // FIRST))
        while len(asked):
            programs = programs_of(asked.tolist())
            own = np.array([i for i, _ in programs], np.intp)
            if len(own):
                lowered = self._rows_of([program for _, program in programs])
                speeds = np.append(speeds, self._trees.speeds(*lowered, tiles[own], self._platform))
                known += programs
            waiting, left = np.setdiff1d(waiting, asked), left - len(asked)
            if not left:
                break
            hopes = _hopes(np.array([i for i, _ in known], np.intp), speeds, waiting, rows, found.scores)
            asked = waiting[np.argsort(-hopes, kind="stable")[: min(left, max(1, count // STEP))]]
        together = both(found.scores[[i for i, _ in known]], speeds)
        return [known[i] for i in np.argsort(-together, kind="stable") if np.isfinite(together[i])]


def _first(places: NDArray[np.intp], count: int) -> NDArray[np.intp]:
    """The best of some programs, and as many of the rest, evenly spread: the trees' taste may be another."""
    best, rest = places[: count - count // 2], places[count - count // 2 :]
    return np.concatenate([best, rest[np.linspace(0, len(rest) - 1, count // 2).astype(np.intp)]])


def _hopes(
    known: NDArray[np.intp],
    speeds: NDArray[np.float64],
    waiting: NDArray[np.intp],
    rows: NDArray[np.float32],
    scores: NDArray[np.float32],
) -> NDArray[np.float32]:
    """(n,) what both may say of the programs that wait, by what the trees said of those that are known."""
    ran = np.isfinite(speeds)
    if ran.sum() < ENOUGH:
        return scores[waiting]
    known, units = known[ran], speeds[ran] / UNIT
    process = Process.fitted(rows[known], scores[known], units - units.max())
    return both(scores[waiting], UNIT * process.expected(rows[waiting], scores[waiting]).astype(np.float64))
