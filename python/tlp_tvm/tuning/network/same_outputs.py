"""Does a network that TVM compiled give what PyTorch gives, or ONNX Runtime for an ONNX file?

TVM's importers take some operators for others without a word, as an average pool with a divisor for one
without.
"""

from __future__ import annotations

import importlib
import warnings
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch.utils import _pytree

from tlp_tvm.errors import NetworkError

Tensors = list[torch.Tensor]

EXPLAINED, ROUNDED = 1e-3, 0.1
"""Of the largest value of an output: what another order of additions explains, far more than any seen; and
the same of numbers that are narrower than float32."""

LEAST_LARGEST = 1e-3
"""An output without a larger value is held against this."""

NEAR_EQUALS = 0.01
"""Of an output's whole numbers, as indices, those that may differ: a choice among near equals."""


def difference(ours: Sequence[Any], theirs: Sequence[Any]) -> str:
    """How outputs differ, as a clause; empty where rounding explains it.

    Args:
        ours: of the compiled graph.
        theirs: of PyTorch.
    """
    if len(ours) != len(theirs):
        return f"{len(ours)} outputs of {len(theirs)}"
    for one, other in zip(ours, theirs, strict=True):
        if not isinstance(other, torch.Tensor):
            continue
        if one.shape != other.shape or one.dtype != other.dtype:
            return f"{one.dtype} {tuple(one.shape)} in the place of {other.dtype} {tuple(other.shape)}"
        if found := _apart(one, other):
            return found
    return ""


def _apart(one: torch.Tensor, other: torch.Tensor) -> str:
    unlike = ~((one == other) | (one.isnan() & other.isnan()))
    if not unlike.any():
        return ""
    if not other.is_floating_point():
        share = float(unlike.double().mean())
        return f"{share:.0%} of its whole numbers others" if share > NEAR_EQUALS else ""
    finite = other[other.isfinite()].abs()
    largest = max(LEAST_LARGEST, float(finite.max()) if len(finite) else 0.0)
    most = float((one[unlike].double() - other[unlike].double()).abs().max()) / largest
    limit = EXPLAINED if other.dtype in (torch.float32, torch.float64) else ROUNDED
    return "" if most <= limit else f"a difference of {most:.1e} of the largest value"


def check_outputs(file: Path, inputs: Mapping[str, NDArray[Any]], outputs: Sequence[NDArray[Any]]) -> None:
    """Refuse a network of a file that TVM takes for another one.

    An ONNX file is looked at where ONNX Runtime is installed and runs it.

    Args:
        file: of the network.
        inputs: by name, in order.
        outputs: that TVM gave for them.

    Raises:
        NetworkError: PyTorch, or ONNX Runtime, gives something else.
    """
    kind = file.suffix.lower() if file.suffix.lower() in _LIBRARIES else ".pt"
    library, other, run = _LIBRARIES[kind]
    theirs = run(file, inputs)
    found = difference([_tensor(each) for each in outputs], theirs) if theirs is not None else ""
    if found:
        raise NetworkError(
            f"{file}: expected TVM to give the outputs that {library} gives, found {found}; "
            f"please report the network, and {other}"
        )


def _exported(file: Path, inputs: Mapping[str, NDArray[Any]]) -> Tensors | None:
    return _of_torch(torch.export.load(file).module(), list(inputs.values()))


def _traced(file: Path, inputs: Mapping[str, NDArray[Any]]) -> Tensors | None:
    """None for a network of whose inputs TVM left some out."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is called deprecated; the file is there all the same
        network = torch.jit.load(file, map_location="cpu").eval()  # type: ignore[no-untyped-call]
    names = [argument.name for argument in network.forward.schema.arguments[1:]]
    return _of_torch(network, [inputs[name] for name in names]) if set(names) == set(inputs) else None


def _of_torch(network: Callable[..., Any], inputs: Sequence[NDArray[Any]]) -> Tensors:
    with torch.inference_mode():
        given = network(*map(_tensor, inputs))
    return [each for each in _pytree.tree_leaves(given) if isinstance(each, torch.Tensor)]


def _of_onnx(file: Path, inputs: Mapping[str, NDArray[Any]]) -> Tensors | None:
    try:
        runtime = importlib.import_module("onnxruntime")
    except ImportError:
        return None
    options = runtime.SessionOptions()
    options.log_severity_level = 4  # what it cannot run, it is not asked for
    try:
        session = runtime.InferenceSession(str(file), options, providers=["CPUExecutionProvider"])
        return [_tensor(np.asarray(each)) for each in session.run(None, dict(inputs))]
    except Exception:  # noqa: BLE001 - an operator or a type that it lacks
        return None


def _tensor(array: NDArray[Any]) -> torch.Tensor:
    if array.dtype.name == "bfloat16":  # of ml_dtypes, which torch does not know
        return torch.from_numpy(np.ascontiguousarray(array).view(np.int16)).view(torch.bfloat16)
    return torch.from_numpy(array)


_LIBRARIES: dict[str, tuple[str, str, Callable[[Path, Mapping[str, NDArray[Any]]], Tensors | None]]] = {
    ".onnx": ("ONNX Runtime", "tune its TorchScript file", _of_onnx),
    ".pt": ("PyTorch", "tune its ONNX file, or what torch.export.save wrote with MetaSchedule", _traced),
    ".pt2": ("PyTorch", "tune its TorchScript or ONNX file for Ansor", _exported),
}
"""By the end of a file's name: who else runs it, what to do instead, and its outputs, or None."""
