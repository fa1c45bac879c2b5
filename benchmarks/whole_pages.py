"""What the tables of whole networks' searches have in common, under either framework."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
from commits import ROOT
from marked_pages import put

HEADS = ("model", "seconds of all", "latency, ms", "matched", "sooner", "programs' sum", "network, in turns")

Groups = Sequence[Mapping[str, Any]]
"""What is kept of a network, by seed."""


def mean_of(ratios: Sequence[float]) -> str:
    """Geometric mean, and the range of several."""
    mean = f"{np.exp(np.mean(np.log(ratios))):.2f}"
    return mean if len(ratios) == 1 else f"{mean} ({min(ratios):.2f} to {max(ratios):.2f})"


def write_tables(
    mark: str,
    kept: Mapping[str, Mapping[str, Any]],
    size: Callable[[Groups], str],
    rows: Callable[[Groups], Sequence[str]],
) -> None:
    """Rewrite the tables of docs/search.md.

    Args:
        mark: where.
        kept: network -> seed -> what is kept.
        size: in words, of a network's searches.
        rows: of a network's table, below its heads.
    """
    lines = []
    for name, found in kept.items():
        groups = [found[seed] for seed in sorted(found)]
        said = sorted({f"{group['cpu']}, commit {group['commit']}" for group in groups})
        seeds = f"{len(groups)} {'seed' if len(groups) == 1 else 'seeds'}"
        lines += [f"**{name}**: {size(groups)} programs a search, {seeds}; {'; '.join(said)}.", ""]
        lines += [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|", *rows(groups), ""]
    put(ROOT / "docs" / "search.md", mark, "\n".join(lines))
