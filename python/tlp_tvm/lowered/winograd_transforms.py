"""What comes before and behind the products of a convolution in Winograd's way, as loops written by hand.

They take what memory takes: a search has nothing to choose. Left to a schedule, each number of a tile would
be computed by itself, from up to sixteen others; here a tile is transformed axis by axis, in registers.
"""

from __future__ import annotations

import contextlib
import functools
import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from numpy.typing import NDArray

from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.tuning.network.winograd_matrices import TAPS, matrices

LANES = (16, 8, 4, 2, 1)
"""Channels of which a loop makes a vector, the first number that divides them."""

_OPAQUE = 8
"""TVM's number of a function that is fused with no other."""

_KIND = "float32"

_BY_HAND = "written"
"""Name of the block around the loops: that of a function to be scheduled is "root"."""


@dataclass(frozen=True)
class Tiles:
    """The tiles of a convolution's result.

    Attributes:
        tile: rows and columns of pixels in each.
        images: at a time.
        rows: of the result.
        columns: of the result.
    """

    tile: int
    images: int
    rows: int
    columns: int

    @property
    def across(self) -> int:
        """In a row of them."""
        return -(-self.columns // self.tile)

    @property
    def down(self) -> int:
        """In a column of them."""
        return -(-self.rows // self.tile)

    @property
    def count(self) -> int:
        """Of all images."""
        return self.images * self.down * self.across

    @property
    def numbers(self) -> int:
        """That a tile has in each channel, once it is transformed."""
        return (self.tile + TAPS - 1) ** 2

    def place(self, number: Any) -> tuple[Any, Any, Any]:
        """The image of a tile, and where its pixels begin."""
        of_image = self.down * self.across
        row = number // self.across % self.down
        return number // of_image, row * self.tile, number % self.across * self.tile


def entering(tiles: Tiles, image: Sequence[int], top: int, left: int) -> Any:
    """Transform the tiles of an image.

    Args:
        tiles: of the result.
        image: its shape, with channels last.
        top: rows of zeros above it.
        left: columns of zeros before it.

    Returns:
        `tirx.PrimFunc` from the image to (numbers, tiles, channels).
    """
    _, height, width, channels = image
    matrix, side = matrices(tiles.tile).entering, tiles.tile + TAPS - 1

    def written(script: Any, number: Any, read: Any, write: Any) -> None:
        picture, row, column = tiles.place(number)
        row, column = row - top, column - left

        def transform(inside: bool) -> None:
            with _channels(script, channels, (side, side)) as (channel, sums):
                numbers = [
                    [read[picture, row + y, column + x, channel] for x in range(side)] for y in range(side)
                ]
                for y, line in enumerate(() if inside else numbers):
                    for x, pixel in enumerate(line):
                        known = _all(script, _within(row + y, 1, height), _within(column + x, 1, width))
                        line[x] = script.if_then_else(known, pixel, script.float32(0))
                for place, value in enumerate(_both_axes(script, matrix, numbers, sums)):
                    script.buffer_store(write, value, [place, number, channel])

        _either(script, _all(script, _within(row, side, height), _within(column, side, width)), transform)

    shape = [tiles.numbers, tiles.count, channels]
    return _function(tiles.count, image, shape, written)


def given(tiles: Tiles, channels: int) -> Any:
    """Bring the products of tiles back to pixels.

    Args:
        tiles: of the result.
        channels: of it.

    Returns:
        `tirx.PrimFunc` from (numbers, tiles, channels) to an image with channels last.
    """
    matrix, side = matrices(tiles.tile).given, tiles.tile + TAPS - 1

    def written(script: Any, number: Any, read: Any, write: Any) -> None:
        picture, row, column = tiles.place(number)

        def transform(inside: bool) -> None:
            with _channels(script, channels, (tiles.tile, side)) as (channel, sums):
                numbers = [[read[y * side + x, number, channel] for x in range(side)] for y in range(side)]
                for place, value in enumerate(_both_axes(script, matrix, numbers, sums)):
                    y, x = divmod(place, tiles.tile)
                    known = _all(
                        script, _within(row + y, 1, tiles.rows), _within(column + x, 1, tiles.columns)
                    )
                    with contextlib.ExitStack() as where:
                        if not inside:
                            where.enter_context(script.If(known))
                            where.enter_context(script.Then())
                        script.buffer_store(write, value, [picture, row + y, column + x, channel])

        if tiles.rows % tiles.tile or tiles.columns % tiles.tile:
            whole = _within(row, tiles.tile, tiles.rows), _within(column, tiles.tile, tiles.columns)
            _either(script, _all(script, *whole), transform)
        else:
            transform(True)

    products = [tiles.numbers, tiles.count, channels]
    shape = [tiles.images, tiles.rows, tiles.columns, channels]
    return _function(tiles.count, products, shape, written)


def _function(count: int, read: Sequence[int], write: Sequence[int], written: Callable[..., None]) -> Any:
    """A function from one array to another, whose threads share the tiles."""
    load_tvm()
    from tvm.script.ir_builder import IRBuilder
    from tvm.tirx.script import builder as script

    with IRBuilder() as built, script.prim_func(is_private=True, s_tir=True):
        script.func_attr({"tirx.noalias": True, "op_pattern": _OPAQUE, "tirx.is_scheduled": True})
        arrays = [
            script.arg(name, script.buffer(list(shape), _KIND, layout=None))
            for name, shape in (("read", read), ("write", write))
        ]
        with script.sblock(_BY_HAND), script.parallel(0, count) as number:
            written(script, number, *arrays)
    return built.get()


@contextlib.contextmanager
def _channels(script: Any, channels: int, shape: Sequence[int]) -> Iterator[tuple[Any, Any]]:
    """A loop over channels, and for each the place of an array, by two numbers."""
    lanes = next(each for each in LANES if channels % each == 0)
    with script.serial(0, channels // lanes) as vector:
        array = script.alloc_buffer([*shape, lanes], _KIND, scope="local", layout=None)
        with script.vectorized(0, lanes) as lane:
            yield vector * lanes + lane, _Lane(array, lane)


class _Lane(NamedTuple):
    """One of a vector's channels in an array of the numbers of a tile."""

    array: Any
    lane: Any


def _both_axes(script: Any, matrix: NDArray[Any], numbers: list[list[Any]], sums: _Lane) -> Iterator[Any]:
    """The numbers of a tile, transformed along its columns, then along its rows."""
    places = range(len(numbers[0]))
    for y, row in enumerate(matrix):
        for x in places:
            value = _sum(script, row, [line[x] for line in numbers])
            script.buffer_store(sums.array, value, [y, x, sums.lane])
    for y in range(len(matrix)):
        line = [sums.array[y, x, sums.lane] for x in places]
        yield from (_sum(script, row, line) for row in matrix)


def _sum(script: Any, factors: Sequence[float], numbers: Sequence[Any]) -> Any:
    """Products of factors that are not zero, added up."""
    found = None
    for factor, number in zip(factors, numbers, strict=True):
        product = number if abs(factor) == 1 else number * script.float32(abs(factor))
        if found is None and factor:
            found = product if factor > 0 else script.float32(0) - product
        elif factor:
            found = found + product if factor > 0 else found - product
    return found


def _within(first: Any, count: int, extent: int) -> tuple[Any, Any]:
    """Conditions of places that begin at the first to be within an extent."""
    return first >= 0, first + count <= extent


def _all(script: Any, *conditions: tuple[Any, Any]) -> Any:
    return functools.reduce(script.And, itertools.chain.from_iterable(conditions))


def _either(script: Any, condition: Any, transform: Callable[[bool], None]) -> None:
    """The fast way where a tile lies within the image, else the careful one."""
    with script.If(condition):
        with script.Then():
            transform(True)
        with script.Else():
            transform(False)
