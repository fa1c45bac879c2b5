"""Two networks are timed in turns, and slow ones fewer times."""

from __future__ import annotations

import numpy as np
import pytest

from tlp_tvm.tuning.network.turns import LEAST_TURNS, Runner, time_in_turns


@pytest.mark.parametrize(("seconds", "turns"), [(0.1, 9), (1.0, 6), (60.0, LEAST_TURNS)])
def test_slow_networks_have_fewer_turns(seconds: float, turns: int) -> None:
    now = 0.0
    order = []

    def network(name: str, takes: float) -> Runner:
        def timed() -> float:
            nonlocal now
            now += takes
            order.append(name)
            return takes

        return timed, lambda: [np.ones(2, np.float32)]

    made = [lambda: network("untuned", seconds), lambda: network("tuned", seconds / 2)]
    found = time_in_turns(made, 9, 1, clock=lambda: now)

    assert order == ["untuned", "tuned"] * turns
    assert (len(found.untuned), len(found.tuned)) == (turns, turns)
    assert (found.untuned_latency, found.speedup, found.difference) == (seconds, 2.0, 0.0)
