"""Recipes for few labels of a platform: one function each, given the labelled programs and a seed."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np
from torch import Tensor

from tlp_tvm.errors import DatasetError
from tlp_tvm.evaluation.few_shot.imputing import with_imputed
from tlp_tvm.evaluation.few_shot.lab import Fitted, Lab
from tlp_tvm.evaluation.few_shot.labels import measured_on, of_platforms, of_programs, with_labels
from tlp_tvm.evaluation.rankers import Programs
from tlp_tvm.model.tlp import TLPSettings
from tlp_tvm.training.runs.new_head import with_new_head
from tlp_tvm.training.start import FINETUNE_RATE, Start, long_enough


@dataclass(frozen=True)
class FewShotRecipe:
    """One way to use labels."""

    about: str
    fit: Callable[[Lab, Programs, int], Fitted]
    """(lab, the labelled programs, seed) -> a network whose head scores the target."""
    without_labels: Callable[[Lab, int], Fitted] | None
    """(lab, seed) -> the same without any label; None if the recipe needs labels."""


def local(lab: Lab, labelled: Programs, seed: int) -> Fitted:
    """Only the target's labels."""
    data = of_programs(of_platforms(lab.data, [lab.target]), labelled)
    training = long_enough(lab.training(seed), len(labelled))
    return lab.fit("local", data, training)


def joint(lab: Lab, labelled: Programs, seed: int) -> Fitted:
    """MTL-TLP: the target's labels and all labels of the other platforms, from random weights."""
    data = with_labels(lab.data, lab.target, labelled)
    fitted = lab.fit("mtl", data, lab.training(seed))
    return Fitted(fitted.settings, fitted.weights, lab.target)


def blended(lab: Lab, labelled: Programs, seed: int) -> Fitted:
    """MTL-TLP, the target's head counting as far as it has labels."""
    return replace(joint(lab, labelled, seed), own=_own(lab, labelled))


def finetuned(lab: Lab, labelled: Programs, seed: int) -> Fitted:
    """A model of the other platforms, a head that starts as the mean of theirs, then the target's labels."""
    source = lab.source(seed)
    settings, weights, _ = with_new_head(
        source.settings, source.weights, lab.data, seed=seed, device=lab.device
    )
    model, start = _only_head(settings.heads - 1, Fitted(settings, weights))
    data = of_programs(of_platforms(lab.data, [lab.target]), labelled)
    training = long_enough(lab.training(seed, learning_rate=FINETUNE_RATE), len(labelled))
    return lab.fit("finetune", data, training, Start(start), model)


def imputed(lab: Lab, labelled: Programs, seed: int) -> Fitted:
    """`blended`, missing target labels told from the same programs on the other platforms."""
    data = with_imputed(with_labels(lab.data, lab.target, labelled), lab.target, labelled)
    fitted = lab.fit("impute", data, lab.training(seed))
    return Fitted(fitted.settings, fitted.weights, lab.target, _own(lab, labelled))


def _own(lab: Lab, labelled: Programs) -> float:
    """How much the target's head counts beside the mean of all: the root of its share of the others' labels.

    A head that saw few labels has learned their noise too, while a mean over platforms ranks well on all.
    """
    others = np.mean([len(measured_on(lab.data, column)) for column in lab.others])
    return min(1.0, math.sqrt(len(labelled) / max(float(others), 1.0)))


def _mean_of_others(lab: Lab, seed: int) -> Fitted:
    return lab.source(seed)


def _only_head(head: int, fitted: Fitted) -> tuple[TLPSettings, dict[str, Tensor]]:
    """A network with one head of another."""
    weights = {}
    for name, tensor in fitted.weights.items():
        before, heads, after = name.partition(".heads.")
        if not heads:
            weights[name] = tensor
        elif after.startswith(f"{head}."):
            weights[f"{before}.heads.0.{after.removeprefix(f'{head}.')}"] = tensor
    return replace(fitted.settings, heads=1), weights


RECIPES: dict[str, FewShotRecipe] = {
    "local": FewShotRecipe("only the target's labels", local, None),
    "mtl": FewShotRecipe(
        "those and all labels of the other platforms, jointly; without any, the mean of the others' heads",
        joint,
        _mean_of_others,
    ),
    "blend": FewShotRecipe(
        "as mtl, scored by the mean of all heads as far as the target has fewer labels than the others",
        blended,
        _mean_of_others,
    ),
    "finetune": FewShotRecipe(
        "trained on the other platforms, then on the target's labels", finetuned, _mean_of_others
    ),
    "impute": FewShotRecipe(
        "as blend, the target's missing labels told from the same programs on the other platforms",
        imputed,
        lambda lab, seed: imputed(lab, np.empty(0, np.int64), seed),
    ),
}
"""Name -> recipe."""


def recipes_named(names: list[str]) -> dict[str, FewShotRecipe]:
    """Recipes by name, in that order.

    Raises:
        DatasetError: there is none of a name.
    """
    if wrong := [name for name in names if name not in RECIPES]:
        raise DatasetError(f'`recipes`: expected some of {", ".join(RECIPES)}, found "{wrong[0]}"')
    return {name: RECIPES[name] for name in names}
