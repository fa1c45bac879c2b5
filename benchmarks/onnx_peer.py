"""A model of `transformers` in ONNX Runtime, in a process of its own.

In the process that times PyTorch it would not be fair: once torch has written the ONNX copy, eager PyTorch
takes 15 ms there for a BERT of four layers instead of 10 (AMD EPYC, family 25 model 1).
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable
from multiprocessing import get_context
from multiprocessing.connection import Connection
from typing import Any

import numpy as np
import torch
from network_exports import FirstOutput
from numpy.typing import NDArray

RUN_S = 0.5
"""Seconds of one timing, at least."""

Make = Callable[[str], tuple[torch.nn.Module, dict[str, torch.Tensor]]]
"""Name -> model, and its one input by name."""


def seconds_of(run: Callable[[], Any]) -> float:
    """What a run takes, the mean over half a second, after one that does not count."""
    run()
    began, runs = time.perf_counter(), 0
    while time.perf_counter() - began < RUN_S:
        run()
        runs += 1
    return (time.perf_counter() - began) / runs


class OnnxPeer:
    """The process; it waits between timings."""

    def __init__(self, make: Make, name: str) -> None:
        """Export a model and load it; ends this process where that cannot be.

        Args:
            make: gives the model.
            name: of the model.
        """
        context = get_context("spawn")
        self._pipe, theirs = context.Pipe()
        words = (make, name, torch.get_num_threads(), theirs)
        context.Process(target=_serve, args=words, daemon=True).start()
        theirs.close()  # so that the end of the process ends the wait
        try:
            answer = self._pipe.recv()
        except EOFError:
            answer = "its process ended"
        if isinstance(answer, str):
            raise SystemExit(f"{name}, ONNX Runtime: {answer}")
        self.first = torch.from_numpy(answer)
        """The first output."""

    def seconds(self) -> float:
        """What a run takes now."""
        self._pipe.send(None)
        taken: float = self._pipe.recv()
        return taken


def _serve(make: Make, name: str, threads: int, pipe: Connection) -> None:
    torch.set_num_threads(threads)
    try:
        run = _session(*make(name), threads)
        pipe.send(run())
    except Exception as error:  # noqa: BLE001 - whatever it is, the other process says it
        pipe.send((str(error).strip().splitlines() or [type(error).__name__])[0][:200])
        return
    while True:
        try:
            pipe.recv()
        except EOFError:
            return
        pipe.send(seconds_of(run))


def _session(
    network: torch.nn.Module, given: dict[str, torch.Tensor], threads: int
) -> Callable[[], NDArray[np.float32]]:
    import onnxruntime

    ((named, x),) = given.items()
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
    with tempfile.TemporaryDirectory() as folder, torch.no_grad():
        file = f"{folder}/copy.onnx"
        copied = FirstOutput(network, named, masked=named == "input_ids")
        torch.onnx.export(copied, (x,), file, input_names=[named], dynamo=False)
        session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return lambda: session.run(None, {named: x.numpy()})[0]
