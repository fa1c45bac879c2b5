"""A tuned network runs with the threads that it was tuned for."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.machine.loop_threads import VARIABLE, set_loop_threads

CORES = this_cpu().cores
OMP = "OMP_NUM_THREADS"


@pytest.fixture(autouse=True)
def _nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
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
