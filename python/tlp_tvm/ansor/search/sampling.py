"""Random programs of a task: the initial population of Ansor's search."""

from __future__ import annotations

import functools
import json
from typing import Any

from tlp_tvm.ansor.loading.locate import load_tvm

_BATCH = 64
"""Programs that TVM draws at a time until it has enough; it would draw 2,048 whatever `n` is."""

_FEWEST = 16
"""Programs to ask for at least: of a few, all may be invalid, which TVM calls an internal error."""


def sample_states(task: Any, n: int, seed: int = 0) -> list[Any]:
    """Draw random programs of a task, each with another sequence of primitives.

    The same seed gives the same programs. Neither NumPy's nor Python's random state is touched.

    Args:
        task: `auto_scheduler.SearchTask`.
        n: how many are wanted.
        seed: any integer.

    Returns:
        At least `n` states (`auto_scheduler.loop_state.StateObject`, bounds inferred), fewer only where the
        search space seems to hold no more of them.
    """
    states: dict[str, Any] = {}
    fruitless = 0
    for round_number in range(n):
        if len(states) >= n or fruitless == 2:
            break
        before = len(states)
        for state in drawn_states(task, max(n - before, _FEWEST), seed * n + round_number):
            states.setdefault(_record(task, state), state)
        fruitless = fruitless + 1 if len(states) == before else 0
    return list(states.values())


def written_steps(task: Any, state: Any) -> list[list[Any]]:
    """The steps of a state as TVM's own writer of records has them.

    Args:
        task: the state's `auto_scheduler.SearchTask`.
        state: State or StateObject.
    """
    steps: list[list[Any]] = json.loads(_record(task, state))[1][1]
    return steps


def _record(task: Any, state: Any) -> str:
    auto_scheduler = load_tvm().auto_scheduler
    return str(auto_scheduler._ffi_api.SerializeMeasureInput(auto_scheduler.MeasureInput(task, state)))


def drawn_states(task: Any, n: int, seed: int) -> list[Any]:
    """One draw of TVM's: random programs of a task, a few of them perhaps alike.

    Args:
        task: `auto_scheduler.SearchTask`.
        n: how many are wanted; TVM gives up earlier where it finds few that can run.
        seed: any integer.
    """
    auto_scheduler = load_tvm().auto_scheduler
    policy = auto_scheduler.SketchPolicy(
        task,
        _accept_all(),
        params={"sample_init_min_population": n, "evolutionary_search_population": min(n, _BATCH)},
        seed=seed % (2**31 - 2) + 1,  # TVM replaces a seed of 0 by a random one
        verbose=0,
    )
    return list(policy.sample_initial_population())


@functools.cache
def _accept_all() -> Any:
    """A cost model that likes all programs; TVM's RandomModel would advance NumPy's random state."""
    load_tvm()
    from tvm.auto_scheduler.cost_model.cost_model import PythonBasedModel

    class AcceptAll(PythonBasedModel):  # type: ignore[misc]
        def predict(self, task: Any, states: Any) -> list[float]:
            return [0.0] * len(states)

    return AcceptAll()
