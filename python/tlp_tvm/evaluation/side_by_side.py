"""Rankers on the same programs, before and after they have seen some programs of a task."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.dataset.ranking import ranked_groups
from tlp_tvm.errors import DatasetError
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.rankers import Ranker

RANDOM = "random"
"""The ranker that every comparison has: what a random pick reaches on average."""

KS = (1, 5, 10, 20)


@dataclass(frozen=True)
class OverSeeds:
    """A number over seeds."""

    mean: float
    deviation: float
    """Standard deviation; 0 for one seed."""
    low: float
    high: float

    @classmethod
    def of(cls, values: Sequence[float]) -> OverSeeds:
        """Sum up at least one value."""
        deviation = float(np.std(values, ddof=1)) if len(values) > 1 else 0.0
        return cls(float(np.mean(values)), deviation, float(min(values)), float(max(values)))


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
    spearman: OverSeeds
    kendall: OverSeeds
    pairwise_accuracy: OverSeeds

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "top": {str(k): asdict(value) for k, value in self.top.items()}}


@dataclass(frozen=True)
class RankerComparison:
    """All rows, and what could not be computed."""

    rows: tuple[ComparedRow, ...]
    not_computable: dict[str, dict[str, str]]
    """Ranker -> workload key -> why its programs cannot be scored. Rows that need one are not there."""
    notes: dict[str, list[str]]
    """Ranker -> what readers of its numbers should know."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        rows = [row.to_dict() for row in self.rows]
        return {"results": rows, "not_computable": self.not_computable, "notes": self.notes}


_Values = dict[tuple[str, int, str, str], list[dict[str, Any]]]


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
    values: _Values = {}
    tasks: dict[tuple[str, str], int] = {}
    for seed in seeds:
        for count in seen:
            tell(f"random, seed {seed}")
            hidden = _hidden(corpus, count, seed)
            for group in ranked_groups(corpus.judged_without(hidden), np.zeros(hidden.shape)):
                tasks[group.platform, group.network] = len(group.tasks)
                values.setdefault((RANDOM, count, group.platform, group.network), []).append(
                    {"top": {k: group.random(k, seed).mean for k in ks}, **asdict(group.agreement)}
                )
    not_computable: dict[str, dict[str, str]] = {}
    for ranker in rankers:
        missing: dict[int, str] = {}
        for i, seed in enumerate(seeds):
            if i == 0 or not ranker.is_fixed:
                tell(f"{ranker.name}, seed {seed}: fitting")
                missing = ranker.fit(corpus, seed, tell)
                not_computable[ranker.name] = {
                    corpus.whole.tasks[task].workload_key: why for task, why in missing.items()
                }
            for count in seen:
                tell(f"{ranker.name}, seed {seed}: ranking after {count} programs of each task")
                for key, row in _judged(corpus, ranker, missing, count, seed, ks):
                    values.setdefault((ranker.name, count, *key), []).append(row)
    rows = [_summed(key, found, tasks[key[2], key[3]], ks) for key, found in values.items()]
    platforms = [platform.name for platform in corpus.whole.platforms]
    networks = [network for platform, network in tasks if platform == platforms[0]]
    rows.sort(
        key=lambda r: (platforms.index(r.platform), networks.index(r.network), r.seen, names.index(r.ranker))
    )
    return RankerComparison(
        tuple(rows),
        {name: found for name, found in not_computable.items() if found},
        {ranker.name: ranker.notes for ranker in rankers if ranker.notes},
    )


def _judged(
    corpus: Corpus, ranker: Ranker, missing: dict[int, str], count: int, seed: int, ks: Sequence[int]
) -> Iterator[tuple[tuple[str, str], dict[str, Any]]]:
    hidden = _hidden(corpus, count, seed)
    scores = np.zeros(hidden.shape)
    whole_task = {task.workload_key: i for i, task in enumerate(corpus.whole.tasks)}
    unscored = {i for i, t in enumerate(corpus.judged.tasks) if whole_task[t.workload_key] in missing}
    for task in range(len(corpus.judged.tasks)):
        rows = corpus.judged.programs_of(task)
        if task in unscored or not len(rows):
            continue
        programs = corpus.judged_programs[rows]
        for column in range(len(corpus.judged.platforms)):
            shown = hidden[rows, column]
            if shown.any():
                rest = ranker.scores_after(programs[shown], programs[~shown], column)
                scores[rows[~shown], column] = rest
            else:
                scores[rows, column] = ranker.scores(programs, column)
    for group in ranked_groups(corpus.judged_without(hidden), scores, unscored):
        top = {k: group.top(k, seed) for k in ks}
        yield (group.platform, group.network), {"top": top, **asdict(group.agreement)}


def _summed(
    key: tuple[str, int, str, str], found: Sequence[dict[str, Any]], tasks: int, ks: Sequence[int]
) -> ComparedRow:
    def of(name: str) -> OverSeeds:
        return OverSeeds.of([each[name] for each in found])

    top = {k: OverSeeds.of([each["top"][k] for each in found]) for k in ks}
    return ComparedRow(*key, tasks, top, of("spearman"), of("kendall"), of("pairwise_accuracy"))


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
                f"--seen {most}: expected more than {most} measured programs of every test task, found "
                f"{measured[least]} of {task.workload_key} on {platform.name}; show at most "
                f"{measured[least] - 1}"
            )
