"""Behind each cell of the scoreboard: commits, programs, where cores were, labels inside the network."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from networks_page import (
    Processors,
    core_trip,
    in_order,
    over_labels,
    ratio_of_lowest,
    stage_words,
    times,
    us,
)

_NEAR = 0.1
"""How far an operator may be from its label to count as near."""

_HEADS = (
    *("network", "tuned with", "commit", "timed at", "programs", "cores, us", "by the lowest turns"),
    *("operators over labels", "in the median", "within 10%"),
)


def page(kept: Processors, titles: Mapping[str, str]) -> list[str]:
    """A table for each processor, with a row for each stage that is kept."""
    if not (processors := in_order(kept)):
        return ["", "Not measured yet.", ""]
    text = [""]
    for cpu in processors:
        text += [f"### {cpu}, row by row", "", f"| {' | '.join(_HEADS)} |", "|---" * len(_HEADS) + "|"]
        for name, title in titles.items():
            for stage, found in kept[cpu].get(name, {}).items():
                text.append(f"| {' | '.join([title, stage_words(stage), *_cells(found)])} |")
        text.append("")
    return text


def _cells(stage: Mapping[str, Any]) -> list[str]:
    """What one row says, but for its name."""
    trip, together = core_trip(stage), over_labels(stage)
    return [
        *(stage["commit"], stage.get("timed_at", stage["commit"]), str(stage["programs"])),
        *("-" if trip is None else us(trip), times(ratio_of_lowest(stage))),
        *("-" if together is None else f"{together:.2f}", *_one_by_one(stage.get("inside_over_label"))),
    ]


def _one_by_one(ratios: Sequence[float] | None) -> tuple[str, str]:
    """What each tuned operator takes inside the network over its label: the median, and how many are near."""
    if not ratios:
        return "-", "-"
    near = sum(abs(each - 1) <= _NEAR for each in ratios)
    return f"{statistics.median(ratios):.2f}", f"{near} of {len(ratios)}"
