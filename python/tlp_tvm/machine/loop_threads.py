"""How TVM's parallel loops run in a process: on how many threads, and shared out by whom.

By itself TVM takes half of the cores of an x86, as if two of them were one: on two virtual cores, one. It
reads the environment at every parallel loop, and makes a pool of threads at the first one of each thread.
Each thread gets one part of a loop beforehand, so that all wait for the slowest core. Ours take parts that
others have not begun (`cpp/loops/`).
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager

from tlp_tvm import _core
from tlp_tvm.machine.cpu import this_cpu

VARIABLE = "TVM_NUM_THREADS"
_ASKED = (VARIABLE, "OMP_NUM_THREADS")
"""What TVM reads."""

SHARING = "TLP_TVM_LOOPS"
THEIRS = "tvm"
"""Value of `SHARING` that leaves loops to TVM."""

SPINS = "TVM_THREAD_POOL_SPIN_COUNT"
"""How often a thread of TVM's own pool looks for work before it sleeps; TVM reads it once. 300,000 by itself,
an eighth of a second, which each run of a profile waits for, as it ends the pool and makes another."""

_LOOKS = "1"
"""Of threads that have nothing to do."""


def set_loop_threads(target: str) -> None:
    """Have this process's parallel loops take what a target names, but not more than there are cores.

    What is in the environment already counts, as that of the first network does for later ones.

    Args:
        target: TVM target of a network that is about to run; without -num-cores it takes all cores.
    """
    if not any(os.environ.get(name) for name in _ASKED):
        os.environ[VARIABLE] = str(this_cpu().threads(target))
    _core.set_loop_threads(_asked_for())


@contextmanager
def loop_threads(threads: int) -> Iterator[None]:
    """Have parallel loops that begin within the block take so many threads.

    Args:
        threads: at least 1.
    """
    before, ours = os.environ.get(VARIABLE), _core.loop_threads()
    os.environ[VARIABLE] = str(threads)
    _core.set_loop_threads(threads)
    try:
        yield
    finally:
        _core.set_loop_threads(ours)
        del os.environ[VARIABLE]
        if before is not None:
            os.environ[VARIABLE] = before


def share_loops(library: str, registry: str = "") -> bool:
    """Have the parallel loops of what TVM compiles or loads from now on shared out by us.

    They take as many threads as the environment says. `TLP_TVM_LOOPS=tvm` leaves them to TVM. Threads of
    TVM's own pool, which have nothing to do then, sleep at once, where none has begun before.

    Args:
        library: path of TVM's library with the functions of loops, which this process has loaded.
        registry: path of tvm-ffi's library, where programs look functions up in it.

    Returns:
        Whether they will be.
    """
    if os.environ.get(SHARING) == THEIRS:
        return False
    _core.set_loop_threads(_asked_for())
    shared = _core.share_loops(library, registry)
    if shared:
        os.environ.setdefault(SPINS, _LOOKS)
    return shared


def _asked_for() -> int:
    """What the environment says, read as TVM reads it: what is no number is one thread."""
    found = next((os.environ[name] for name in _ASKED if os.environ.get(name)), "")
    if not found:
        return this_cpu().cores
    return max(1, int(found)) if found.isdigit() else 1
