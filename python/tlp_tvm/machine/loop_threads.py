"""How many threads TVM's parallel loops take in a process that only runs a tuned network.

By itself TVM takes half of the cores of an x86, as if two of them were one: on two virtual cores, one. It
reads the environment at every parallel loop, and makes a pool of threads at the first one of each thread.
"""

from __future__ import annotations

import os

from tlp_tvm.machine.cpu import this_cpu

VARIABLE = "TVM_NUM_THREADS"
_ASKED = (VARIABLE, "OMP_NUM_THREADS")
"""What TVM reads."""


def set_loop_threads(target: str) -> None:
    """Have this process's parallel loops take what a target names, but not more than there are cores.

    What is in the environment already counts, as that of the first network does for later ones.

    Args:
        target: TVM target of a network that is about to run; without -num-cores it takes all cores.
    """
    if not any(os.environ.get(name) for name in _ASKED):
        os.environ[VARIABLE] = str(this_cpu().threads(target))
