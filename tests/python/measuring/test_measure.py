"""Children that measure: programs run, bad ones cost only themselves, and nobody is left behind."""

from __future__ import annotations

import dataclasses
import functools
import json
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring.pools import StatePool
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.machine.loop_threads import SPINS
from tlp_tvm.measuring import child
from tlp_tvm.measuring import pool as measure
from tlp_tvm.measuring.child import Outcome, Timing
from tlp_tvm.measuring.pool import MeasureSettings, reason_of
from tlp_tvm.measuring.yardstick import Yardsticks

TARGET = "llvm -num-cores=1"
QUICK = MeasureSettings(children=1, timing=Timing(repeat=2, min_repeat_ms=1))
DEADLINE_S = 60


@functools.cache
def programs(operator: str, count: int = 3) -> list[Any]:
    task = operator_task(operator, TARGET)
    inputs = load_tvm().auto_scheduler.MeasureInput
    return [inputs(task, state) for state in sample_states(task, 16)[:count]]


@pytest.fixture(scope="module")
def pool() -> Iterator[StatePool]:
    with StatePool(QUICK) as pool:
        yield pool


def child_ids(pool: StatePool) -> list[int]:
    return [child._proc.pid for child in pool._children]


def test_programs_are_timed_by_children_that_stay(pool: StatePool) -> None:
    built = pool.build(programs("softmax"))
    ids = child_ids(pool)
    outcomes = []
    for (number, _), program in zip(built, programs("softmax"), strict=True):
        pool.best.clear()  # of which a slow one would have one timing
        outcomes.append(pool.run(number, program))

    assert [outcome.error for _, outcome in built] == [0, 0, 0]
    for outcome in outcomes:
        assert outcome.error == 0
        assert len(outcome.costs) == QUICK.timing.repeat
        assert all(0 < cost < 1 for cost in outcome.costs)
    pool.build(programs("softmax"))
    assert child_ids(pool) == ids


def test_what_is_spent_follows_no_wall_clock(shifting_clock: Callable[[], float]) -> None:
    hangs = dataclasses.replace(QUICK, run_timeout_s=0)
    with StatePool(hangs) as pool:
        ((number, _),) = pool.build(programs("softmax", 1))
        outcome = pool.run(number, programs("softmax", 1)[0])

    assert outcome.error == measure.RUN_TIMEOUT
    assert 0 <= outcome.seconds <= pool.spent["run"] <= shifting_clock()
    assert 0 < pool.spent["compile"] == pool.compile_s / hangs.children < shifting_clock()


def test_a_program_that_cannot_be_built_costs_only_itself(pool: StatePool) -> None:
    # This TVM cannot lay out the weights of a dense layer anew; see layout_rewrite.py.
    task = operator_task("dense", TARGET)
    good = programs("softmax")[:1]
    bad = load_tvm().auto_scheduler.MeasureInput(task, sample_states(task, 16)[0])

    built = pool.build([bad, *good])

    assert [outcome.error for _, outcome in built] == [child.INSTANTIATION, 0]
    assert reason_of(built[0][1]) == (
        "schedule cannot be applied: InternalError: Check failed: (name_it != name_to_arg.end()) is false:"
    )
    assert pool.run(built[1][0], good[0]).error == 0


def test_a_hopeless_program_is_timed_once() -> None:
    (program,) = programs("softmax", 1)
    with StatePool(dataclasses.replace(QUICK, hopeless=3.0)) as pool:
        costs = []
        for best in (np.inf, 1.0, 1e-9):
            pool.best[str(program.task.workload_key)] = best
            ((number, _),) = pool.build([program])
            costs.append(pool.run(number, program).costs)

    assert [len(each) for each in costs] == [QUICK.timing.repeat, QUICK.timing.repeat, 1]


