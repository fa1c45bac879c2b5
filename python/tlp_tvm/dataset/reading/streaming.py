"""A built dataset whose programs stay on disk: embeddings are made on demand.

In memory are the place and the labels of each program, 16 bytes and 12 for every platform, and the text of
the blocks that were read last. A block is a batch of a shard, unpacked as a whole; so whoever reads all
programs in some order should stay among few blocks for a while (`MeasuredDataset.neighbourhoods`).
"""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from tlp_tvm.dataset.reading.built import BuiltDataset
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.dataset.reading.shards import ShardReader, programs_of
from tlp_tvm.embedding import Embedding

NEIGHBOURHOOD_BLOCKS = 8
"""Blocks whose tasks are mixed with each other: 131,072 programs, some 100 to 300 MB of text."""

KEPT_BLOCKS = 2 * NEIGHBOURHOOD_BLOCKS
"""Unpacked in memory: a task may end in the block after the one that it begins in."""


class Blocks:
    """The steps of a dataset's programs, by place; keeps the blocks that were read last."""

    def __init__(self, built: BuiltDataset, sizes: list[list[int]]) -> None:
        """Map the shards.

        Args:
            built: the dataset.
            sizes: programs of each block of each shard, in order.
        """
        self.framework = built.manifest.framework
        self._readers = [ShardReader(built.path / entry.file) for entry in built.manifest.shards]
        self._places = [(shard, i) for shard, blocks in enumerate(sizes) for i in range(len(blocks))]
        self.begins = np.concatenate([[0], np.cumsum([size for blocks in sizes for size in blocks])])
        """First program of each block, and the number of programs."""
        self._kept: OrderedDict[int, pa.LargeStringArray] = OrderedDict()
        self._lock = threading.Lock()

    def of(self, places: NDArray[np.int64]) -> NDArray[np.int64]:
        """The block of each program."""
        return np.searchsorted(self.begins, places, side="right") - 1

    def steps(self, places: NDArray[np.int64]) -> pa.LargeStringArray:
        """The steps of the programs at these places of the dataset, as text.

        Raises:
            DatasetError: a shard is damaged.
        """
        order = np.argsort(places, kind="stable")
        blocks, first = np.unique(self.of(places[order]), return_index=True)
        parts = [
            self._block(int(block)).take(pa.array(places[rows] - self.begins[block]))
            for block, rows in zip(blocks, np.split(order, first[1:]), strict=True)
        ]
        if not parts:
            return pa.array([], pa.large_string())
        back = np.empty(len(order), np.int64)
        back[order] = np.arange(len(order))
        return pa.concat_arrays(parts).take(pa.array(back))

    def _block(self, block: int) -> pa.LargeStringArray:
        with self._lock:
            steps = self._kept.pop(block, None)
            if steps is None:
                shard, i = self._places[block]
                steps = self._readers[shard].steps(i)
            self._kept[block] = steps
            if len(self._kept) > KEPT_BLOCKS:
                self._kept.popitem(last=False)
            return steps


@dataclass(frozen=True)
class StreamedDataset(MeasuredDataset):
    """As `MeasuredDataset`, but `primitives` is empty and `starts` are places in the shards."""

    blocks: Blocks = field(kw_only=True)
    threads: int = field(default=0, kw_only=True)
    """Native threads; 0 for all cores."""
    is_streamed: ClassVar[bool] = True

    def features(self, programs: NDArray[np.int64] | slice = slice(None)) -> Embedding:
        """Read and embed the chosen programs, (n, L, E) float32; rows past a program are zero.

        Raises:
            DatasetError: a shard is damaged.
        """
        places = self.starts[programs]
        if not len(places):
            return np.zeros((0, self.layout.length, self.layout.width), np.float32)
        records = programs_of(self.blocks.framework, self.blocks.steps(places), threads=self.threads)
        return records.encode(self.layout, threads=self.threads)

    def neighbourhoods(self, rng: np.random.Generator) -> Iterator[NDArray[np.int64]]:
        """The tasks that begin in a few blocks, drawn by lot; all tasks at once where the blocks are few."""
        tasks, first = np.unique(self.task_index, return_index=True)
        block = self.blocks.of(self.starts[first])
        among = np.unique(block)
        if len(among) <= NEIGHBOURHOOD_BLOCKS:
            yield from super().neighbourhoods(rng)
            return
        drawn = rng.permutation(among)
        for begin in range(0, len(drawn), NEIGHBOURHOOD_BLOCKS):
            yield tasks[np.isin(block, drawn[begin : begin + NEIGHBOURHOOD_BLOCKS])].astype(np.int64)
