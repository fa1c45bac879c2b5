"""Batches of whole tasks: a label compares programs of one task, so a loss must see them together."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tlp_tvm.dataset.records import MeasuredDataset


def epoch_of(
    dataset: MeasuredDataset, batch_programs: int, list_programs: int, seed: tuple[int, ...]
) -> Iterator[NDArray[np.int64]]:
    """Every program once, in batches that are made of whole lists.

    A list is a task, or a random part of one where the task has more than `list_programs`. The order of
    the lists is random; a batch is closed once it has `batch_programs`.

    Args:
        dataset: the programs.
        batch_programs: about how many a batch.
        list_programs: at most how many a list.
        seed: makes the order.

    Yields:
        Indices of programs.
    """
    rng = np.random.default_rng(seed)
    lists: list[NDArray[np.int64]] = []
    for task in range(len(dataset.tasks)):
        programs = dataset.programs_of(task)
        if len(programs) > list_programs:
            parts = -(-len(programs) // list_programs)
            lists += np.array_split(rng.permutation(programs), parts)
        elif len(programs):
            lists.append(programs)
    batch: list[NDArray[np.int64]] = []
    for i in rng.permutation(len(lists)):
        batch.append(lists[i])
        if sum(map(len, batch)) >= batch_programs:
            yield np.concatenate(batch)
            batch = []
    if batch:
        yield np.concatenate(batch)


def tensors_of(
    dataset: MeasuredDataset, programs: NDArray[np.int64], device: torch.device
) -> tuple[Tensor, Tensor, Tensor]:
    """Embeddings (n, L, E), labels (n, P) with NaN where missing, and task indices (n,)."""
    return (
        torch.from_numpy(dataset.features(programs)).to(device),
        torch.from_numpy(dataset.labels[programs]).to(device),
        torch.from_numpy(dataset.task_index[programs].astype(np.int64)).to(device),
    )