def test_a_program_that_is_slow_for_its_task_has_one_timing() -> None:
    (program,) = programs("softmax", 1)
    with StatePool(QUICK) as pool:
        costs = []
        for best in (1.0, 1e-9):
            pool.best[str(program.task.workload_key)] = best
            ((number, _),) = pool.build([program])
            costs.append(pool.run(number, program).costs)

    assert [len(each) for each in costs] == [QUICK.timing.repeat, 1]


def test_threads_of_a_child_that_waits_leave_the_cores_to_the_others(pool: StatePool) -> None:
    (waiting,) = pool._children
    waiting.send(os.getenv, (SPINS,))

    assert 0 < int(waiting.recv()) <= 20_000  # TVM's own are 300,000: a tenth of a second


@pytest.fixture
def one_program(monkeypatch: pytest.MonkeyPatch) -> dict[int, str]:
    monkeypatch.setattr(child, "_yardsticks", Yardsticks())
    return {7: "program"}


def run_here(programs: dict[int, str], again: bool, *seconds: float) -> Outcome:
    """`run_kept` in this process, of a program that takes so many seconds, one after the other."""
    times = iter(seconds)
    outcome = child.run_kept(programs, 7, lambda *_: (next(times),), Timing(), "task", again)
    assert outcome is not None
    return outcome


def test_a_program_that_a_slow_machine_timed_is_kept_to_be_timed_again(one_program: dict[int, str]) -> None:
    child._yardsticks.note("task", (0.010,), lambda: 0.015)

    assert run_here(one_program, True, 0.014).doubtful
    assert one_program == {7: "program"}
    assert not run_here(one_program, False, 0.013).doubtful
    assert one_program == {}


def test_a_program_that_a_steady_machine_timed_is_forgotten(one_program: dict[int, str]) -> None:
    child._yardsticks.note("task", (0.010,), lambda: 0.0101)

    assert not run_here(one_program, True, 0.014).doubtful
    assert one_program == {}


def test_a_program_that_is_slow_to_run_is_timed_once(one_program: dict[int, str]) -> None:
    child._yardsticks.note("task", (0.2,), lambda: 0.4)

    assert not run_here(one_program, True, 0.21).doubtful


def test_how_programs_are_measured_is_json_for_any_reader() -> None:
    json.dumps(dataclasses.asdict(MeasureSettings()), allow_nan=False)


class Scripted(StatePool):
    """Programs with given latencies, one for each time that they run; doubtful but for the last."""

    def __init__(self, *latencies: list[float]) -> None:
        super().__init__(dataclasses.replace(QUICK, again=2))
        self.latencies = list(latencies)

    def run(self, number: int, measure_input: Any, again: bool = False) -> Outcome:
        latency = self.latencies[number].pop(0)
        error = child.RUNTIME if latency < 0 else 0
        doubtful = again and bool(self.latencies[number])
        return Outcome(() if error else (latency,), error, "gone" if error else "", 1.0, doubtful)


def test_doubtful_programs_are_timed_again_after_the_others_and_their_fastest_counts() -> None:
    pool = Scripted([2.0, 1.0, 3.0], [5.0], [4.0, 6.0], [7.0, -1.0])
    built = [(number, Outcome((), 0, "", 0.0)) for number in range(4)]
    built.append((4, Outcome((), child.COMPILE, "wrong", 0.5)))

    found = list(pool.run_all(built, [None] * 5))

    assert [(i, outcome.costs, outcome.error) for i, outcome in found] == [
        (1, (5.0,), 0),
        (4, (), child.COMPILE),
        (2, (4.0,), 0),
        (3, (7.0,), 0),  # that it failed the second time takes nothing off the first
        (0, (1.0,), 0),
    ]
    assert dict(found)[0].seconds == 3.0
    assert not any(outcome.doubtful for _, outcome in found)


