"""How each peer loads a network and runs it; used in the peers' own processes.

Each takes NumPy arrays and gives NumPy arrays through its own Python interface, as our library does.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.beside.onnx_copy import EXPORTED, check_inputs, onnx_of, torch_module
from tlp_tvm.beside.peer_kinds import OURS
from tlp_tvm.framework import framework_named
from tlp_tvm.tuning.network.tuned_library import framework_that_tuned, read_description, tensor_of
from tlp_tvm.tuning.network.turns import random_values

Arrays = Mapping[str, NDArray[Any]]
Run = Callable[[], list[NDArray[Any]]]


@dataclass(frozen=True)
class Job:
    """What a process is to run.

    Attributes:
        peer: one of `peer_kinds.PEERS`, or `OURS`.
        network: its file.
        folder: of the tuning, with the tuned library and what its inputs are.
        scratch: folder for files of all the processes.
        threads: to run with.
    """

    peer: str
    network: Path
    folder: Path
    scratch: Path
    threads: int


def inputs_of(folder: Path) -> dict[str, NDArray[Any]]:
    """Arrays for the inputs of a tuned network, the same in every process.

    Args:
        folder: of the tuning.
    """
    generator = np.random.default_rng(0)
    described = read_description(folder)[0]["inputs"]
    tensors = {name: tensor_of(value) for name, value in described.items()}
    return {
        name: random_values(tensor.shape, tensor.dtype, generator, tensor.below)
        for name, tensor in tensors.items()
    }


def load(job: Job) -> Run:
    """Load a network as a peer runs it; each call of what is returned runs it once."""
    return _LOADERS[job.peer](job, inputs_of(job.folder))


def _ours(job: Job, inputs: Arrays) -> Run:
    framework = framework_that_tuned(read_description(job.folder)[0])
    network = framework_named(framework).load_tuned(job.folder)
    return lambda: list(network(inputs))


def _onnxruntime(job: Job, inputs: Arrays) -> Run:
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = job.threads
    options.log_severity_level = 3
    path = str(onnx_of(job.network, inputs, job.scratch))
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    check_inputs([each.name for each in session.get_inputs()], inputs)
    return lambda: list(session.run(None, dict(inputs)))


def _openvino(job: Job, inputs: Arrays) -> Run:
    import openvino

    core = openvino.Core()
    model = core.read_model(str(onnx_of(job.network, inputs, job.scratch)))
    check_inputs([each.get_any_name() for each in model.inputs], inputs)
    if model.is_dynamic():
        model.reshape({name: list(array.shape) for name, array in inputs.items()})
    how = {
        "INFERENCE_NUM_THREADS": job.threads,
        "PERFORMANCE_HINT": "LATENCY",
        "INFERENCE_PRECISION_HINT": "f32",  # some processors would compute in bfloat16
    }
    request = core.compile_model(model, "CPU", how).create_infer_request()

    def run() -> list[NDArray[Any]]:
        found = request.infer(dict(inputs))
        return [np.array(found[i]) for i in range(len(found))]

    return run


def _torch(job: Job, inputs: Arrays) -> Run:
    import torch

    torch.set_num_threads(job.threads)
    module, arguments = torch_module(job.network, inputs)
    with warnings.catch_warnings(), torch.inference_mode():
        warnings.simplefilter("ignore")  # TorchScript is called deprecated
        if job.network.suffix.lower() == EXPORTED:
            module = torch.jit.trace(module, arguments)  # type: ignore[no-untyped-call]
        module = torch.jit.optimize_for_inference(torch.jit.freeze(module.eval()))
    return _torch_run(module, arguments)


def _torch_compile(job: Job, inputs: Arrays) -> Run:
    import torch

    torch.set_num_threads(job.threads)
    module, arguments = torch_module(job.network, inputs)
    if job.network.suffix.lower() != EXPORTED:  # the compiler reads Python, and TorchScript is none
        from torch._export.converter import TS2EPConverter

        module = TS2EPConverter(module, arguments).convert().module()
    return _torch_run(torch.compile(module), arguments)


def _torch_run(module: Any, arguments: tuple[Any, ...]) -> Run:
    import torch

    def run() -> list[NDArray[Any]]:
        with torch.inference_mode():
            return [tensor.numpy() for tensor in _flat(module(*arguments))]

    return run


def _flat(value: Any) -> list[Any]:
    if isinstance(value, Mapping):
        value = tuple(value.values())
    if isinstance(value, tuple | list):
        return [tensor for each in value for tensor in _flat(each)]
    return [value]


_LOADERS: dict[str, Callable[[Job, Arrays], Run]] = {
    OURS: _ours,
    "onnxruntime": _onnxruntime,
    "openvino": _openvino,
    "torch": _torch,
    "torch-compile": _torch_compile,
}
