"""Ansor's tuned networks as libraries (`tlp_tvm.tuning.network.tuned_library`)."""

from __future__ import annotations

import os
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.loops import share_loops_of
from tlp_tvm.ansor.loading.targets import runs_here
from tlp_tvm.ansor.networks.integer_inputs import integer_bounds
from tlp_tvm.errors import TuningError, last_line_of
from tlp_tvm.files import fresh_file
from tlp_tvm.machine.huge_pages import huge_pages
from tlp_tvm.machine.loop_threads import set_loop_threads
from tlp_tvm.tuning.network.tuned_library import (
    LIBRARY,
    Tensor,
    TunedNetwork,
    read_description,
    write_description,
)

_OBJECTS = "tuned.tar"


def load_tuned(folder: str | os.PathLike[str]) -> TunedNetwork:
    """Load what `tlp-tvm tune` left in the folder of a run.

    Args:
        folder: of the run; tuned.json and the library beside it are all that is read.

    Raises:
        TuningError: there is no tuned network in it, or none that this machine and this TVM can run.
    """
    description, library = read_description(Path(folder), "ansor")
    set_loop_threads(str(description["target"]))
    tvm = load_tvm()
    share_loops_of(tvm)
    from tvm.contrib import graph_executor

    target = tvm.target.Target(description["target"])
    if not runs_here(target):
        raise TuningError(
            f"{library}: expected a machine that runs programs for {target}, found one that does not; "
            "load it on such a machine"
        )
    device = tvm.device(str(target.kind.name), 0)
    try:
        with huge_pages():
            executor = graph_executor.GraphModule(tvm.runtime.load_module(str(library))["default"](device))
    except (tvm.TVMError, RuntimeError, OSError) as error:
        raise TuningError(
            f"{library}: expected a library for this machine, found: {last_line_of(error)}; "
            "tune the network again"
        ) from error

    def run(arrays: Mapping[str, NDArray[Any]]) -> list[NDArray[Any]]:
        for name, array in arrays.items():
            executor.set_input(name, array)
        executor.run()
        return [executor.get_output(i).numpy() for i in range(len(description["outputs"]))]

    return TunedNetwork(description, run)


def save_tuned(
    built: Any, module: Any, inputs: Collection[str], target: Any, folder: Path, network: str, here: bool
) -> Path:
    """Write a network that TVM built as a library with its description.

    Args:
        built: that `relay.build` gave.
        module: Relay module that it was built from.
        inputs: names of the inputs among the variables of "main".
        target: TVM target that it was built for.
        folder: to write into.
        network: its name.
        here: whether this machine can link it.

    Returns:
        The library: tuned.so, or tuned.tar of objects where it cannot be linked here.

    Raises:
        RuntimeError: TVM cannot write it.
    """
    library = _export(built, folder, here)
    main = load_tvm().relay.transform.InferType()(module)["main"]
    bounds = integer_bounds(module, inputs)
    found = {
        str(variable.name_hint): _tensor(variable.checked_type, bounds.get(str(variable.name_hint)))
        for variable in main.params
        if str(variable.name_hint) in inputs
    }
    outputs = [_tensor(kind) for kind in getattr(main.ret_type, "fields", [main.ret_type])]
    write_description(library, "ansor", network, str(target), found, outputs)
    return library


def _export(built: Any, folder: Path, here: bool) -> Path:
    from tvm.contrib import cc, tar

    if here:
        try:
            with fresh_file(folder / LIBRARY) as fresh:
                built.export_library(str(fresh), fcompile=cc.create_shared)
            (folder / _OBJECTS).unlink(missing_ok=True)
            return folder / LIBRARY
        except (RuntimeError, OSError, ValueError):
            pass  # no compiler that links: the objects serve where there is one
    with fresh_file(folder / _OBJECTS) as fresh:
        built.export_library(str(fresh), fcompile=tar.tar)
    (folder / LIBRARY).unlink(missing_ok=True)
    return folder / _OBJECTS


def _tensor(kind: Any, below: int | None = None) -> Tensor:
    return Tensor(tuple(int(extent) for extent in kind.shape), str(kind.dtype), below)
