"""The feature extraction published with TLP (ASPLOS '23), in plain Python.

Written from the description, with nothing of the project in it, so that the presets "paper-cpu" and
"paper-gpu" have something to be equal to. A step is a list as records hold it: its kind, then numbers, names
and lists of numbers.

    row = one-hot of the kind, then every parameter in record order: numbers raw, lists flattened in place,
          names as tokens; filled up with zeros to the full width, then cropped
    program = its rows; filled up with zero rows to the full length, then cropped: the tail is what goes
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

Step: TypeAlias = "list[str | int | list[int]]"


@dataclass(frozen=True)
class Published:
    """One of the two published layouts."""

    kinds: tuple[str, ...]
    """Kinds in one-hot order."""
    unroll: dict[int, int]
    """Token of the pragma `auto_unroll_max_step$N`, by N."""
    full: tuple[int, int]
    """Steps and columns that no program of the published dataset exceeds."""
    cropped: tuple[int, int]
    """Steps and columns that the model sees."""


CPU = Published(
    kinds=("CI", "RE", "AN", "RF", "CHW", "SP", "CR", "CA", "FU", "FSP", "PR"),
    unroll={16: 1, 0: 2, 512: 3, 64: 4},
    full=(54, 40),
    cropped=(25, 22),
)
GPU = Published(
    kinds=("AN", "CHR", "CHW", "CI", "CA", "FFSP", "SP", "FU", "RE", "PR", "FSP"),
    unroll={0: 1, 16: 2, 64: 3, 1024: 4, 512: 5},
    full=(69, 49),
    cropped=(40, 20),
)
CACHE_WRITE_SCOPES = {"local": 1, "shared": 2, "global": 3}
CACHE_READ_SCOPES = {"shared": 1}


class NotPublishedError(ValueError):
    """A program that the published extraction has no encoding for."""


def token(layout: Published, kind: str, name: str) -> int:
    """The number that stands for a name parameter of a step."""
    pragma, _, depth = name.partition("$")
    if kind == "PR" and pragma == "auto_unroll_max_step" and depth.isdigit() and int(depth) in layout.unroll:
        return layout.unroll[int(depth)]
    if kind == "CHW" and name in CACHE_WRITE_SCOPES:
        return CACHE_WRITE_SCOPES[name]
    if kind == "CHR" and name in CACHE_READ_SCOPES:
        return CACHE_READ_SCOPES[name]
    raise NotPublishedError(f"{kind} has no token for {name!r}")


def row(layout: Published, step: Step) -> list[int]:
    """One step as the columns it fills, neither padded nor cropped."""
    kind = step[0]
    if kind not in layout.kinds:
        raise NotPublishedError(f"no step kind {kind!r}")
    columns = [int(kind == known) for known in layout.kinds]
    for parameter in step[1:]:
        if isinstance(parameter, list):
            columns.extend(parameter)
        elif isinstance(parameter, str):
            columns.append(token(layout, str(kind), parameter))
        else:
            columns.append(parameter)
    return columns


def embed(layout: Published, steps: list[Step], shape: tuple[int, int] | None = None) -> np.ndarray:
    """One program.

    Args:
        layout: `CPU` or `GPU`.
        steps: the steps of a record.
        shape: (L, E) to crop to; the published crop when None.

    Returns:
        float32 of shape (L, E).

    Raises:
        NotPublishedError: a kind, a token or a size that the published dataset does not have.
    """
    length, width = layout.cropped if shape is None else shape
    rows = [row(layout, step) for step in steps]
    if len(rows) > layout.full[0] or any(len(columns) > layout.full[1] for columns in rows):
        raise NotPublishedError(f"larger than {layout.full}")
    full = np.zeros(layout.full, dtype=np.float64)
    for i, columns in enumerate(rows):
        full[i, : len(columns)] = columns
    return full[:length, :width].astype(np.float32)
