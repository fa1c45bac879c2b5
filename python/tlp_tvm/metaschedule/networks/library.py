"""MetaSchedule's tuned networks as libraries (`tlp_tvm.tuning.network.tuned_library`)."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tlp_tvm.errors import TuningError, last_line_of
from tlp_tvm.machine.loop_threads import set_loop_threads
from tlp_tvm.metaschedule.compiling.executables import load_compiled, save_compiled
from tlp_tvm.metaschedule.loading.locate import load_runtime
from tlp_tvm.metaschedule.loading.loops import share_loops_of
from tlp_tvm.metaschedule.loading.targets import device_of, flags_of
from tlp_tvm.metaschedule.networks.end_to_end import arrays_of
from tlp_tvm.tuning.network.tuned_library import (
    LIBRARY,
    Tensor,
    TunedNetwork,
    read_description,
    write_description,
)


def load_tuned(folder: str | os.PathLike[str]) -> TunedNetwork:
    """Load what `tlp-tvm tune --framework metaschedule` left in the folder of a run.

    Args:
        folder: of the run; tuned.json and the library beside it are all that is read.

    Raises:
        TuningError: there is no tuned network in it, or none that this machine and this TVM can run.
    """
    description, library = read_description(Path(folder), "metaschedule")
    set_loop_threads(str(description["target"]))
    tvm = load_runtime()
    share_loops_of(tvm)
    from tvm import relax

    device = device_of(str(description["target"]).split()[0])
    try:
        machine = relax.VirtualMachine(load_compiled(library), device)
    except (RuntimeError, OSError) as error:
        raise TuningError(
            f"{library}: expected a library for this machine, found: {last_line_of(error)}; "
            "tune the network again"
        ) from error

    def run(arrays: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        given = [tvm.runtime.tensor(arrays[name], device) for name in description["inputs"]]
        return arrays_of(machine["main"](*given))

    return TunedNetwork(description, run)


def save_tuned(
    built: Any,
    target: Any,
    folder: Path,
    network: str,
    inputs: Mapping[str, NDArray[Any]],
    outputs: list[NDArray[Any]],
) -> Path:
    """Write a compiled network as a library with its description.

    Args:
        built: that `end_to_end.compiled` gave.
        target: TVM's target that it was built for.
        folder: to write into.
        network: its name.
        inputs: arrays that it takes, by name, in order.
        outputs: arrays that it gives.

    Returns:
        The library.

    Raises:
        RuntimeError: TVM cannot write it.
    """
    library = folder / LIBRARY
    save_compiled(built, library)
    taken = {name: _tensor(array) for name, array in inputs.items()}
    write_description(
        library, "metaschedule", network, flags_of(target), taken, [_tensor(array) for array in outputs]
    )
    return library


def _tensor(array: NDArray[Any]) -> Tensor:
    return Tensor(array.shape, str(array.dtype))
