"""Transposed convolutions computed by a convolution of their phases, beside torch."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch
from torch.nn import functional

from tlp_tvm.tuning.network.phases import phased_axis, phased_weights

Axis = tuple[int, int, int, int]
"""Kernel, stride, padding, output padding."""


def by_phases(x: torch.Tensor, weights: torch.Tensor, axes: tuple[Axis, Axis]) -> torch.Tensor | None:
    """What the transposed convolution gives; None where it cannot be computed so."""
    sizes = [
        (read - 1) * stride - 2 * padding + kernel + more
        for read, (kernel, stride, padding, more) in zip(x.shape[2:], axes, strict=True)
    ]
    found = [
        phased_axis(read, size, *axis[:3]) for read, size, axis in zip(x.shape[2:], sizes, axes, strict=True)
    ]
    if None in found:
        return None
    rows, columns = (axis for axis in found if axis is not None)
    kernel = phased_weights(weights.permute(2, 3, 0, 1).numpy(), [rows, columns], [axis[2] for axis in axes])
    padded = functional.pad(x, (-columns.first, columns.after, -rows.first, rows.after))
    phases = functional.conv2d(padded, torch.from_numpy(kernel).permute(3, 2, 0, 1))
    assert phases.shape[2:] == (rows.count, columns.count)
    apart = phases.reshape(len(x), rows.stride, columns.stride, -1, rows.count, columns.count)
    beside = apart.permute(0, 3, 4, 1, 5, 2).flatten(4).flatten(2, 3)
    return beside[:, :, rows.cut : rows.cut + sizes[0], columns.cut : columns.cut + sizes[1]]


AXES = [
    (kernel, stride, padding, more)
    for kernel, stride, padding, more in itertools.product((1, 2, 3, 4, 5), (1, 2, 3), (0, 1, 2), (0, 1))
    if more < stride
]


def test_every_kernel_stride_and_padding_gives_what_torch_gives() -> None:
    torch.manual_seed(0)
    computed = 0
    for axis in AXES:
        other = (3, 2, 1, 1)
        x, weights = torch.randn(2, 3, 5, 4), torch.randn(3, 2, axis[0], other[0])
        how = dict(
            zip(("stride", "padding", "output_padding"), zip(axis[1:], other[1:], strict=True), strict=True)
        )
        found = by_phases(x, weights, (axis, other))
        if found is not None:
            computed += 1
            expected = functional.conv_transpose2d(x, weights, **how)
            torch.testing.assert_close(found, expected, msg=str(axis))

    assert computed >= 0.8 * len(AXES)


@pytest.mark.parametrize(
    ("axis", "taps", "cut"),
    [((4, 2, 1), 2, 1), ((2, 2, 0), 1, 0), ((3, 2, 1), 2, 0), ((3, 1, 1), 3, 0), ((5, 3, 1), 2, 1)],
)
def test_there_are_as_few_taps_as_can_be(axis: tuple[int, int, int], taps: int, cut: int) -> None:
    kernel, stride, padding = axis

    found = phased_axis(6, 5 * stride + kernel - 2 * padding, *axis)

    assert found is not None
    assert (found.taps, found.cut) == (taps, cut)
    assert found.taps == int(np.ceil(kernel / stride))


def test_what_is_read_is_never_skipped() -> None:
    assert phased_axis(read=5, given=2, kernel=2, stride=1, padding=2) is None
