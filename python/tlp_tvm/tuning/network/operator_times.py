"""Where the time of a tuned network goes: each of its operators as it ran inside, beside its label."""

from __future__ import annotations

import collections
import statistics
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

RUNS = 60
"""Of the whole network; an operator's time is the median over them.

On a virtual machine whose speed varies by a fifth, fifteen leave an error of 6%, where 2% decide."""

LIMIT_S = 2.0
"""After which a network is not run again: what is slow is known well enough by fewer runs."""


@dataclass(frozen=True)
class OperatorTime:
    """All operators of a network that are the same.

    Attributes:
        name: TVM's, of the fused operator.
        count: how often it runs.
        inside: seconds of one run inside the network, the mean over its places.
        task: workload key of its task; empty if it is of none.
        label: seconds that its program was measured at; None without a program.
    """

    name: str
    count: int
    inside: float
    task: str
    label: float | None

    @property
    def seconds(self) -> float:
        """Of all its runs."""
        return self.inside * self.count


@dataclass(frozen=True)
class Ran:
    """An operator of a profile.

    Attributes:
        name: TVM's, of the function that ran.
        count: how often it runs.
        seconds: of one run, the mean over its places.
    """

    name: str
    count: int
    seconds: float


class OperatorRuns:
    """Gathers the operators of a network over its runs, which make the same calls."""

    def __init__(self) -> None:
        """Gather nothing yet."""
        self._seconds: dict[str, list[float]] = collections.defaultdict(list)
        self._counts: dict[str, int] = {}

    def add(self, calls: Sequence[tuple[str, float]]) -> None:
        """Take in a run.

        Args:
            calls: name and seconds of each operator that ran.
        """
        run: dict[str, float] = collections.defaultdict(float)
        for name, seconds in calls:
            run[name] += seconds
        self._counts = collections.Counter(name for name, _ in calls)
        for name, total in run.items():
            self._seconds[name].append(total)

    def operators(self) -> list[Ran]:
        """Each operator once."""
        return [
            Ran(name, self._counts[name], statistics.median(totals) / self._counts[name])
            for name, totals in self._seconds.items()
        ]


def operator_times(
    ran: Sequence[Ran], tasks: Mapping[str, str], labels: Mapping[str, float]
) -> list[OperatorTime]:
    """Put a profile beside what was measured.

    Args:
        ran: the operators of a profile.
        tasks: name of a function to the workload key of its task.
        labels: workload key to the latency of the program taken, seconds.

    Returns:
        Heaviest first.
    """
    times = [
        OperatorTime(each.name, each.count, each.seconds, key, labels.get(key))
        for each in ran
        for key in [tasks.get(each.name, "")]
    ]
    return sorted(times, key=lambda each: each.seconds, reverse=True)


def explained(times: Sequence[OperatorTime], whole: float) -> dict[str, Any]:
    """The estimate against what was measured: what each step between them is.

    Args:
        times: of a network.
        whole: its latency, seconds.

    Returns:
        Seconds by name: "labels", the sum over operators with a label; "inside", what these take more inside
        the network; "others", operators without a label; "between", what is left of the whole.
    """
    labelled = [(each.label, each) for each in times if each.label is not None]
    labels = sum(label * each.count for label, each in labelled)
    inside = sum(each.seconds for _, each in labelled)
    everything = sum(each.seconds for each in times)
    return {
        "labels": labels,
        "inside": inside - labels,
        "others": everything - inside,
        "between": whole - everything,
    }
