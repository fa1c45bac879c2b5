"""A compiled graph, run on torch's tensors where they lie."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch

from tlp_tvm.machine.loop_threads import set_loop_threads
from tlp_tvm.metaschedule.compiling.executables import load_compiled
from tlp_tvm.metaschedule.loading.locate import load_runtime
from tlp_tvm.metaschedule.loading.loops import share_loops_of
from tlp_tvm.metaschedule.loading.targets import device_of

ALIGNED = 64
"""Bytes; arrays of TVM's programs begin at multiples of this, as torch's own do, but not their views."""


class RunGraph:
    """A library of one graph. Calls take turns, as TVM's machine runs one at a time."""

    def __init__(self, library: Any, results: Sequence[int | None], values: Sequence[Any]) -> None:
        """Prepare.

        Args:
            library: that TVM compiled, or the path of one.
            results: as `Exported` has them.
            values: as `Exported` has them.
        """
        set_loop_threads("llvm")
        tvm = load_runtime()
        share_loops_of(tvm)
        from tvm import relax

        module = load_compiled(library) if isinstance(library, Path) else library
        self._main = relax.VirtualMachine(module, device_of("llvm"))["main"]
        self._results, self._values = tuple(results), tuple(values)
        self._lock = threading.Lock()

    def __call__(self, *given: torch.Tensor) -> tuple[Any, ...]:
        """Run.

        Args:
            given: the arguments that differ from call to call, on the CPU.

        Returns:
            What the graph gives.
        """
        with self._lock:
            found = self._main(*map(_ready, given))
        tensors = [found] if hasattr(found, "shape") else list(found)
        return tuple(
            value if place is None else _of_torch(tensors[place])
            for place, value in zip(self._results, self._values, strict=True)
        )


def _of_torch(tensor: Any) -> torch.Tensor:
    """The same memory as torch's tensor; where torch's went in, TVM gives torch's already."""
    return tensor if isinstance(tensor, torch.Tensor) else torch.utils.dlpack.from_dlpack(tensor)


def _ready(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor itself where TVM can read it, or else a copy that it can."""
    tensor = tensor.detach().contiguous()
    return tensor if tensor.data_ptr() % ALIGNED == 0 else tensor.clone()
