"""Hardware that programs are measured on and scored for."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Platform:
    """A column of labels and a head of a model."""

    name: str
    target: str
    """TVM's target string; it implies the number of threads."""
