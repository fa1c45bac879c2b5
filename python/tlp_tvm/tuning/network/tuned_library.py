"""A tuned network as a library on disk, which a fresh process can run.

    load_tuned("runs/dqn")(data=array)

tuned.so     the compiled network with its parameters; tuned.tar, its objects, where it cannot be linked here
tuned.json   whose framework's it is, and what the inputs and outputs are
"""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.errors import TuningError
from tlp_tvm.files import write_whole
from tlp_tvm.framework import DEFAULT

FORMAT = "tlp-tvm-tuned"
FORMAT_VERSION = 1
DESCRIPTION = "tuned.json"
LIBRARY = "tuned.so"
LIBRARIES = (LIBRARY, "tuned.tar")
"""In the run's own folder: a description does not lead elsewhere."""

Run = Callable[[Mapping[str, NDArray[Any]]], list[NDArray[Any]]]


@dataclass(frozen=True)
class Tensor:
    """An input or output.

    Attributes:
        shape: of the array.
        dtype: NumPy's name of the type.
        below: integers of an input are at least 0 and below this, as ids of a table are; None where that is
            not known.
    """

    shape: tuple[int, ...]
    dtype: str
    below: int | None = None

    def __str__(self) -> str:
        return f"{self.dtype} {self.shape}"

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        bound = {} if self.below is None else {"below": self.below}
        return {"shape": list(self.shape), "dtype": self.dtype, **bound}


class TunedNetwork:
    """A network that was tuned, ready to run; safe to use from several threads, which take turns.

    Attributes:
        network: its name.
        target: TVM target.
        inputs: by name.
        outputs: in order.
    """

    def __init__(self, description: Mapping[str, Any], run: Run) -> None:
        """What `load_tuned` gives.

        Args:
            description: that `write_description` wrote.
            run: takes checked arrays by name, and gives the outputs.
        """
        self.network = str(description["network"])
        self.target = str(description["target"])
        self.inputs = {name: tensor_of(value) for name, value in description["inputs"].items()}
        self.outputs = [tensor_of(value) for value in description["outputs"]]
        self._run = run
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
            return self._run(arrays)

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


def write_description(
    library: Path,
    framework: str,
    network: str,
    target: str,
    inputs: Mapping[str, Tensor],
    outputs: Sequence[Tensor],
) -> None:
    """Write tuned.json beside a library.

    Args:
        library: tuned.so or tuned.tar.
        framework: that tuned it.
        network: its name.
        target: TVM target that it was built for.
        inputs: by name.
        outputs: in order.
    """
    description = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "framework": framework,
        "network": network,
        "target": target,
        "library": library.name,
        "inputs": {name: tensor.to_dict() for name, tensor in inputs.items()},
        "outputs": [tensor.to_dict() for tensor in outputs],
    }
    write_whole(library.parent / DESCRIPTION, json.dumps(description, indent=1) + "\n")


def read_description(folder: Path, framework: str | None = None) -> tuple[dict[str, Any], Path]:
    """What `write_description` wrote.

    Args:
        folder: of the run.
        framework: that is asked for; None for any.

    Returns:
        The description, and the library that it names.

    Raises:
        TuningError: there is no tuned network, or it is another framework's.
    """
    path = folder / DESCRIPTION
    try:
        description = json.loads(path.read_text(encoding="utf-8"))
        name = str(description["library"])
        if description["format"] != FORMAT or name not in LIBRARIES or not (folder / name).is_file():
            raise ValueError(f"no library {' or '.join(LIBRARIES)}, but {name!r}")
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise TuningError(
            f"{folder}: expected {DESCRIPTION} and the library that it names, found: {error}; "
            "choose the folder of a tuning that ended"
        ) from error
    if description["format_version"] > FORMAT_VERSION:
        raise TuningError(
            f"{path}: expected format_version {FORMAT_VERSION}, found {description['format_version']}; "
            "install a newer tlp-tvm"
        )
    found = framework_that_tuned(description)
    if framework not in (None, found):
        raise TuningError(
            f"{path}: expected a network tuned with {framework}, found one of {found}; load it by "
            f"tlp_tvm.{found}.load_tuned"
        )
    return description, folder / name


def line_that_runs(folder: Path) -> str:
    """Python code that runs the tuned network of a folder; its arrays have the names of the inputs.

    Args:
        folder: of the run.
    """
    description = read_description(folder)[0]
    inputs = list(description["inputs"])
    if all(name.isidentifier() for name in inputs):
        arguments = ", ".join(f"{name}=array" for name in inputs)
    else:
        arguments = "{" + ", ".join(f"{name!r}: array" for name in inputs) + "}"
    module = f"tlp_tvm.{framework_that_tuned(description)}"
    return f"from {module} import load_tuned; outputs = load_tuned({str(folder)!r})({arguments})"


def framework_that_tuned(description: Mapping[str, Any]) -> str:
    """The framework of a description; those of before there were others do not say it."""
    return str(description.get("framework", DEFAULT))


def tensor_of(value: Mapping[str, Any]) -> Tensor:
    """What a description says of an input or output."""
    return Tensor(tuple(value["shape"]), str(value["dtype"]), value.get("below"))
