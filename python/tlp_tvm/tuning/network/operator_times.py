"""Where the time of a tuned network goes: each of its operators as it ran inside, beside its label."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


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
