"""Programs that a GPU cannot run, told apart by their loops and the task's hardware parameters.

TVM finds them by lowering each program, at some hundred programs per second; here the loops of the live
states are read natively. The check errs on one side only: what it refuses, TVM refuses too.
"""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core
from tlp_tvm.ansor.loading.locate import tvm_info
from tlp_tvm.ansor.networks.tasks import NVIDIA_GPU
from tlp_tvm.ansor.reading.gpu_graph import graph_of
from tlp_tvm.ansor.reading.states import as_array, reader
from tlp_tvm.errors import AbiMismatchError

FAULTS = (
    "",
    "too many threads in a block",
    "loops bound to the same threads with different extents",
    "too much shared memory in a block",
    "too many virtual threads",
    "a vector access of too many bytes",
)
"""Words for what `gpu_faults` gives."""


class GpuCheck:
    """The limits of one task's hardware; any number of threads may share it."""

    def __init__(self, task: Any) -> None:
        """Read the task.

        Args:
            task: `auto_scheduler.SearchTask`.
        """
        self._limits: dict[str, Any] = {}
        if "gpu" in task.target.keys:
            hardware = task.hardware_params
            self._limits = {
                "threads_per_block": int(hardware.max_threads_per_block),
                "shared_bytes_per_block": int(hardware.max_shared_memory_per_block),
                "vthreads": int(hardware.max_vthread_extent),
                "vector_bytes": int(hardware.vector_unit_bytes) or NVIDIA_GPU["vector_unit_bytes"],
                "graph": graph_of(task.compute_dag),
            }

    @functools.cached_property
    def rules(self) -> _core.GpuRules | None:
        """The same for programs that TVM has not seen; None for a CPU."""
        return _core.GpuRules(**self._limits) if self._limits else None

    def faults(self, states: Any) -> NDArray[np.uint8]:
        """Say which programs cannot run.

        Args:
            states: a tvm Array or list of states of the task whose bounds are inferred; others pass.

        Returns:
            (N,) index into `FAULTS`: 0 for programs that nothing speaks against, as all for a CPU.

        Raises:
            AbiMismatchError: TVM's objects are not laid out as the reader expects.
        """
        if not self._limits:
            return np.zeros(len(states), np.uint8)
        array = as_array(states)
        _check_loops(array)
        return reader().gpu_faults(array.handle.value, **self._limits)


_loops_checked = False


def _check_loops(array: Any) -> None:
    """Before the loops are trusted: what is read natively must be what TVM's own reflection says."""
    global _loops_checked
    if _loops_checked or not len(array):
        return
    found = reader().loops(array.handle.value)[0]
    expected = [[_loop(iterator) for iterator in stage.iters] for stage in array[0].stages]
    if found != expected:
        raise AbiMismatchError(
            f"TVM {tvm_info().version} ({tvm_info().library}): expected the loops of a state to be read as "
            f"{expected}, found {found}; use a TVM 0.8 to 0.19"
        )
    _loops_checked = True


def _loop(iterator: Any) -> tuple[int, int]:
    extent = None if iterator.range is None else iterator.range.extent
    return int(getattr(extent, "value", -1)), int(iterator.annotation)
