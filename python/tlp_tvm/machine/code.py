"""Which code runs: a digest over the package, as a version stays the same between commits."""

from __future__ import annotations

import functools
import hashlib
from collections.abc import Sequence
from pathlib import Path

from tlp_tvm import _core

_SOURCES = Path(__file__).parents[1]


TRAINING_ROOMS = ("dataset/reading", "model", "training")
"""What makes a network of data; the digest of a layout stands for the features."""

FIGURE_ROOMS = ("adapting", "dataset", "evaluation", "metrics", "model", "training")
"""What makes the figures of an evaluation of data."""


@functools.cache
def code_digest() -> str:
    """16 hexadecimal characters over the package's sources and its native extension."""
    package = Path(_core.__file__).parent
    return _digest([*sorted(_SOURCES.rglob("*.py")), *sorted(package.glob("_core*.so"))])


@functools.cache
def rooms_digest(rooms: tuple[str, ...]) -> str:
    """The same over some folders of the package, without the extension.

    Args:
        rooms: paths inside the package, such as "dataset/reading".
    """
    return _digest([file for room in rooms for file in sorted((_SOURCES / room).rglob("*.py"))])


def training_key() -> list[str]:
    """What a finished training depends on beside data and settings: our code, and torch's version."""
    import torch

    return [rooms_digest(TRAINING_ROOMS), torch.__version__]


def _digest(files: Sequence[Path]) -> str:
    digest = hashlib.sha256()
    for file in files:
        digest.update(file.name.encode() + b"\0" + hashlib.sha256(file.read_bytes()).digest())
    return digest.hexdigest()[:16]
