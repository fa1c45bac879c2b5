"""Batches of whole lists: a label compares programs of one task, so a loss must see them together."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import NamedTuple, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tlp_tvm.dataset.reading.measured import MeasuredDataset

Lists = list[NDArray[np.int64]]
"""Indices of programs, a list a task or part of one."""

AHEAD = 4
"""Batches that are made while the network works on another; what bounds memory."""

PART_PROGRAMS = {"cpu": 64, "cuda": 512}
"""Programs of like length that go through the network together: fewer have less padding, more fill a GPU."""

T = TypeVar("T")
R = TypeVar("R")


class Batch(NamedTuple):
    """What the network and the loss read."""

    parts: list[Tensor]
    """(n_i, L_i, E) embeddings, the shortest programs first; n is the sum of n_i."""
    labels: Tensor
    """(n, P) in that order, NaN where missing."""
    groups: Tensor
    """(n,): the programs of a list have a number in common."""

    def __len__(self) -> int:
        return len(self.labels)


def epoch_of(
    dataset: MeasuredDataset,
    batch_programs: int,
    list_programs: int,
    seed: tuple[int, ...],
    chosen: NDArray[np.bool_] | None = None,
) -> Iterator[Lists]:
    """Every program once, in batches that are made of whole lists.

    A list is a task, or a random part of one where the task has more than `list_programs`. The order of
    the lists is random, within the neighbourhoods of a streamed dataset; a batch is closed once it has
    `batch_programs`.

    Args:
        dataset: the programs.
        batch_programs: about how many a batch.
        list_programs: at most how many a list.
        seed: makes the order.
        chosen: (N,) which programs to take; all when None.

    Yields:
        The lists of a batch.
    """
    rng = np.random.default_rng(seed)
    batch: Lists = []
    for tasks in dataset.neighbourhoods(rng):
        lists: Lists = []
        for task in tasks:
            programs = dataset.programs_of(int(task))
            if chosen is not None:
                programs = programs[chosen[programs]]
            if len(programs) > list_programs:
                parts = -(-len(programs) // list_programs)
                lists += np.array_split(rng.permutation(programs), parts)
            elif len(programs):
                lists.append(programs)
        for i in rng.permutation(len(lists)):
            batch.append(lists[i])
            if sum(map(len, batch)) >= batch_programs:
                yield batch
                batch = []
    if batch:
        yield batch


def labelled_in(dataset: MeasuredDataset) -> NDArray[np.bool_]:
    """(N,) which programs have a label on any platform; all where none has one."""
    unknown = np.asarray(np.isnan(dataset.labels).all(1))
    return np.ones(len(dataset), bool) if unknown.all() else ~unknown


def batch_of(dataset: MeasuredDataset, lists: Lists, device: torch.device, *, cut: bool) -> Batch:
    """The tensors of some lists.

    Args:
        dataset: the programs.
        lists: which of them.
        device: where to.
        cut: cut the rows that are padding in all programs of a part; not for a network that scores them too.
    """
    programs = np.concatenate([np.empty(0, np.int64), *lists])
    groups = np.repeat(np.arange(len(lists)), [len(each) for each in lists])
    order, parts = parts_of(dataset, programs, device, cut=cut)
    labels, groups = dataset.labels[programs[order]], groups[order]
    return Batch(parts, *(_moved(torch.from_numpy(array), device) for array in (labels, groups)))


def parts_of(
    dataset: MeasuredDataset, programs: NDArray[np.int64], device: torch.device, *, cut: bool
) -> tuple[NDArray[np.int64], list[Tensor]]:
    """Embeddings for the network, in parts that share little padding.

    Returns:
        The places in `programs` in the order of the parts, and the parts: (n_i, L_i, E), the shortest
        programs first.
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
    if device.type == "cuda":  # so that the copy runs beside the network
        return tensor.pin_memory().to(device, non_blocking=True)
    return tensor.to(device)


def made_ahead(make: Callable[[T], R], of: Iterable[T], ahead: int = AHEAD) -> Iterator[R]:
    """`map`, with the next few made in a thread meanwhile; what `make` raises is raised here, in its turn."""
    pool = ThreadPoolExecutor(1)
    waiting: deque[Future[R]] = deque()
    try:
        for each in of:
            waiting.append(pool.submit(make, each))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
