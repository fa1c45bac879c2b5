"""Networks in files: ONNX, and TorchScript as `torch.jit.trace(network, inputs).save(path)` writes it.

ONNX names its inputs, their types and their shapes, of which some extents may be left open. TorchScript
names its inputs; shapes and types it has of the inputs that the network was traced with. Open extents
have to be said.
"""

from __future__ import annotations

import importlib
import sys
import types
import warnings
import zipfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.onnx_repairs import repair
from tlp_tvm.errors import NetworkError, last_line_of

Shapes = Mapping[str, tuple[int, ...]]
"""Name of an input to its shape."""

Loaded = tuple[Any, dict[str, Any], dict[str, tuple[int, ...]]]
"""Relay module, parameters by name, shapes of the inputs by name."""

_by_tvm = ContextVar("_by_tvm", default=False)


@dataclass(frozen=True)
class _Input:
    """What a file says of an input; an extent that it leaves open is None, and so is a shape without rank."""

    name: str
    shape: tuple[int | None, ...] | None
    dtype: str = "float32"

    @property
    def text(self) -> str:
        """The shape in words."""
        if self.shape is None:
            return "any shape"
        return f"({', '.join('?' if extent is None else str(extent) for extent in self.shape)})"


def is_network_file(name: str) -> bool:
    """Whether a network's name is the path of a file.

    Args:
        name: of a network.
    """
    return Path(name).suffix.lower() in _READERS


def load_network_file(path: str, shapes: Shapes | None = None) -> Loaded:
    """Read a network from a file.

    Args:
        path: of an ONNX file (.onnx), or of TorchScript (.pt, .pth, .torchscript).
        shapes: of inputs that the file leaves open; others must be as the file has them.

    Returns:
        The Relay module, its parameters by name (none of an ONNX file: they are constants of the module), and
        the shapes of its inputs by name.

    Raises:
        NetworkError: no such file, no network in it, or one that TVM cannot import with these shapes.
    """
    if not Path(path).is_file() or not is_network_file(path):
        raise NetworkError(
            f"{path}: expected a file with a network, found {_kind(Path(path))}; "
            "choose an .onnx, .pt, .pth or .torchscript file, or a built-in name such as resnet_18-224"
        )
    module, parameters = _READERS[Path(path).suffix.lower()](path, shapes or {})
    module = load_tvm().relay.transform.InferType()(module)
    _refuse_open_shapes(path, module)
    inputs = {
        str(variable.name_hint): tuple(int(extent) for extent in variable.checked_type.shape)
        for variable in module["main"].params
        if variable.name_hint not in parameters
    }
    return module, parameters, inputs


@contextmanager
def read_by_tvm() -> Iterator[None]:
    """Read TorchScript by TVM's importer alone, as before 2d7b5272, when tasks of records were split off.

    What it gets wrong is wrong then: the scale of T5's attention, for one.
    """
    mark = _by_tvm.set(True)
    try:
        yield
    finally:
        _by_tvm.reset(mark)


def parse_shapes(texts: Sequence[str]) -> dict[str, tuple[int, ...]]:
    """Read shapes as they are typed: "x=1,3,224,224".

    Args:
        texts: one an input.

    Raises:
        NetworkError: a text of another form.
    """
    shapes = {}
    for text in texts:
        name, _, extents = text.rpartition("=")
        try:
            shape = tuple(int(extent) for extent in extents.split(","))
        except ValueError:
            shape = ()
        if not name or not shape or min(shape) < 1:
            raise NetworkError(
                f'`shapes` "{text}": expected the name of an input and positive extents, as in x=1,3,224,224'
            )
        shapes[name] = shape
    return shapes


def _read_onnx(path: str, shapes: Shapes) -> tuple[Any, dict[str, Any]]:
    try:
        onnx = importlib.import_module("onnx")
    except ImportError as error:
        raise NetworkError(
            f"{path}: expected the package onnx to read it, found none; install tlp-tvm[onnx]"
        ) from error
    try:
        model = onnx.load(path)
    except Exception as error:
        raise NetworkError(
            f"{path}: expected an ONNX model, found: {last_line_of(error).rstrip('.')}"
        ) from error
    if not model.graph.node:
        raise NetworkError(
            f"{path}: expected an ONNX model, found no operator in it; export the network again"
        )
    repair(model)
    constants = {tensor.name for tensor in model.graph.initializer}
    inputs = [_onnx_input(onnx, value) for value in model.graph.input if value.name not in constants]
    chosen = _chosen_shapes(path, inputs, shapes)
    _provide_mapping(onnx)
    dtypes = {each.name: each.dtype for each in inputs}
    frontend = load_tvm().relay.frontend
    module, parameters = _import(path, lambda: frontend.from_onnx(model, shape=chosen, dtype=dtypes))
    return module, dict(parameters)


def _onnx_input(onnx: Any, value: Any) -> _Input:
    tensor = value.type.tensor_type
    shape = tuple(dim.dim_value or None for dim in tensor.shape.dim) if tensor.HasField("shape") else None
    return _Input(value.name, shape, str(onnx.helper.tensor_dtype_to_np_dtype(tensor.elem_type)))


