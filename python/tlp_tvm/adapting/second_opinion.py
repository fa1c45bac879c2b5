"""What a model's trees say of programs that TVM has replayed, where nothing of the task is measured yet.

Breeding asks the network alone, thousands of times a second. Of the programs that it finds, TVM lowers some,
and the trees see what their steps amount to (`model.store_trees`). A search that measures does not ask them:
of 16 programs that the network chooses to differ one is as fast as the fastest of 16 that both choose.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.informed import both
from tlp_tvm.ansor.reading.store_rows import rows_of_states
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.model.store_trees import StoreTrees


class SecondOpinion:
    """Scores programs of one task by the network and the trees, in units of the network's score."""

    def __init__(self, task: Any, trees: StoreTrees, platform: str) -> None:
        """Prepare.

        Args:
            task: `auto_scheduler.SearchTask`.
            trees: of the model.
            platform: one of theirs.
        """
        self._task, self._trees, self._platform = task, trees, platform

    @classmethod
    def of(cls, model: TLPCostModel, task: Any) -> SecondOpinion | None:
        """What a model has to say beside its network; None where that is nothing.

        Args:
            model: that scores.
            task: `auto_scheduler.SearchTask`.
        """
        return cls.by(model.model, model.platform_for(str(task.target)), task)

    @classmethod
    def by(cls, model: Any, platform: str, task: Any) -> SecondOpinion | None:
        """The same, for one of the model's platforms."""
        trees: StoreTrees | None = getattr(model, "trees", None)
        return None if trees is None or platform not in trees.platforms else cls(task, trees, platform)

    def of_states(self, states: Sequence[Any], scores: NDArray[np.float32]) -> NDArray[np.float32]:
        """Scores of programs, higher is better.

        Args:
            states: the programs, bounds inferred.
            scores: (n,) of the network.

        Returns:
            (n,); minus infinity for a program that cannot be lowered.
        """
        speeds = self._trees.speeds(*rows_of_states(self._task, states), self._platform)
        return both(scores, speeds)

    def best(self, replayed: Sequence[tuple[int, Any]], scores: NDArray[np.float32]) -> list[Any]:
        """States in the order of both scores, the best first, without those that cannot be lowered.

        Args:
            replayed: places and states of programs.
            scores: of the network, by place.
        """
        states = [state for _, state in replayed]
        known = self.of_states(states, scores[np.array([i for i, _ in replayed], np.intp)])
        return [states[i] for i in np.argsort(-known, kind="stable") if np.isfinite(known[i])]
