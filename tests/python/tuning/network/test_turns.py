"""Two networks are timed in turns, and slow ones fewer times."""

from __future__ import annotations

import numpy as np
import pytest

from tlp_tvm.tuning.network import turns as turns_module
from tlp_tvm.tuning.network.turns import FAR, LEAST_TURNS, Runner, seconds_of, time_in_turns


@pytest.mark.parametrize(
    ("seconds", "ratio", "turns"),
    [
        (0.1, 2.0, 9),
        (1.0, 2.0, 6),
        (60.0, 2.0, LEAST_TURNS),
        (60.0, FAR + 1, 1),
        (60.0, 1 / (FAR + 1), 1),
        (1.0, FAR + 1, 7),
    ],
)
def test_slow_networks_have_fewer_turns(seconds: float, ratio: float, turns: int) -> None:
    now = 0.0
    order = []

    def network(name: str, takes: float) -> Runner:
        def timed() -> float:
            nonlocal now
            now += takes
            order.append(name)
            return takes

        return timed, lambda: [np.ones(2, np.float32)]

    made = [lambda: network("untuned", seconds), lambda: network("tuned", seconds / ratio)]
    found = time_in_turns(made, 9, 1, clock=lambda: now)

    assert order == ["untuned", "tuned"] * turns
    assert (len(found.untuned), len(found.tuned)) == (turns, turns)
    assert (found.untuned_latency, found.speedup, found.difference) == (seconds, pytest.approx(ratio), 0.0)


def test_a_long_run_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def timed() -> float:
        ran.append("timed")
        return 0.5

    assert seconds_of(lambda: ran.append("run"), timed) == 0.5
    monkeypatch.setattr(turns_module, "_LONG_RUN_S", 0.0)
    assert 0 < seconds_of(lambda: ran.append("run"), timed) < 0.5
    assert ran == ["run", "timed", "run"]
