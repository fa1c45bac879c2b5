"""Behind each cell of the scoreboard: commits, programs, where cores were, labels inside the network."""

from __future__ import annotations

import statistics
from collections.abc import Mapping, Sequence
from typing import Any

from networks_page import Processors, in_order, lowest_turns, stage_words, times

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
    trips = stage["ours"].get("round_trips")
    return [
        *(stage["commit"], stage.get("timed_at", stage["commit"]), str(stage["programs"])),
        f"{statistics.median(trips) * 1e6:.2f}" if trips else "-",
        times(lowest_turns(stage)),
        *_inside(stage.get("explained") or {}, stage.get("inside_over_label") or []),
    ]


def _inside(explained: Mapping[str, float], single: Sequence[float]) -> list[str]:
    """How well labels foretell tuned operators inside the network: by their sum, and one by one."""
    labels = explained.get("labels")
    together = f"{1 + explained['inside'] / labels:.2f}" if labels else "-"
    if not single:
        return [together, "-", "-"]
    near = sum(abs(each - 1) <= _NEAR for each in single)
    return [together, f"{statistics.median(single):.2f}", f"{near} of {len(single)}"]
