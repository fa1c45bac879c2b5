"""The folder of a trained model: its card, and how it is completed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

from tlp_tvm.dataset.ranking import ranking_rows
from tlp_tvm.dataset.reading.holding_out import TRAIN_SPLIT
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import ModelFileError
from tlp_tvm.files import write_whole
from tlp_tvm.metrics.ranked_groups import MEAN_OVER_TASKS
from tlp_tvm.model.card import card_text
from tlp_tvm.model.checkpoint import CONFIG, save_checkpoint
from tlp_tvm.model.config import ModelConfig
from tlp_tvm.model.scoring import ScoringModel
from tlp_tvm.training.state import STATE

CARD = "CARD.md"

SCORED_AT_ONCE = 1 << 14
"""Programs whose embeddings are in memory together."""


def check_unfinished(folder: Path) -> None:
    """Check that a folder is new, or that of an interrupted run.

    Raises:
        ModelFileError: it holds a finished model.
    """
    if (folder / CONFIG).exists():
        raise ModelFileError(
            f"{folder}: expected a new folder, or that of an interrupted run, found a finished model; choose "
            "another folder, or delete that one"
        )


def finish(folder: Path, config: ModelConfig, weights: dict[str, Tensor]) -> ModelConfig:
    """Write the card and the model, and delete the state of the run.

    Returns:
        The description as written, with the digest of the weights.
    """
    parameters = sum(tensor.numel() for tensor in weights.values())
    write_whole(folder / CARD, card_text(folder.name, config.card, parameters))
    written = save_checkpoint(folder, config, weights)
    (folder / STATE).unlink(missing_ok=True)
    return written


def card_rows(
    part: MeasuredDataset, model: ScoringModel, *, chose: bool, heads: slice = slice(None)
) -> list[dict[str, Any]]:
    """What the card says of tasks that the model was not trained on.

    Args:
        part: the tasks, a column for each of `heads`.
        model: what scores them.
        chose: whether these tasks chose the epoch. They are held out at random and may lack a platform, so
            only their mean is shown.
        heads: of the model.

    Raises:
        DatasetError: as `ranked_groups`.
    """
    begins = range(0, len(part), SCORED_AT_ONCE)
    scores = [model.score_all(part.features(slice(i, i + SCORED_AT_ONCE)))[:, heads] for i in begins]
    rows = ranking_rows(part, np.concatenate(scores), where_measured=chose)
    return [row.to_dict() for row in rows if not chose or row.network == MEAN_OVER_TASKS]


def data_entry(digest: str, data: MeasuredDataset, validation: MeasuredDataset | None) -> dict[str, Any]:
    """What a card says of the training data.

    Args:
        digest: of the whole dataset.
        data: the tasks that were learned from.
        validation: those that chose the epoch.
    """
    return {
        "framework": data.layout.framework,
        "digest": digest,
        "split": TRAIN_SPLIT,
        "tasks": len(data.tasks),
        "programs": len(data),
        "validation_tasks": len(validation.tasks) if validation is not None else 0,
    }