def test_tvm_has_its_results_in_order_however_they_were_settled() -> None:
    pool = Scripted([2.0, 1.0], [5.0], [])
    told: list[tuple[Any, Any, str]] = []
    pool._on_result = lambda *told_of: told.append(told_of)
    builds = [SimpleNamespace(error_no=0, error_msg="", filename=str(i), time_cost=0.5) for i in range(2)]
    builds.append(SimpleNamespace(error_no=child.COMPILE, error_msg="wrong", filename="", time_cost=0.5))

    results = pool._run_for_tvm(["first", "second", "third"], builds)

    assert [float(result.costs[0]) for result in results] == [1.0, 5.0, measure.FAILED_COST]
    assert [(program, reason) for program, _, reason in told] == [
        ("second", ""),
        ("third", "does not compile: wrong"),
        ("first", ""),
    ]


def test_a_child_that_is_killed_is_replaced_and_compiles_again(pool: StatePool) -> None:
    built = pool.build(programs("softmax")[:1])
    (before,) = child_ids(pool)
    os.kill(before, signal.SIGKILL)

    first = pool.run(built[0][0], programs("softmax")[0])
    again = pool.build(programs("softmax")[:1])
    second = pool.run(again[0][0], programs("softmax")[0])

    assert first.error == 0
    assert second.error == 0
    assert child_ids(pool) != [before]


def test_a_program_whose_child_is_new_is_compiled_there(pool: StatePool) -> None:
    built = pool.build(programs("softmax")[:1])
    pool._children[0].kill()

    assert pool.run(built[0][0], programs("softmax")[0]).error == 0


@pytest.mark.parametrize(
    ("function", "arguments", "reason"),
    [
        (time.sleep, (30,), "runs too long: over 1 s"),
        (os._exit, (3,), "does not run: the child ended"),
        (os.abort, (), "does not run: the child ended"),
        (int, ("x",), "does not run: ValueError: invalid literal for int() with base 10: 'x'"),
    ],
)
def test_a_child_that_hangs_crashes_or_fails_costs_one_program(
    pool: StatePool, function: Any, arguments: tuple[Any, ...], reason: str
) -> None:
    child = pool._children[0]

    outcome = measure.ask(child, measure.RUN_TIMEOUT, 1, function, *arguments)

    assert outcome is not None
    assert reason_of(outcome) == reason
    (number, built), *_ = pool.build(programs("softmax")[:1])
    assert built.error == 0
    assert pool.run(number, programs("softmax")[0]).error == 0


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGSTOP])
def test_what_others_do_to_a_child_is_no_failure_of_its_program(
    pool: StatePool, tmp_path: Path, number: int
) -> None:
    child, marker = pool._children[0], str(tmp_path / "met")

    def meet_a_signal() -> Outcome:  # sent as a whole, being inside another
        if not Path(marker).exists():
            Path(marker).touch()
            os.kill(os.getpid(), number)
            time.sleep(2)
        return Outcome((1.0,), 0, "", 1.0)

    measure.ask(child, measure.RUN_TIMEOUT, 60, int, 1)
    stopped = child._proc.pid
    if number == signal.SIGSTOP:
        threading.Timer(4, os.kill, (stopped, signal.SIGCONT)).start()

    outcome = measure.ask(child, measure.RUN_TIMEOUT, 1, meet_a_signal)

    assert outcome is not None
    assert outcome.error == 0
    assert child._proc.pid != stopped


def test_a_child_that_is_killed_while_it_starts_is_started_again(pool: StatePool) -> None:
    child, killed = pool._children[0], []
    measure.end(child)

    def kill() -> None:
        while len(killed) < 2:
            process = child._proc
            if process is not None and process.pid not in killed:
                killed.append(process.pid)
                process.send_signal(signal.SIGKILL)

    threading.Thread(target=kill).start()
    ((number, built),) = pool.build(programs("softmax", 1))

    assert built.error == 0
    assert pool.run(number, programs("softmax", 1)[0]).error == 0
    assert child._proc.pid not in killed
    assert len(killed) == 2


