"""A tuned network as a library on the disk, and how a process that knows nothing else runs it.

    load_tuned("runs/dqn")(data=array)

tuned.so     the compiled network with its parameters; tuned.tar, its objects, where it cannot be linked here
tuned.json   what the inputs and outputs are
"""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.ansor.at_hand import runs_here
from tlp_tvm.ansor.locate import load_tvm
from tlp_tvm.errors import TuningError
from tlp_tvm.files import fresh_file, write_whole

FORMAT = "tlp-tvm-tuned"
FORMAT_VERSION = 1
DESCRIPTION = "tuned.json"


@dataclass(frozen=True)
class Tensor:
    """An input or output.

    Attributes:
        shape: of the array.
        dtype: NumPy's name of the type.
    """

    shape: tuple[int, ...]
    dtype: str

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"


class TunedNetwork:
    """A network that was tuned, ready to run; safe to use from several threads, which take turns.

    Attributes:
        network: its name.
        target: TVM target.
        inputs: by name.
        outputs: in order.
    """

    def __init__(self, description: Mapping[str, Any], executor: Any) -> None:
        self.network = str(description["network"])
        self.target = str(description["target"])
        self.inputs = {name: _tensor(value) for name, value in description["inputs"].items()}
        self.outputs = [_tensor(value) for value in description["outputs"]]
        self._executor = executor
        self._lock = threading.Lock()

    def __call__(self, inputs: Mapping[str, Any] | None = None, /, **named: Any) -> list[NDArray[Any]]:
        """Run the network.

        Args:
            inputs: arrays by name; for names that Python cannot write as keywords.
            named: arrays by name.

        Returns:
            The outputs, in order.

        Raises:
            TuningError: an input is missing, unknown, or of another shape or kind of number.
        """
        arrays = self._checked({**(inputs or {}), **named})
        with self._lock:
            for name, array in arrays.items():
                self._executor.set_input(name, array)
            self._executor.run()
            return [self._executor.get_output(i).numpy() for i in range(len(self.outputs))]

    def _checked(self, given: Mapping[str, Any]) -> dict[str, NDArray[Any]]:
        if given.keys() != self.inputs.keys():
            expected = ", ".join(f"{name}: {tensor}" for name, tensor in self.inputs.items())
            raise TuningError(
                f"{self.network}: expected the inputs {expected}, found {', '.join(given) or 'none'}; "
                "give each of them once"
            )
        arrays = {}
        for name, tensor in self.inputs.items():
            array = np.asarray(given[name])
            if array.shape != tensor.shape or not np.can_cast(array.dtype, tensor.dtype, "same_kind"):
                raise TuningError(
                    f"{self.network}: expected {name} to be {tensor}, found {array.dtype} {array.shape}; "
                    "reshape or convert it"
                )
            arrays[name] = np.ascontiguousarray(array, tensor.dtype)
        return arrays


def load_tuned(folder: str | os.PathLike[str]) -> TunedNetwork:
    """Load what `tlp-tvm tune` left in the folder of a run.

    Args:
        folder: of the run; tuned.json and the library beside it are all that is read.

    Raises:
        TuningError: there is no tuned network in it, or none that this machine can run.
    """
    description, library = _read(Path(folder))
    tvm = load_tvm()
    from tvm.contrib import graph_executor

    target = tvm.target.Target(description["target"])
    if not runs_here(target):
        raise TuningError(
            f"{library}: expected a machine that runs programs for {target}, found one that does not; "
            "load it where it is to run"
        )
    device = tvm.device(str(target.kind.name), 0)
    try:
        executor = graph_executor.GraphModule(tvm.runtime.load_module(str(library))["default"](device))
    except (tvm.TVMError, RuntimeError, OSError) as error:
        reason = str(error).strip().splitlines()[-1]
        raise TuningError(
            f"{library}: expected a library for this machine, found: {reason}; tune the network again"
        ) from error
    return TunedNetwork(description, executor)


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
    result = main.ret_type
    description = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "network": network,
        "target": str(target),
        "library": library.name,
        "inputs": {
            str(variable.name_hint): _describe(variable.checked_type)
            for variable in main.params
            if str(variable.name_hint) in inputs
        },
        "outputs": [_describe(kind) for kind in getattr(result, "fields", [result])],
    }
    write_whole(folder / DESCRIPTION, json.dumps(description, indent=1) + "\n")
    return library


def line_that_runs(folder: Path) -> str:
    """Python code that runs the tuned network of a folder; its arrays have the names of the inputs.

    Args:
        folder: of the run.
    """
    inputs = list(_read(folder)[0]["inputs"])
    if all(name.isidentifier() for name in inputs):
        arguments = ", ".join(f"{name}=array" for name in inputs)
    else:
        arguments = "{" + ", ".join(f'"{name}": array' for name in inputs) + "}"
    return f'from tlp_tvm.ansor import load_tuned; outputs = load_tuned("{folder}")({arguments})'


def _export(built: Any, folder: Path, here: bool) -> Path:
    from tvm.contrib import cc, tar

    if here:
        try:
            with fresh_file(folder / "tuned.so") as fresh:
                built.export_library(str(fresh), fcompile=cc.create_shared)
            (folder / "tuned.tar").unlink(missing_ok=True)
            return folder / "tuned.so"
        except (RuntimeError, OSError, ValueError):
            pass  # no compiler that links: the objects serve where there is one
    with fresh_file(folder / "tuned.tar") as fresh:
        built.export_library(str(fresh), fcompile=tar.tar)
    (folder / "tuned.so").unlink(missing_ok=True)
    return folder / "tuned.tar"


def _read(folder: Path) -> tuple[dict[str, Any], Path]:
    path = folder / DESCRIPTION
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        library = folder / str(description["library"])
        if description["format"] != FORMAT or not library.is_file():
            raise ValueError(f"no library {library.name}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TuningError(
            f"{folder}: expected {DESCRIPTION} and the library that it names, found: {error}; "
            "choose the --out of a tlp-tvm tune that ended"
        ) from error
    if description["format_version"] > FORMAT_VERSION:
        raise TuningError(
            f"{path}: expected format_version {FORMAT_VERSION}, found {description['format_version']}; "
            "install a newer tlp-tvm"
        )
    return description, library


def _describe(kind: Any) -> dict[str, Any]:
    return {"shape": [int(extent) for extent in kind.shape], "dtype": str(kind.dtype)}


def _tensor(value: Mapping[str, Any]) -> Tensor:
    return Tensor(tuple(value["shape"]), str(value["dtype"]))
