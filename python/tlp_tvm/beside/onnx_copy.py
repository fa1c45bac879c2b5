"""An ONNX copy of a network that torch wrote, for the peers that read nothing else."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from tlp_tvm.beside.peer_kinds import ONNX
from tlp_tvm.files import fresh_file

EXPORTED = ".pt2"


def onnx_of(network: Path, inputs: Mapping[str, NDArray[Any]], scratch: Path) -> Path:
    """The network itself, or its copy.

    Args:
        network: an ONNX file, or one that torch wrote.
        inputs: arrays by name, of the shapes that the copy has.
        scratch: folder of the copy; made only once.
    """
    if network.suffix.lower() in ONNX:
        return network
    copy = scratch / "copy.onnx"
    if not copy.exists():
        import torch

        module, arguments = torch_module(network, inputs)
        with warnings.catch_warnings(), torch.no_grad(), fresh_file(copy) as fresh:
            warnings.simplefilter("ignore")  # the exporter that reads TorchScript is called deprecated
            mode = torch.onnx.TrainingMode.PRESERVE  # exported programs cannot be asked for another
            torch.onnx.export(module, arguments, fresh, input_names=list(inputs), training=mode, dynamo=False)
    return copy


def torch_module(network: Path, inputs: Mapping[str, NDArray[Any]]) -> tuple[Any, tuple[Any, ...]]:
    """A network of a file as torch runs it, and its inputs in the order of its arguments.

    Args:
        network: TorchScript, or a program that `torch.export.save` wrote.
        inputs: arrays by name.

    Raises:
        ValueError: it has other inputs.
    """
    import torch

    if network.suffix.lower() == EXPORTED:
        module = torch.export.load(network).module()
        module.training = False
        return module, tuple(torch.from_numpy(array) for array in inputs.values())
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # TorchScript is called deprecated; the file is there all the same
        script = torch.jit.load(str(network), map_location="cpu").eval()  # type: ignore[no-untyped-call]
    names = [argument.name for argument in script.forward.schema.arguments[1:]]
    check_inputs(names, inputs)
    return script, tuple(torch.from_numpy(inputs[name]) for name in names)


def check_inputs(names: Sequence[str], inputs: Mapping[str, NDArray[Any]]) -> None:
    """Refuse a network whose inputs are not those that the tuned one has.

    Raises:
        ValueError: they are not.
    """
    if set(names) != set(inputs):
        raise ValueError(f"inputs {', '.join(names)} instead of {', '.join(inputs)}")
