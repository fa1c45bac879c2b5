"""Accuracy on a platform against the number of its labels, for each recipe."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from tlp_tvm.dataset.ranking import ranked_groups
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import DatasetError
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.few_shot.few_shot_settings import FewShotSettings
from tlp_tvm.evaluation.few_shot.lab import Fitted, Lab
from tlp_tvm.evaluation.few_shot.labels import measured_on, of_platforms
from tlp_tvm.evaluation.few_shot.recipes import recipes_named
from tlp_tvm.evaluation.labelling import BLOCK, Choose, label_order
from tlp_tvm.evaluation.rankers import Programs
from tlp_tvm.evaluation.side_by_side import RANDOM, OverSeeds
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
    spearman: OverSeeds
    kendall: OverSeeds
    pairwise_accuracy: OverSeeds

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        return {**asdict(self), "top": {str(k): asdict(value) for k, value in self.top.items()}}


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


_Key = tuple[str, str, int, str]


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
    candidates = measured_on(lab.data, lab.target)
    counts = sorted({count.of(len(candidates)) for count in settings.counts})
    values: dict[_Key, list[dict[str, Any]]] = {}
    tasks: dict[str, int] = {}
    for group in ranked_groups(judged, np.zeros((len(judged), 1))):
        tasks[group.network] = len(group.tasks)
        chance = {"top": {k: group.random(k, settings.seeds[0]).mean for k in settings.ks}}
        values[RANDOM, "", 0, group.network] = [chance | asdict(group.agreement)]
    left_out = tuple(
        f"{name} needs labels: no row with 0"
        for name, recipe in recipes.items()
        if 0 in counts and recipe.without_labels is None
    )
    plan = [
        (choose, seed, count, name)
        for seed in settings.seeds
        for choose in settings.chooses
        for count in counts
        for name in recipes
        if count or recipes[name].without_labels is not None
    ]
    for done, (choose, seed, count, name) in enumerate(plan):
        about = f"{name}, {count} labels ({choose.value}), seed {seed}"

        def tell(words: str, done: int = done, about: str = about) -> None:
            on_progress(done, len(plan), f"{about}: {words}")

        lab.tell = tell
        tell("choosing")
        without = recipes[name].without_labels
        if count == 0 and without is not None:
            fitted = without(lab, seed)
        else:
            fitted = recipes[name].fit(lab, to_label(lab, choose, count, seed), seed)
        scores = fitted.score(heads_of(lab, fitted, judged)).numpy()[:, None]
        for group in ranked_groups(judged, scores):
            top = {k: group.top(k, seed) for k in settings.ks}
            found = {"top": top, **asdict(group.agreement)}
            values.setdefault((name, choose.value, count, group.network), []).append(found)
    on_progress(len(plan), len(plan), "")
    rows = tuple(_summed(values, tasks, max(len(candidates), 1), settings))
    return FewShot(settings.target, rows, left_out)


def _prepared(corpus: Corpus, settings: FewShotSettings) -> tuple[Lab, MeasuredDataset]:
    names = [platform.name for platform in corpus.whole.platforms]
    if settings.target not in names or len(names) < 2:
        raise DatasetError(
            f"--few-shot {settings.target}: expected one of several platforms of the dataset, found "
            f"{', '.join(names)}"
        )
    data = corpus.whole.of_tasks(corpus.training_tasks)
    lab = Lab(data, settings, lambda words: None)
    if not len(measured_on(data, lab.target)):
        raise DatasetError(
            f"--few-shot {settings.target}: expected programs of training tasks that were measured there, "
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


def _summed(
    values: dict[_Key, list[dict[str, Any]]], tasks: dict[str, int], there: int, settings: FewShotSettings
) -> Iterator[FewShotRow]:
    recipes = [RANDOM, *settings.recipes]
    networks = list(tasks)
    for key in sorted(values, key=lambda k: (networks.index(k[3]), k[2], recipes.index(k[0]))):
        found, (recipe, choose, count, network) = values[key], key
        top = {k: OverSeeds.of([each["top"][k] for each in found]) for k in settings.ks}
        rest = {
            name: OverSeeds.of([each[name] for each in found])
            for name in ("spearman", "kendall", "pairwise_accuracy")
        }
        yield FewShotRow(recipe, choose, count, count / there, network, tasks[network], top, **rest)
