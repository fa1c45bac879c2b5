"""The optional model of a collection: it leads the evolution, or chooses among given programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING

from tlp_tvm.adapting.program_source import ProgramSource
from tlp_tvm.collection.collect_settings import CollectSettings
from tlp_tvm.errors import CollectionError
from tlp_tvm.framework import framework_named
from tlp_tvm.layout import FeatureLayout

if TYPE_CHECKING:
    from tlp_tvm.model.scoring import ScoringModel


def model_name(asked: CollectSettings, framework: str) -> str:
    """Of the model that is asked for, or of the shipped one where one is needed; empty where neither."""
    return asked.model or (framework_named(framework).default_model if asked.labels else "")


def asked_model(asked: CollectSettings, framework: str) -> ScoringModel | None:
    """The model that is asked for, or needed; None where neither.

    Raises:
        CollectionError: there is nothing for it to do, or it is of another framework.
        ModelFileError: it cannot be read.
    """
    if asked.labels and asked.programs_from is None:
        raise CollectionError(
            f"`labels` {asked.labels}: expected `programs_from`, a folder with programs to choose from, "
            "found none; give it, or measure new programs with `programs`"
        )
    if asked.model and asked.programs_from is not None and not asked.labels:
        raise CollectionError(
            f"`model` {asked.model}: expected programs to evolve, found those of `programs_from` "
            f"{asked.programs_from}; leave out one of the two, or choose among these programs with `labels`"
        )
    name = model_name(asked, framework)
    if not name:
        return None
    from tlp_tvm.model.checkpoint import load_model  # torch takes a while to import

    model, layout = load_model(name), FeatureLayout.preset(framework)
    if model.layout.digest != layout.digest:
        raise CollectionError(
            f'`model` {name}: expected a model of the layout "{layout.name}" of {layout.framework}, found '
            f'"{model.layout.name}" of {model.layout.framework}; choose another model, or none'
        )
    return model


def choice_of(model: ScoringModel, asked: CollectSettings) -> Callable[[Sequence[ProgramSource]], None]:
    """What leaves sources only the programs to measure, of those that are given.

    Raises:
        DatasetError: `labels` is not one number or share.
        ModelFileError: the model is an exported file.
    """
    from tlp_tvm.collection.selection import keep_chosen  # torch takes a while to import
    from tlp_tvm.evaluation.labelling import label_count
    from tlp_tvm.model.scoring import network_of

    count, network = label_count(asked.labels), network_of(model, "`model`")
    return partial(keep_chosen, count=count, network=network, seed=asked.seed)
