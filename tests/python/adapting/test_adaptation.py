"""Learning from a search's own measurements."""

from __future__ import annotations

import threading

import numpy as np
import pytest
from numpy.typing import NDArray

from tlp_tvm.adapting import adaptation, process
from tlp_tvm.adapting.adaptation import MINIMUM, TaskAdapter

N = 60


def programs(seed: int = 0) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.float64]]:
    """Programs whose speed follows two entries of the embedding, and scores that say a little about it."""
    rng = np.random.default_rng(seed)
    x = np.zeros((N, 3, 4), np.float32)
    x[:, 0, :3] = rng.normal(size=(N, 3))
    x[:, 1, 0] = 1.0
    speed = x[:, 0, 0] + 0.5 * x[:, 0, 1]
    scores = (0.5 * speed + rng.normal(size=N)).astype(np.float32)
    return x, scores, np.exp(-speed.astype(np.float64)) * 1e-3


def agreement(a: NDArray[np.float32], b: NDArray[np.float64]) -> float:
    return float(np.corrcoef(a, b)[0, 1])


def test_measurements_teach_what_the_scores_do_not_say() -> None:
    x, scores, latencies = programs()
    adapter = TaskAdapter()
    adapter.learn(x[:40], scores[:40], latencies[:40])

    expected = adapter.speeds(x[40:], scores[40:])

    truth = latencies.min() / latencies[40:]
    assert agreement(expected, truth) > 0.7 > agreement(scores[40:], truth) + 0.1
    assert expected.dtype == np.float32


def test_speeds_are_relative_to_the_fastest_measured_program() -> None:
    x, scores, latencies = programs()
    adapter = TaskAdapter()
    adapter.learn(x, scores, latencies)
    expected = adapter.speeds(x, scores)
    np.testing.assert_allclose(expected, (latencies.min() / latencies - 1) / adaptation.UNIT, atol=1.0)
    assert int(np.argmax(expected)) in np.argsort(latencies)[:3]


def test_far_from_all_measured_programs_the_score_decides() -> None:
    # Only good scores were measured, and among them the score says nothing: low ones are still not trusted.
    x, _, latencies = programs()
    adapter = TaskAdapter()
    adapter.learn(x[:30], np.full(30, 5.0, np.float32), latencies[:30])
    far = np.full((2, 3, 4), 50.0, np.float32)
    good, bad = adapter.speeds(far, np.array([5.0, 0.0], np.float32))
    assert good - bad == pytest.approx(5 * process.SLOPE, abs=1e-4)


def test_a_failure_teaches_too() -> None:
    x, scores, latencies = programs()
    latencies[:10] = np.inf
    adapter = TaskAdapter()
    adapter.learn(x[:40], scores[:40], latencies[:40])
    of_failed = adapter.speeds(x[:10], scores[:10])
    assert of_failed.mean() < adapter.speeds(x[10:40], scores[10:40]).mean() - 1


@pytest.mark.parametrize("ran", [0, MINIMUM - 1, MINIMUM])
def test_it_is_ready_when_enough_programs_ran(ran: int) -> None:
    x, scores, latencies = programs()
    latencies[ran:] = np.inf
    adapter = TaskAdapter()
    adapter.learn(x[:20], scores[:20], latencies[:20])
    assert adapter.ready == (ran == MINIMUM)


def test_learning_in_parts_is_learning_at_once_and_a_speed_does_not_depend_on_its_batch() -> None:
    x, scores, latencies = programs()
    whole, parts = TaskAdapter(), TaskAdapter()
    whole.learn(x[:40], scores[:40], latencies[:40])
    for begin in range(0, 40, 8):
        part = slice(begin, begin + 8)
        parts.learn(x[part], scores[part], latencies[part])
        parts.speeds(x[:2], scores[:2]) if parts.ready else None
    expected = whole.speeds(x[40:], scores[40:])
    np.testing.assert_allclose(parts.speeds(x[40:], scores[40:]), expected, atol=1e-4)
    np.testing.assert_allclose(whole.speeds(x[50:51], scores[50:51]), expected[10:11], atol=1e-4)


def test_identical_programs_do_no_harm() -> None:
    x, scores, latencies = programs()
    same = np.repeat(x[:1], 8, axis=0)
    adapter = TaskAdapter()
    adapter.learn(same, scores[:8], latencies[:8])
    assert np.isfinite(adapter.speeds(x, scores)).all()


def test_memory_is_bounded_and_keeps_the_fastest(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(adaptation, "MOST", 16)
    x, scores, latencies = programs()
    adapter = TaskAdapter()
    for i in range(N):
        adapter.learn(x[i : i + 1], scores[i : i + 1], latencies[i : i + 1])
    speeds = -np.log(latencies)
    kept = adapter._speeds
    assert len(kept) == 16
    assert set(np.sort(speeds)[-8:]) <= set(kept)
    assert speeds[-1] in kept


def test_threads_may_ask_while_one_teaches() -> None:
    x, scores, latencies = programs()
    adapter = TaskAdapter()
    adapter.learn(x[:10], scores[:10], latencies[:10])
    failures: list[BaseException] = []

    def ask() -> None:
        try:
            for _ in range(50):
                assert np.isfinite(adapter.speeds(x, scores)).all()
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=ask) for _ in range(3)]
    for thread in threads:
        thread.start()
    for i in range(10, N):
        adapter.learn(x[i : i + 1], scores[i : i + 1], latencies[i : i + 1])
    for thread in threads:
        thread.join()
    assert failures == []
