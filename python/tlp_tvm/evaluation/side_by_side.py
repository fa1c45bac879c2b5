"""Rankers on the same programs, before and after they have seen some programs of a task."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.dataset.ranking import ranked_groups
from tlp_tvm.errors import DatasetError
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.rankers import Programs, Ranker
from tlp_tvm.metrics.bootstrap import Interval
from tlp_tvm.metrics.over_seeds import Measures, OverSeeds, as_row, measures_over_seeds
from tlp_tvm.metrics.ranked_groups import MEAN_OVER_TASKS, RankedGroup

RANDOM = "random"
"""The ranker that every comparison has: what a random pick reaches on average."""

KS = (1, 5, 10, 20)


@dataclass(frozen=True)
class ComparedRow:
    """One ranker on one platform and network."""

    ranker: str
    seen: int
    """Measured programs of each task that it was shown."""
    platform: str
    network: str
    tasks: int
    top: dict[int, OverSeeds]
    interval: dict[int, Interval]
    """k -> bootstrap interval of top-k over tasks; empty for a random pick."""
    spearman: OverSeeds
    kendall: OverSeeds
    pairwise_accuracy: OverSeeds

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return as_row(self)


@dataclass(frozen=True)
class PickedTask:
    """What one ranker picked of one task, with each seed: all that top-k needs."""

    ranker: str
    seen: int
    platform: str
    workload_key: str
    near: bool | None
    """Whether a training task is a near-duplicate; None where nothing says so."""
    weight: float
    """How often the networks have it, together."""
    best: list[float] = field(default_factory=list)
    """Seconds of the fastest candidate, by seed."""
    picks: dict[int, list[float]] = field(default_factory=dict)
    """k -> seconds of the fastest of the k first picks, by seed."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "picks": {str(k): value for k, value in self.picks.items()}}


