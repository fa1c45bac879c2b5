"""Bred programs -> TVM's states: the only place where TVM works on what was bred."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

from tlp_tvm import _core
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.reading.states import serialise, steps


@dataclass
class Replays:
    """What became of programs that TVM was to replay.

    Attributes:
        replayed: that TVM made the same state of.
        failed: the first sentence of TVM's errors, with how many programs each refused.
    """

    replayed: int = 0
    failed: dict[str, int] = field(default_factory=dict)

    def refuse(self, reason: str) -> None:
        """Count a program that is no state."""
        self.failed[reason] = self.failed.get(reason, 0) + 1


class Replayer:
    """Replays programs of one task."""

    def __init__(self, task: Any) -> None:
        """Prepare.

        Args:
            task: `auto_scheduler.SearchTask`.
        """
        self._task = task
        line = serialise([task.compute_dag.init_state])[0]
        # A record of a task that exists only to be serialised: TVM reads nothing of it but the steps.
        self._before, self._after = line[: line.index("[[], ") + 5], line[line.index(']], "r"') :]
        self.counts = Replays()

    def state(self, herd: _core.Herd, i: int) -> Any | None:
        """TVM's state of a program, bounds inferred.

        Args:
            herd: bred programs of the task.
            i: which.

        Returns:
            The `StateObject`, whose steps are those bred; None, counted, where TVM refuses them.
        """
        tvm = load_tvm()
        line = self._before + herd.text(i) + self._after
        try:
            measured, _ = tvm.auto_scheduler.measure_record.load_record_from_string(line)
            state = self._task.compute_dag.infer_bound_from_state(measured.state).state_object
        except (tvm.TVMError, ValueError, IndexError) as error:
            self.counts.refuse(str(error).strip().splitlines()[-1])
            return None
        if steps([state])[0] != herd.steps(i):
            self.counts.refuse("the steps after the replay are not those bred")
            return None
        self.counts.replayed += 1
        return state

    def states(self, herd: _core.Herd, places: Iterable[int], count: int) -> list[tuple[int, Any]]:
        """The first programs that TVM replays.

        Args:
            herd: bred programs of the task.
            places: which, the most wanted first.
            count: how many are wanted.

        Returns:
            Places with states; fewer where TVM refuses more than there are to replace them.
        """
        found: list[tuple[int, Any]] = []
        for i in places:
            if len(found) >= count:
                break
            if (state := self.state(herd, i)) is not None:
                found.append((i, state))
        return found
