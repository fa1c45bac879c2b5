"""Programs per second that are bred, embedded and scored natively, stage by stage, beside TVM's evolution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tlp_tvm import _core
from tlp_tvm.bench.breed_result import BreedResult
from tlp_tvm.bench.cores import cores
from tlp_tvm.bench.timing import costs_of
from tlp_tvm.breeding.breeder import Breeder
from tlp_tvm.breeding.herd_scores import embedded
from tlp_tvm.embedding import Embedding
from tlp_tvm.layout import FeatureLayout
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

    def _scored(self, herd: _core.Herd) -> Any:
        encoder = self._scorer.layout.encoder
        return herd.score(encoder, self._network, self._head, np.empty(0, np.intp), self._threads)


@dataclass(frozen=True)
class BreedCase:
    """A task whose breeding is timed.

    Attributes:
        task: its name.
        target: TVM target.
        breeder: of it, given the threads.
        extract: TVM's programs -> their embeddings.
        all_replay: whether TVM refuses none of what is bred.
        tvms: given the threads: programs a second of TVM's evolution, and the share of its time that scoring
            takes.
    """

    task: str
    target: str
    breeder: Callable[[int], Breeder]
    extract: Callable[[list[Any], FeatureLayout], Embedding]
    all_replay: bool
    tvms: Callable[[int], tuple[float, float]]


def bench_case(
    case: BreedCase,
    scorer: ScoringModel,
    platform: str,
    *,
    model: str,
    count: int,
    threads: int,
    rounds: int,
    progress: Callable[[str], None],
) -> BreedResult:
    """Measure one task.

    Args:
        case: the task.
        scorer: whose network is native.
        platform: head that scores, or "mean".
        model: what the scorer is called.
        count: children of a generation.
        threads: of both, on as many cores; 0 for all cores of this process.
        rounds: repeats of each; the best counts.
        progress: receives a line before each phase.

    Raises:
        AssertionError: TVM does not replay what was bred, or sees another embedding.
    """
    name = f"{case.task}, {case.target}"
    with cores(threads) as used:
        progress(f"{name}: sampling")
        breeder = case.breeder(used)
        stages = BreedStages(breeder, scorer, platform, count, used)
        progress(f"{name}: checking")
        herd = stages.bred()
        _check(case, breeder, herd, scorer.layout)
        progress(f"{name}: timing, {rounds} rounds")
        rates = stages.rates(herd, rounds)
        progress(f"{name}: TVM's evolution")
        tvm, share = case.tvms(used)
    return BreedResult(
        task=case.task,
        target=case.target,
        model=model,
        programs=count,
        threads=used,
        rounds=rounds,
        tvm=tvm,
        tvm_scoring=share,
        **rates,
    )


def _check(case: BreedCase, breeder: Breeder, herd: _core.Herd, layout: FeatureLayout) -> None:
    count = min(CHECKED, len(herd))
    made = breeder.replayed(herd, range(count), count, np.empty(0, np.uint64))
    found, counts = len(made.programs), breeder.replayer.counts
    if not found or (case.all_replay and found < count):
        raise AssertionError(f"expected TVM to replay what was bred, found {counts}")
    if (case.extract(made.programs, layout) != embedded(made.herd, layout)).any():
        raise AssertionError("expected the embeddings of TVM's programs to be those bred, found others")