@dataclass(frozen=True)
class RankerComparison:
    """All rows, and what could not be computed."""

    rows: tuple[ComparedRow, ...]
    tasks: tuple[PickedTask, ...]
    """What each row is made of."""
    not_computable: dict[str, dict[str, str]]
    """Ranker -> workload key -> why its programs cannot be scored. Rows that need one are not there."""
    notes: dict[str, list[str]]
    """Ranker -> what readers of its numbers should know."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        rows = [row.to_dict() for row in self.rows]
        tasks = [task.to_dict() for task in self.tasks]
        return {"results": rows, "tasks": tasks, "not_computable": self.not_computable, "notes": self.notes}


def compare_rankers(
    corpus: Corpus,
    rankers: Sequence[Ranker],
    *,
    seeds: Sequence[int] = (0,),
    seen: Sequence[int] = (0,),
    ks: Sequence[int] = KS,
    tell: Callable[[str], None] = lambda words: None,
) -> RankerComparison:
    """Fit and judge every ranker with every seed; a random pick goes first.

    Args:
        corpus: what to learn from and what is judged.
        rankers: what to compare.
        seeds: of the fits, of ties, and of which programs are shown.
        seen: how many programs of a judged task are shown before the rest of it is ranked. They are random,
            and the same for all rankers; fewer are part of more.
        ks: how many first choices count.
        tell: receives a line before each step.

    Raises:
        DatasetError: a judged task lacks programs that ran or has too few for `seen`; rankers share a name.
    """
    names = [RANDOM, *(ranker.name for ranker in rankers)]
    if twice := sorted({name for name in names if names.count(name) > 1}):
        raise DatasetError(
            f'rankers: expected a name for each, found "{twice[0]}" more than once; rename the model'
        )
    _check_seen(corpus, max(seen, default=0))
    trial = _Trial(corpus, ks, tell)
    for seed in seeds:
        for count in seen:
            trial.judge_chance(count, seed)
    for ranker in rankers:
        for i, seed in enumerate(seeds):
            if i == 0 or not ranker.is_fixed:
                trial.fit(ranker, seed)
            for count in seen:
                trial.judge(ranker, count, seed)
    return RankerComparison(
        tuple(trial.rows(names)),
        tuple(trial.picked.values()),
        trial.not_computable(rankers),
        {ranker.name: ranker.notes for ranker in rankers if ranker.notes},
    )


class _Trial:
    """What was found so far.

    Attributes:
        values: (ranker, seen programs, platform, network) -> measures, one entry per seed.
        tasks: (platform, network) -> its number of tasks.
        missing: ranker -> task of the corpus -> why its programs cannot be scored.
        near: workload keys of the tasks with a near-duplicate among the training tasks; None if unknown.
        picked: (ranker, seen programs, platform, workload key) -> what was picked.
    """

    def __init__(self, corpus: Corpus, ks: Sequence[int], tell: Callable[[str], None]) -> None:
        self.corpus, self.ks, self.tell = corpus, ks, tell
        self.values: dict[tuple[str, int, str, str], list[Measures]] = {}
        self.tasks: dict[tuple[str, str], int] = {}
        self.missing: dict[str, dict[int, str]] = {}
        self.near = corpus.near
        self.picked: dict[tuple[str, int, str, str], PickedTask] = {}

    def judge_chance(self, count: int, seed: int) -> None:
        """What a random pick reaches among the programs that are not shown."""
        self.tell(f"random, seed {seed}")
        hidden = _hidden(self.corpus, count, seed)
        for group in ranked_groups(
            self.corpus.judged_without(hidden), np.zeros(hidden.shape), near=self.near
        ):
            self.tasks[group.platform, group.network] = len(group.tasks)
            self._add(RANDOM, count, group, Measures.of_chance(group, self.ks, seed))

    def fit(self, ranker: Ranker, seed: int) -> None:
        """Let a ranker learn."""
        self.tell(f"{ranker.name}, seed {seed}: fitting")
        self.missing[ranker.name] = ranker.fit(self.corpus, seed, self.tell)

    def judge(self, ranker: Ranker, count: int, seed: int) -> None:
        """Rank the programs of every task that are not shown."""
        self.tell(f"{ranker.name}, seed {seed}: ranking after {count} programs of each task")
        judged, missing = self.corpus.judged, self.missing[ranker.name]
        whole_task = {task.workload_key: i for i, task in enumerate(self.corpus.whole.tasks)}
        unscored = {i for i, task in enumerate(judged.tasks) if whole_task[task.workload_key] in missing}
        hidden = _hidden(self.corpus, count, seed)
        scores = np.zeros(hidden.shape)
        for task in range(len(judged.tasks)):
            rows = judged.programs_of(task)
            if task not in unscored and len(rows):
                scores[rows] = _scores(ranker, self.corpus.judged_programs[rows], hidden[rows])
        for group in ranked_groups(self.corpus.judged_without(hidden), scores, unscored, near=self.near):
            self._add(ranker.name, count, group, Measures.of(group, self.ks, seed))
            if group.network == MEAN_OVER_TASKS:
                self._pick(ranker.name, count, group, seed)

    def rows(self, names: Sequence[str]) -> list[ComparedRow]:
        """By platform, network, number of seen programs and ranker."""
        rows = [
            ComparedRow(*key, self.tasks[key[2:]], **measures_over_seeds(found))
            for key, found in self.values.items()
        ]
        platforms = [platform.name for platform in self.corpus.whole.platforms]
        networks = [network for platform, network in self.tasks if platform == platforms[0]]
        return sorted(
            rows,
            key=lambda row: (
                platforms.index(row.platform),
                networks.index(row.network),
                row.seen,
                names.index(row.ranker),
            ),
        )

    def not_computable(self, rankers: Sequence[Ranker]) -> dict[str, dict[str, str]]:
        """Ranker -> workload key -> why its programs cannot be scored."""
        tasks = self.corpus.whole.tasks
        return {
            ranker.name: {tasks[task].workload_key: why for task, why in missing.items()}
            for ranker in rankers
            if (missing := self.missing.get(ranker.name))
        }

    def _pick(self, name: str, count: int, group: RankedGroup, seed: int) -> None:
        weights = {task.workload_key: float(sum(task.weights.values())) for task in self.corpus.judged.tasks}
        for key, task in zip(group.keys, group.tasks, strict=True):
            place = name, count, group.platform, key
            near = None if self.near is None else key in self.near
            found = self.picked.setdefault(place, PickedTask(*place, near, weights[key]))
            found.best.append(float(task.latencies.min()))
            for k in self.ks:
                found.picks.setdefault(k, []).append(task.best_of(k, seed))

    def _add(self, name: str, count: int, group: RankedGroup, measures: Measures) -> None:
        self.values.setdefault((name, count, group.platform, group.network), []).append(measures)


def _scores(ranker: Ranker, programs: Programs, shown: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(n, P) scores of a task's programs; 0 for those that are shown."""
    scores = np.zeros(shown.shape)
    for column in range(shown.shape[1]):
        seen = shown[:, column]
        if seen.any():
            scores[~seen, column] = ranker.scores_after(programs[seen], programs[~seen], column)
        else:
            scores[:, column] = ranker.scores(programs, column)
    return scores


def _hidden(corpus: Corpus, count: int, seed: int) -> NDArray[np.bool_]:
    """(n, P): the judged programs that are shown to the rankers, and so are no candidates any more."""
    judged = corpus.judged
    hidden = np.zeros(judged.latencies.shape, bool)
    if count:
        for task in range(len(judged.tasks)):
            programs = np.random.default_rng((seed, task)).permutation(judged.programs_of(task))
            for column in range(len(judged.platforms)):
                measured = programs[~np.isnan(judged.latencies[programs, column])]
                hidden[measured[:count], column] = True
    return hidden


def _check_seen(corpus: Corpus, most: int) -> None:
    judged = corpus.judged
    for column, platform in enumerate(judged.platforms):
        measured = np.bincount(
            judged.task_index[~np.isnan(judged.latencies[:, column])], minlength=len(judged.tasks)
        )
        least = int(measured.argmin())
        if 0 < measured[least] <= most:
            task = judged.tasks[least]
            raise DatasetError(
                f"`seen` {most}: expected more than {most} measured programs of every test task, found "
                f"{measured[least]} of {task.workload_key} on {platform.name}; show at most "
                f"{measured[least] - 1}"
            )
