"""Programs per second that are bred, embedded and scored natively, stage by stage."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlp_tvm import _core
from tlp_tvm.bench.timing import costs_of
from tlp_tvm.breeding.breeder import Breeder
from tlp_tvm.breeding.herd_scores import embedded
from tlp_tvm.model.scoring import MEAN, ScoringModel

CHECKED = 32
"""Children that TVM replays before anything is timed."""


class BreedStages:
    """What `BreedResult` times, of one task: every generation is bred of TVM's sample."""

    def __init__(
        self, breeder: Breeder, scorer: ScoringModel, platform: str, count: int, threads: int
    ) -> None:
        """Prepare.

        Args:
            breeder: of the task.
            scorer: whose network is native.
            platform: head that scores, or "mean".
            count: children of a generation.
            threads: of all stages.

        Raises:
            AssertionError: the model's network is not native.
        """
        if scorer.native is None:
            raise AssertionError("expected a model with a native network")
        self._breeder, self._scorer, self._network = breeder, scorer, scorer.native
        self._head = -1 if platform == MEAN else scorer.column(platform)
        self._count, self._threads = count, threads
        self._seeds = iter(range(1, 10**9))

    def bred(self) -> _core.Herd:
        """A generation; another one at every call."""
        parents = self._breeder.sample
        herd, _ = self._breeder.stock.breed(
            parents,
            np.ones(len(parents)),
            self._breeder.plan,
            count=self._count,
            seed=next(self._seeds),
            known=parents.hashes,
            gpu=self._breeder.gpu,
            threads=self._threads,
        )
        return herd

    def rates(self, herd: _core.Herd, rounds: int) -> dict[str, float]:
        """Programs per second of each stage that `BreedResult` names.

        Args:
            herd: a generation.
            rounds: repeats of each; the best counts.
        """
        encoder = self._scorer.layout.encoder
        X = embedded(herd, self._scorer.layout)
        works = {
            "bred": self.bred,
            "embedded": lambda: herd.encode(encoder, X, self._threads),
            "scored": lambda: self._scored(herd),
            "network": lambda: self._network.score(X, self._head, self._threads),
            "bred_scored": lambda: self._scored(self.bred()),
        }
        rates = {name: len(herd) / cost.seconds for name, cost in costs_of(works, rounds=rounds).items()}
        rates["bred_embedded"] = 1 / (1 / rates["bred"] + 1 / rates["embedded"])
        return rates

    def checked(self, herd: _core.Herd) -> tuple[_core.Herd, list[Any]]:
        """Some children, and TVM's programs of them.

        Raises:
            AssertionError: TVM does not replay them.
        """
        part = herd.take(np.arange(min(CHECKED, len(herd))))
        replayer = self._breeder.replayer
        programs = replayer.programs(part, range(len(part)), len(part))
        if len(programs) < len(part):
            raise AssertionError(f"expected TVM to replay what was bred, found {replayer.counts}")
        return part, [program for _, program in programs]

    def _scored(self, herd: _core.Herd) -> Any:
        encoder = self._scorer.layout.encoder
        return herd.score(encoder, self._network, self._head, np.empty(0, np.intp), self._threads)
