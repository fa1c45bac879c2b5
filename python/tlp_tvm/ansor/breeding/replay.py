"""Bred programs -> TVM's states."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlp_tvm import _core
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.reading.states import serialise, steps
from tlp_tvm.breeding.breeder import Replayer
from tlp_tvm.errors import last_line_of


class StateReplayer(Replayer):
    """Replays programs of one task."""

    def __init__(self, task: Any) -> None:
        """Prepare.

        Args:
            task: `auto_scheduler.SearchTask`.
        """
        super().__init__()
        self._task = task
        line = serialise([task.compute_dag.init_state])[0]
        # A record of a task that exists only to be serialised: TVM reads nothing of it but the steps.
        self._before, self._after = line[: line.index("[[], ") + 5], line[line.index(']], "r"') :]

    def as_bred(self, herd: _core.Herd, i: int) -> Any:
        """A program's steps as TVM reads them: enough to lower it, and TVM may still refuse them.

        Args:
            herd: bred programs of the task.
            i: which.

        Returns:
            A `StateObject` without stages.
        """
        return self._loaded(herd.text(i))

    def _loaded(self, text: str) -> Any:
        line = self._before + text + self._after
        return load_tvm().auto_scheduler.measure_record.load_record_from_string(line)[0].state

    def all_as_bred(self, herd: _core.Herd, places: Sequence[int]) -> list[tuple[int, Any]]:
        """Some programs, each with its place.

        Args:
            herd: bred programs of the task.
            places: which.
        """
        return [(i, self.as_bred(herd, i)) for i in places]

    def of_steps(self, text: str) -> Any | None:
        """TVM's state of a program, bounds inferred.

        Args:
            text: its steps, as records have them.

        Returns:
            The `StateObject`; None, counted, where TVM refuses it.
        """
        tvm = load_tvm()
        try:
            return self._task.compute_dag.infer_bound_from_state(self._loaded(text)).state_object
        except (tvm.TVMError, ValueError, IndexError) as error:
            self.counts.refuse(last_line_of(error))
            return None

    def program(self, herd: _core.Herd, i: int) -> Any | None:
        """TVM's state of a program, bounds inferred.

        Args:
            herd: bred programs of the task.
            i: which.

        Returns:
            The `StateObject`, whose steps are those bred; None, counted, where TVM refuses them.
        """
        state = self.of_steps(herd.text(i))
        if state is None:
            return None
        if steps([state])[0] != herd.steps(i):
            self.counts.refuse("the steps after the replay are not those bred")
            return None
        self.counts.replayed += 1
        return state