def _provide_mapping(onnx: Any) -> None:
    """TVM's importer looks types up in `onnx.mapping`, which onnx dropped in 1.19."""
    try:
        importlib.import_module("onnx.mapping")
    except ImportError:
        mapping = types.ModuleType("onnx.mapping")
        mapping.TENSOR_TYPE_TO_NP_TYPE = {  # type: ignore[attr-defined]
            kind: onnx.helper.tensor_dtype_to_np_dtype(kind) for kind in onnx.helper.get_all_tensor_dtypes()
        }
        sys.modules["onnx.mapping"] = mapping


def _read_torchscript(path: str, shapes: Shapes) -> tuple[Any, dict[str, Any]]:
    import torch

    from tlp_tvm.ansor.from_torch.converters import converters_for  # imports torch

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is called deprecated; the file is there all the same
        try:
            script = _torchscript(torch, path)
        except (RuntimeError, ValueError) as error:
            raise NetworkError(
                f"{path}: expected TorchScript, found: {_first_sentence(error)}; "
                "write it with torch.jit.trace(network, inputs).save(path)"
            ) from error
        names = [argument.name for argument in script.forward.schema.arguments[1:]]
        variables = list(script.graph.inputs())[1:]
        inputs = [
            _torch_input(name, variable.type()) for name, variable in zip(names, variables, strict=True)
        ]
        chosen = _chosen_shapes(path, inputs, shapes)
        infos = [(each.name, (chosen[each.name], each.dtype)) for each in inputs]
        frontend = load_tvm().relay.frontend
        ours = {} if _by_tvm.get() else converters_for(script)
        module, parameters = _import(path, lambda: frontend.from_pytorch(script, infos, ours))
    return module, dict(parameters)


def _torchscript(torch: Any, path: str) -> Any:
    script = torch.jit.load(path, map_location="cpu").eval()
    with zipfile.ZipFile(path) as archive:
        if not any(name.endswith("/traced_inputs.pkl") for name in archive.namelist()):
            return script
    try:
        # With the shapes of the inputs that it was traced with.
        return torch.jit.load(path, map_location="cpu", _restore_shapes=True).eval()
    except (RuntimeError, TypeError):  # a private option of torch, which may go
        return script


def _torch_input(name: str, kind: Any) -> _Input:
    known = kind.kind() == "TensorType"
    sizes = kind.sizes() if known else None
    dtype = kind.dtype() if known else None
    return _Input(
        name,
        tuple(sizes) if sizes is not None else None,
        "float32" if dtype is None else str(dtype).removeprefix("torch."),
    )


def _chosen_shapes(path: str, inputs: Sequence[_Input], shapes: Shapes) -> dict[str, tuple[int, ...]]:
    """The shape of every input: the file's, and what it leaves open from `shapes`."""
    known = ", ".join(f"{each.name}: {each.text}" for each in inputs)
    for name in shapes:
        if name not in {each.name for each in inputs}:
            raise NetworkError(
                f'{path}: expected `shapes` of one of the inputs {known}, found one of "{name}"; name another'
            )
    return {each.name: _chosen_shape(path, each, shapes.get(each.name)) for each in inputs}


def _chosen_shape(path: str, each: _Input, chosen: tuple[int, ...] | None) -> tuple[int, ...]:
    if chosen is None:
        if each.shape is None or None in each.shape:
            example = (1, 3, 224, 224) if each.shape is None else tuple(extent or 1 for extent in each.shape)
            text = ",".join(str(extent) for extent in example)
            raise NetworkError(
                f"{path}: expected inputs of fixed shape, found {each.text} of {each.name}; "
                f"choose one, as in `shapes` {each.name}={text}"
            )
        return tuple(extent for extent in each.shape if extent is not None)
    fits = each.shape is None or (
        len(each.shape) == len(chosen)
        and all(extent in {None, found} for extent, found in zip(each.shape, chosen, strict=True))
    )
    if not fits:
        raise NetworkError(
            f"{path}: expected `shapes` {each.name} to be {each.text}, as in the file, found {chosen}; "
            "choose one that fits, or export the network with that shape"
        )
    return chosen


def _import(path: str, read: Callable[[], tuple[Any, Any]]) -> tuple[Any, Any]:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of the importer's own code
            return read()
    except Exception as error:
        raise NetworkError(
            f"{path}: expected a network of operators that TVM can import, "
            f"found: {last_line_of(error).rstrip('.')}; export it without these, traced for inference"
        ) from error


def _refuse_open_shapes(path: str, module: Any) -> None:
    relay = load_tvm().relay
    found: list[str] = []

    def visit(expression: Any) -> None:
        if not found and isinstance(expression, relay.Call) and relay.ty.is_dynamic(expression.checked_type):
            found.append(str(getattr(expression.op, "name", "a function")))

    relay.analysis.post_order_visit(module["main"], visit)
    if found:
        raise NetworkError(
            f"{path}: expected shapes that are known before the network runs, found a result of {found[0]} "
            "whose shape depends on values; export the network with fixed shapes"
        )


def _kind(path: Path) -> str:
    if path.is_dir():
        return "a folder"
    return "another" if path.exists() else "none"


def _first_sentence(error: BaseException) -> str:
    return (str(error).strip().splitlines() or [type(error).__name__])[0].split(". ")[0].rstrip(".")


_READERS = {
    ".onnx": _read_onnx,
    ".pt": _read_torchscript,
    ".pth": _read_torchscript,
    ".torchscript": _read_torchscript,
}
"""End of a file's name to the function of its path and the chosen shapes that reads it."""
