"""A transposed convolution as a convolution without the zeros.

A transposed convolution of stride s puts s - 1 zeros between the numbers that it reads, and slides a kernel
over them: of stride 2, three of four products are by zeros. What it gives at places of the same remainder by
s, a *phase*, reads the same taps of the kernel. So a convolution of stride 1 with a share of the taps, and
with a channel for each phase of each channel, computes the same numbers; they only have to be put side by
side. (Shi et al., "Is the deconvolution layer the same as a convolutional layer?", arXiv:1609.07009.)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True)
class PhasedAxis:
    """One axis of the convolution.

    Attributes:
        stride: phases.
        first: of the taps, relative to the number that is read: never above 0.
        taps: of its kernel.
        count: of the places that it gives, each with all phases.
        cut: numbers before the first that the transposed convolution gives.
        after: zeros behind what is read; -`first` are before it.
    """

    stride: int
    first: int
    taps: int
    count: int
    cut: int
    after: int


def phased_axis(read: int, given: int, kernel: int, stride: int, padding: int) -> PhasedAxis | None:
    """How an axis is computed with the fewest taps; None where that would skip numbers that are read.

    Number i of what is read, times tap k, is part of number o of what is given, for o = i * stride -
    padding + k.

    Args:
        read: extent of what the transposed convolution reads.
        given: extent of what it gives.
        kernel: its taps.
        stride: its stride.
        padding: what it leaves out at the front.
    """
    found = []
    for cut in range(stride):
        first = -((kernel - 1 + cut - padding) // stride)
        last = (stride - 1 - cut + padding) // stride
        count = (given - 1 + cut) // stride + 1
        found.append(PhasedAxis(stride, first, last - first + 1, count, cut, count + last - read))
    best = min(found, key=lambda axis: (axis.taps, axis.cut))
    return best if best.first <= 0 <= best.after else None


def phased_axes(
    read: Sequence[int],
    given: Sequence[int],
    kernel: Sequence[int],
    strides: Sequence[Any],
    paddings: Sequence[Any],
) -> list[PhasedAxis] | None:
    """Each axis as `phased_axis` has it; None where one cannot be computed so.

    Args:
        read: extents, rows and columns, of what the transposed convolution reads.
        given: of what it gives.
        kernel: of its taps.
        strides: of both axes, as TVM has them.
        paddings: what it leaves out at the front of both; what follows is not looked at.
    """
    axes = [
        phased_axis(read[axis], given[axis], kernel[axis], int(strides[axis]), int(paddings[axis]))
        for axis in (0, 1)
    ]
    found = [axis for axis in axes if axis is not None]
    return found if len(found) == len(axes) else None


def zeros_around(axes: Sequence[PhasedAxis]) -> list[int]:
    """The padding of the convolution: before rows and columns, then behind them."""
    return [*(-axis.first for axis in axes), *(axis.after for axis in axes)]


def phased_weights(
    weights: NDArray[np.float32], axes: Sequence[PhasedAxis], paddings: Sequence[int]
) -> NDArray[np.float32]:
    """The weights of the convolution.

    Args:
        weights: (rows, columns, channels read, channels given) of the transposed one.
        axes: rows, then columns.
        paddings: what the transposed convolution leaves out at the front, of each.

    Returns:
        (rows, columns, channels read, phases of rows * phases of columns * channels given).
    """
    found = weights
    for place, (axis, padding) in enumerate(zip(axes, paddings, strict=True)):
        found = _with_phases(found, place, axis, padding)
    rows, columns, *phases, read, given = (found.shape[place] for place in (0, 2, 1, 3, 4, 5))
    phases_last = found.transpose(0, 2, 4, 1, 3, 5)
    return np.ascontiguousarray(phases_last.reshape(rows, columns, read, phases[0] * phases[1] * given))


def _with_phases(
    weights: NDArray[np.float32], place: int, axis: PhasedAxis, padding: int
) -> NDArray[np.float32]:
    """A kernel's axis as two: taps, and phases behind them."""
    before = 2 * place  # each axis before this one is two by now
    taps = (np.arange(axis.taps) + axis.first) * -axis.stride - axis.cut + padding
    chosen = taps[:, None] + np.arange(axis.stride)
    inside = (chosen >= 0) & (chosen < weights.shape[before])
    found: NDArray[np.float32] = np.take(weights, np.where(inside, chosen, 0), axis=before)
    shape = [1] * found.ndim
    shape[before : before + 2] = inside.shape
    found *= inside.reshape(shape)
    return found
