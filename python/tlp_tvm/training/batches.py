"""Batches of whole lists: a label compares programs of one task, so the loss must see them together."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.training.train_settings import TrainSettings

Lists = list[NDArray[np.int64]]
"""Places of programs in a dataset; each list is a task or a part of one."""

PART_PROGRAMS = {"cpu": 64, "cuda": 512}
"""Programs of similar length that go through the network together: small parts waste less on padding, large
parts fill a GPU."""


class Batch(NamedTuple):
    """What the network and the loss read."""

    parts: list[Tensor]
    """(n_i, L_i, E) embeddings, the shortest programs first; n is the sum of n_i."""
    labels: Tensor
    """(n, P) in that order, NaN where missing."""
    groups: Tensor
    """(n,): programs of one list share a number."""


def epoch_of(dataset: MeasuredDataset, settings: TrainSettings, epoch: int) -> Iterator[Lists]:
    """Yield every program that has a label on any platform once, in batches of whole lists.

    A list is a task, or a random part of one with more than `list_programs`; a batch is closed once it has
    `batch_programs`. The order is random, within the neighbourhoods of a streamed dataset.
    """
    rng = np.random.default_rng((settings.seed, epoch))
    labelled = np.asarray(~np.isnan(dataset.labels).all(1))
    labelled |= not labelled.any()  # without any label there is nothing to learn, but the run ends well
    batch: Lists = []
    for tasks in dataset.neighbourhoods(rng):
        lists: Lists = []
        for task in tasks:
            programs = dataset.programs_of(int(task))
            programs = programs[labelled[programs]]
            if len(programs) > settings.list_programs:
                parts = -(-len(programs) // settings.list_programs)
                lists += np.array_split(rng.permutation(programs), parts)
            elif len(programs):
                lists.append(programs)
        for i in rng.permutation(len(lists)):
            batch.append(lists[i])
            if sum(map(len, batch)) >= settings.batch_programs:
                yield batch
                batch = []
    if batch:
        yield batch


def batch_of(dataset: MeasuredDataset, lists: Lists, device: torch.device, *, cut: bool) -> Batch:
    """The tensors of some lists; `cut` as for `parts_of`."""
    programs = np.concatenate([np.empty(0, np.int64), *lists])
    group = np.repeat(np.arange(len(lists)), [len(each) for each in lists])
    order, parts = parts_of(dataset, programs, device, cut=cut)
    labels, groups = torch.from_numpy(dataset.labels[programs[order]]), torch.from_numpy(group[order])
    return Batch(parts, _moved(labels, device), _moved(groups, device))


def parts_of(
    dataset: MeasuredDataset, programs: NDArray[np.int64], device: torch.device, *, cut: bool
) -> tuple[NDArray[np.int64], list[Tensor]]:
    """Embeddings in parts of similar length: their order in `programs`, and (n_i, L_i, E), shortest first.

    `cut` removes the rows that are padding in a whole part; a network that scores padding needs them.
    """
    lengths = dataset.counts[programs]
    order = np.argsort(lengths, kind="stable")
    x = dataset.features(programs)
    most = PART_PROGRAMS.get(device.type, PART_PROGRAMS["cpu"])
    places = np.array_split(order, -(-len(order) // most)) if len(order) else []
    longest = [max(int(lengths[part[-1]]), 1) if cut else x.shape[1] for part in places]
    parts = [x[part, :rows] for part, rows in zip(places, longest, strict=True)]
    return order, [_moved(torch.from_numpy(part), device) for part in parts]


def _moved(tensor: Tensor, device: torch.device) -> Tensor:
    if device.type == "cuda":  # pinned, so that the copy overlaps with the network
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)