def test_tvm_measures_through_the_children_while_the_pool_is_open(tmp_path: Path) -> None:
    tvm = load_tvm()
    auto_scheduler = tvm.auto_scheduler
    told: list[tuple[Any, Any, str]] = []
    task = programs("softmax")[0].task
    log = tmp_path / "log.json"
    measurer = auto_scheduler.measure.ProgramMeasurer(
        auto_scheduler.LocalBuilder(),
        auto_scheduler.LocalRunner(),
        [auto_scheduler.RecordToFile(str(log))],
        0,
    )
    policy = auto_scheduler.SketchPolicy(
        task, params={"evolutionary_search_population": 32, "sample_init_min_population": 8}, verbose=0
    )
    once = dataclasses.replace(QUICK, again=0)  # so that all are told in order
    with StatePool(once, on_result=lambda *told_of: told.append(told_of)) as pool:
        inputs, results = policy.continue_search_one_round(3, measurer)

    assert len(inputs) == len(results) == len(told) == 3
    assert {str(told_of[0].task.workload_key) for told_of in told} == {str(task.workload_key)}
    assert [float(told_of[1].costs[0]) for told_of in told] == [float(result.costs[0]) for result in results]
    assert len(log.read_text().splitlines()) == 3
    assert pool.seconds > 0
    # TVM's own function is back: ours would need an open pool.
    assert len(tvm.get_global_func("auto_scheduler.local_builder.build")([], 1, 1, "default", 0)) == 0


def test_what_check_raises_ends_the_measuring() -> None:
    class Enough(Exception):
        pass

    def check() -> None:
        raise Enough

    with pytest.raises(Enough), StatePool(QUICK, check=check) as pool:
        pool.build(programs("softmax"))


def test_reasons_are_words() -> None:
    assert reason_of(Outcome((0.1,), 0, "", 1.0)) == ""
    assert reason_of(Outcome((), measure.BUILD_TIMEOUT, "over 20 s", 20.0)) == "compiles too long: over 20 s"
    assert reason_of(Outcome((), child.COMPILE, "", 1.0)) == "does not compile"
    assert reason_of(Outcome((), 5, "wrong", 1.0)) == "fails with TVM's error 5: wrong"


def test_children_end_with_a_parent_that_is_killed() -> None:
    code = """
import sys, time
from tlp_tvm.ansor.measuring.pools import StatePool
from tlp_tvm.measuring.pool import MeasureSettings, ask
with StatePool(MeasureSettings(children=1)) as pool:
    child = pool._children[0]
    ask(child, 7, 60, int, 1)
    child.send(time.sleep, (600,))
    print(child._proc.pid, flush=True)
    time.sleep(600)
"""
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True) as parent:
        assert parent.stdout is not None
        child = int(parent.stdout.readline())
        assert Path(f"/proc/{child}").exists()
        parent.kill()
        # The pipe closes only when the child, which would have inherited it, is gone or has its own streams.
        assert parent.stdout.read() == ""
    began = time.monotonic()
    while Path(f"/proc/{child}").exists() and time.monotonic() - began < DEADLINE_S:
        time.sleep(0.1)
    assert not Path(f"/proc/{child}").exists()


@pytest.mark.skipif(not child.realtime_allowed(), reason="no right to a real-time priority here")
def test_a_realtime_priority_is_all_threads_and_given_back_and_paused_from() -> None:
    before = os.sched_getscheduler(0)
    done = threading.Event()
    earlier = threading.Thread(target=done.wait)
    earlier.start()

    def policies() -> list[int]:
        return [os.sched_getscheduler(thread) for thread in (0, earlier.native_id)]

    began = time.perf_counter()
    with child._undisturbed(True):
        inside = policies()
        while time.perf_counter() - began < 0.1:
            pass
    took = time.perf_counter() - began

    after = policies()
    done.set()
    earlier.join()
    assert inside == [os.SCHED_FIFO] * 2
    assert after == [before] * 2
    assert took >= 0.1 * (1 + child._PAUSE)
