"""A tuned network runs with the threads that it was tuned for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tlp_tvm import _core
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.machine.loop_threads import (
    SHARING,
    SPINS,
    THEIRS,
    VARIABLE,
    loop_threads,
    set_loop_threads,
    share_loops,
)

CORES = this_cpu().cores
OMP = "OMP_NUM_THREADS"


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(SPINS, raising=False)
    for name in (VARIABLE, OMP):
        monkeypatch.setenv(name, "")  # put back afterwards, whatever the test leaves


@pytest.mark.parametrize(
    ("target", "threads"), [("llvm -num-cores=1", 1), ("llvm -num-cores=999", CORES), ("llvm", CORES)]
)
def test_a_target_says_how_many(target: str, threads: int) -> None:
    set_loop_threads(target)
    assert os.environ[VARIABLE] == str(threads)


def test_what_the_user_has_set_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(OMP, "1")
    set_loop_threads("llvm -num-cores=2")
    assert not os.environ[VARIABLE]


def test_tvm_takes_that_number() -> None:
    code = (
        "from tlp_tvm.machine.loop_threads import set_loop_threads; set_loop_threads('llvm')\n"
        "from tlp_tvm.ansor.loading.locate import load_tvm\n"
        "print(load_tvm().get_global_func('runtime.NumThreads')())"
    )
    done = subprocess.run([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, check=True)
    assert int(done.stdout.split()[-1]) == CORES


LOOP = """
import os
import numpy as np
from tlp_tvm import _core
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.loops import share_loops_of
from tlp_tvm.machine.loop_threads import SPINS

tvm = load_tvm()
from tvm import te

a = te.placeholder((100, 3), name="a")
b = te.compute((100, 3), lambda i, j: a[i, j] * 2, name="b")
schedule = te.create_schedule(b.op)
schedule[b].parallel(b.op.axis[0])
given = tvm.nd.array(np.arange(300, dtype="float32").reshape(100, 3))


def run():
    built, found = tvm.build(schedule, [a, b], "llvm"), tvm.nd.empty((100, 3))
    built(given, found)
    np.testing.assert_array_equal(found.numpy(), given.numpy() * 2)
    return _core.shared_loops()


before = run()
shared = share_loops_of(tvm)
after = run()
_core.leave_loops()
print(before, shared, after, run() - after, os.environ.get(SPINS, "theirs"))
"""


def loops_shared(**variables: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", LOOP],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
        env=os.environ | variables,
    )
    return done.stdout.split()[-5:]


def test_loops_are_shared_out_from_then_on_and_left_again() -> None:
    assert loops_shared(**{VARIABLE: "2"}) == ["0", "True", "1", "0", "1"]


def test_one_thread_shares_nothing() -> None:
    assert loops_shared(**{OMP: "1"}) == ["0", "True", "0", "0", "1"]


def test_a_user_may_leave_loops_to_tvm() -> None:
    assert loops_shared(**{VARIABLE: "2", SHARING: THEIRS}) == ["0", "False", "0", "0", "theirs"]


def test_a_user_may_say_how_long_threads_of_tvms_pool_look_for_work() -> None:
    assert loops_shared(**{VARIABLE: "2", SPINS: "77"})[-1] == "77"


def test_a_block_has_threads_of_its_own(monkeypatch: pytest.MonkeyPatch) -> None:
    before = _core.loop_threads()
    monkeypatch.delenv(VARIABLE)
    with loop_threads(3):
        assert (os.environ[VARIABLE], _core.loop_threads()) == ("3", 3)
    assert (VARIABLE in os.environ, _core.loop_threads()) == (False, before)


@pytest.mark.parametrize("text", ["no number", "0", "-3"])
def test_threads_that_are_no_number(monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setenv(VARIABLE, text)
    before = _core.loop_threads()
    try:
        assert not share_loops("/nowhere/libtvm.so")
        assert _core.loop_threads() == 1
    finally:
        _core.set_loop_threads(before)
