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

from tlp_tvm.lowered.loop_script import LoopScript
from tlp_tvm.lowered.winograd_matrices import TAPS, matrices

LANES = (16, 8, 4, 2, 1)
"""Channels of which a loop makes a vector, the first number that divides them."""

Sums = Callable[[int, Any, Any], Sequence[Any]]
"""Which of the numbers of a tile, the tile, the channel -> its place in an array of all."""


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


class Image(NamedTuple):
    """How an image is read.

    Attributes:
        rows: of it.
        columns: of it.
        channels: of it.
        top: rows of zeros above it.
        left: columns of zeros before it.
    """

    rows: int
    columns: int
    channels: int
    top: int
    left: int


def enter(script: LoopScript, tiles: Tiles, read: Any, write: Any, how: Image, sums: Sums) -> None:
    """Transform the tiles of an image.

    Args:
        script: of the function.
        tiles: of the result.
        read: an image with channels last.
        write: the numbers of all tiles.
        how: the image is read.
        sums: the places of these numbers.
    """
    matrix, side = matrices(tiles.tile).entering, tiles.tile + TAPS - 1
    with script.parallel(tiles.count) as number:
        picture, row, column = tiles.place(number)
        row, column = row - how.top, column - how.left

        def transform(inside: bool) -> None:
            with _channels(script, how.channels, (side, side)) as (channel, lane):
                numbers = [
                    [read[picture, row + y, column + x, channel] for x in range(side)] for y in range(side)
                ]
                for y, line in enumerate(() if inside else numbers):
                    for x, pixel in enumerate(line):
                        known = _all(
                            script, _within(row + y, 1, how.rows), _within(column + x, 1, how.columns)
                        )
                        line[x] = script.chosen(known, pixel, script.number(0))
                for place, value in enumerate(_both_axes(script, matrix, numbers, lane)):
                    script.store(write, value, sums(place, number, channel))

        whole = _all(script, _within(row, side, how.rows), _within(column, side, how.columns))
        script.either(whole, transform)


def give(script: LoopScript, tiles: Tiles, read: Any, write: Any, channels: int, sums: Sums) -> None:
    """Bring the products of tiles back to pixels.

    Args:
        script: of the function.
        tiles: of the result.
        read: the numbers of all tiles.
        write: an image with channels last.
        channels: of it.
        sums: the places of these numbers.
    """
    matrix, side = matrices(tiles.tile).given, tiles.tile + TAPS - 1
    with script.parallel(tiles.count) as number:
        picture, row, column = tiles.place(number)

        def transform(inside: bool) -> None:
            with _channels(script, channels, (tiles.tile, side)) as (channel, lane):
                numbers = [
                    [read[tuple(sums(y * side + x, number, channel))] for x in range(side)]
                    for y in range(side)
                ]
                for place, value in enumerate(_both_axes(script, matrix, numbers, lane)):
                    y, x = row + place // tiles.tile, column + place % tiles.tile
                    known = _all(script, _within(y, 1, tiles.rows), _within(x, 1, tiles.columns))
                    with contextlib.nullcontext() if inside else script.where(known):
                        script.store(write, value, [picture, y, x, channel])

        if tiles.rows % tiles.tile or tiles.columns % tiles.tile:
            whole = _within(row, tiles.tile, tiles.rows), _within(column, tiles.tile, tiles.columns)
            script.either(_all(script, *whole), transform)
        else:
            transform(True)


class _Lane(NamedTuple):
    """One of a vector's channels in arrays of the rows of a tile."""

    rows: Sequence[Any]
    lane: Any


@contextlib.contextmanager
def _channels(script: LoopScript, channels: int, shape: tuple[int, int]) -> Iterator[tuple[Any, _Lane]]:
    """A loop over channels, and for each its place in arrays of so many rows and columns.

    A row has an array of its own: larger ones TVM asks memory for, in each iteration.
    """
    lanes = next(each for each in LANES if channels % each == 0)
    with script.serial(channels // lanes) as vector:
        rows = [script.array([shape[1], lanes]) for _ in range(shape[0])]
        with script.vectorised(lanes) if lanes > 1 else script.serial(lanes) as lane:
            yield vector * lanes + lane, _Lane(rows, lane)


def _both_axes(
    script: LoopScript, matrix: NDArray[Any], numbers: list[list[Any]], to: _Lane
) -> Iterator[Any]:
    """The numbers of a tile, transformed along its columns, then along its rows."""
    places = range(len(numbers[0]))
    for array, factors in zip(to.rows, matrix, strict=True):
        for x in places:
            script.store(array, _sum(script, factors, [line[x] for line in numbers]), [x, to.lane])
    for array in to.rows:
        line = [array[x, to.lane] for x in places]
        yield from (_sum(script, factors, line) for factors in matrix)


def _sum(script: LoopScript, factors: Sequence[float], numbers: Sequence[Any]) -> Any:
    """Products of factors that are not zero, added up."""
    found = None
    for factor, number in zip(factors, numbers, strict=True):
        product = number if abs(factor) == 1 else number * script.number(abs(factor))
        if found is None and factor:
            found = product if factor > 0 else script.number(0) - product
        elif factor:
            found = found + product if factor > 0 else found - product
    return found


def _within(first: Any, count: int, extent: int) -> tuple[Any, Any]:
    """Conditions of places that begin at the first to be within an extent."""
    return first >= 0, first + count <= extent


def _all(script: LoopScript, *conditions: tuple[Any, Any]) -> Any:
    return functools.reduce(script.both, itertools.chain.from_iterable(conditions))
