"""Accuracy on a platform against the number of its labels, for each recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tlp_tvm.dataset.ranking import ranked_groups
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import DatasetError
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.few_shot.few_shot_settings import FewShotSettings
from tlp_tvm.evaluation.few_shot.lab import Fitted, Lab
from tlp_tvm.evaluation.few_shot.labels import measured_on, of_platforms
from tlp_tvm.evaluation.few_shot.recipes import FewShotRecipe, recipes_named
from tlp_tvm.evaluation.labelling import BLOCK, Choose, label_order
from tlp_tvm.evaluation.rankers import Programs
from tlp_tvm.evaluation.side_by_side import RANDOM
from tlp_tvm.metrics.bootstrap import Interval
from tlp_tvm.metrics.over_seeds import Measures, OverSeeds, as_row, measures_over_seeds
from tlp_tvm.model.scoring import BATCH

Progress = Callable[[int, int, str], None]
"""Receives the number of finished trainings, their total, and the current step."""


@dataclass(frozen=True)
class FewShotRow:
    """One recipe with one number of labels, on one network."""

    recipe: str
    choose: str
    labels: int
    """Of the target."""
    share: float
    """Of the target's labels in the training tasks."""
    network: str
    tasks: int
    top: dict[int, OverSeeds]
    interval: dict[int, Interval]
    """k -> bootstrap interval of top-k over tasks."""
    spearman: OverSeeds
    kendall: OverSeeds
    pairwise_accuracy: OverSeeds

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return as_row(self)


@dataclass(frozen=True)
class FewShot:
    """All rows, a random pick first."""

    target: str
    rows: tuple[FewShotRow, ...]
    left_out: tuple[str, ...]
    """What could not be done, in words."""

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {
            "target": self.target,
            "results": [row.to_dict() for row in self.rows],
            "left_out": list(self.left_out),
        }


class _Step(NamedTuple):
    """One training and its evaluation."""

    choose: Choose
    seed: int
    labels: int
    recipe: str


def few_shot(
    corpus: Corpus, settings: FewShotSettings, on_progress: Progress = lambda done, total, words: None
) -> FewShot:
    """Train and judge every recipe with every number of labels and every seed.

    Args:
        corpus: training tasks with the labels of all platforms, and the tasks that are judged.
        settings: what to find out.
        on_progress: called after each step.

    Raises:
        DatasetError: there is no such platform or recipe, no other platform, no label, or a judged task
            has no program that ran on the target.
    """
    recipes = recipes_named(list(settings.recipes))
    lab, judged = _prepared(corpus, settings)
    there = len(measured_on(lab.data, lab.target))
    counts = sorted({count.of(there) for count in settings.counts})
    values: dict[tuple[str, str, int, str], list[Measures]] = {}
    tasks: dict[str, int] = {}
    for group in ranked_groups(judged, np.zeros((len(judged), 1)), near=corpus.near):
        tasks[group.network] = len(group.tasks)
        chance = Measures.of_chance(group, settings.ks, settings.seeds[0])
        values[RANDOM, "", 0, group.network] = [chance]
    plan = list(_plan(settings, counts, recipes))
    for done, step in enumerate(plan):
        about = f"{step.recipe}, {step.labels} labels ({step.choose.value}), seed {step.seed}"
        lab.tell = partial(_tell, on_progress, done, len(plan), about)
        lab.tell("choosing")
        scores = _scores(lab, recipes[step.recipe], step, judged)
        for group in ranked_groups(judged, scores, near=corpus.near):
            key = step.recipe, step.choose.value, step.labels, group.network
            values.setdefault(key, []).append(Measures.of(group, settings.ks, step.seed))
    on_progress(len(plan), len(plan), "")
    order = {name: i for i, name in enumerate([RANDOM, *settings.recipes])}
    networks = list(tasks)
    rows = tuple(
        FewShotRow(*key[:3], key[2] / there, key[3], tasks[key[3]], **measures_over_seeds(values[key]))
        for key in sorted(values, key=lambda k: (networks.index(k[3]), k[2], order[k[0]]))
    )
    return FewShot(settings.target, rows, _left_out(counts, recipes))


def _plan(
    settings: FewShotSettings, counts: Sequence[int], recipes: Mapping[str, FewShotRecipe]
) -> Iterator[_Step]:
    for seed in settings.seeds:
        for choose in settings.chooses:
            for count in counts:
                for name, recipe in recipes.items():
                    if count or recipe.without_labels is not None:
                        yield _Step(choose, seed, count, name)


def _left_out(counts: Sequence[int], recipes: Mapping[str, FewShotRecipe]) -> tuple[str, ...]:
    need = [name for name, recipe in recipes.items() if 0 in counts and recipe.without_labels is None]
    return tuple(f"{name} needs labels: no row with 0" for name in need)


def _tell(on_progress: Progress, done: int, total: int, about: str, words: str) -> None:
    on_progress(done, total, f"{about}: {words}")


def _scores(lab: Lab, recipe: FewShotRecipe, step: _Step, judged: MeasuredDataset) -> NDArray[np.float32]:
    """(n, 1) of the judged programs."""
    if step.labels == 0 and recipe.without_labels is not None:
        fitted = recipe.without_labels(lab, step.seed)
    else:
        fitted = recipe.fit(lab, to_label(lab, step.choose, step.labels, step.seed), step.seed)
    scores: NDArray[np.float32] = fitted.score(heads_of(lab, fitted, judged)).numpy()
    return scores[:, None]


def _prepared(corpus: Corpus, settings: FewShotSettings) -> tuple[Lab, MeasuredDataset]:
    data = corpus.whole.of_tasks(corpus.training_tasks)
    lab = Lab(data, settings, lambda words: None)
    if not len(measured_on(data, lab.target)):
        raise DatasetError(
            f"`few_shot` {settings.target}: expected programs of training tasks that were measured there, "
            "found none"
        )
    return lab, of_platforms(corpus.judged, [lab.target])


def to_label(lab: Lab, choose: Choose, count: int, seed: int, block: int = BLOCK) -> Programs:
    """The programs that are labelled, of those that were measured on the target; in their own order."""
    candidates = measured_on(lab.data, lab.target)
    order = label_order(
        choose,
        lab.data.task_index[candidates],
        lambda rows: lab.data.features(candidates[rows]),
        seed,
        lambda: lab.network(lab.source(seed)),
        block,
    )
    return np.sort(candidates[order[:count]])


def heads_of(lab: Lab, fitted: Fitted, judged: MeasuredDataset) -> Tensor:
    """(n, P) what the heads say of the judged programs, on the CPU."""
    network = lab.network(fitted)
    with torch.inference_mode():
        return torch.cat(
            [
                network(torch.from_numpy(judged.features(slice(begin, begin + BATCH))).to(lab.device)).cpu()
                for begin in range(0, len(judged), BATCH)
            ]
        )
