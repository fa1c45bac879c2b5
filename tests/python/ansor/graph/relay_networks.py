"""Small Relay networks as importers leave them, and what they compute."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.ansor.loading.locate import load_tvm


def module_of(body: Any) -> Any:
    """The Relay module of an expression over its free variables."""
    tvm = load_tvm()
    relay = tvm.relay
    return relay.transform.InferType()(
        tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    )


def constant(*shape: int, seed: int = 0) -> Any:
    """Random constants."""
    values = np.random.default_rng(seed).standard_normal(shape, dtype=np.float32)
    return load_tvm().relay.const(values / max(shape) ** 0.5)


def outputs_of(module: Any) -> list[NDArray[Any]]:
    """What it gives for inputs that are the same at every call."""
    tvm = load_tvm()
    from tvm.contrib import graph_executor

    with tvm.transform.PassContext(opt_level=1):
        library = tvm.relay.build(module, target="llvm -num-cores=1")
    executor = graph_executor.GraphModule(library["default"](tvm.cpu()))
    generator = np.random.default_rng(1)
    for variable in module["main"].params:
        shape = [int(extent) for extent in variable.type_annotation.shape]
        executor.set_input(variable.name_hint, generator.standard_normal(shape, dtype=np.float32))
    executor.run()
    return [executor.get_output(i).numpy() for i in range(executor.get_num_outputs())]


def operators_of(module: Any) -> list[str]:
    """Names of the operators, in the order of execution."""
    relay = load_tvm().relay
    names: list[str] = []

    def visit(expression: Any) -> None:
        if isinstance(expression, relay.Call):
            names.append(str(expression.op.name))

    relay.analysis.post_order_visit(module["main"].body, visit)
    return names


def linear(data: Any, batch: int, columns_in: int, columns_out: int, seed: int) -> Any:
    """A linear layer on three axes as TVM's importer of PyTorch writes it."""
    relay = load_tvm().relay
    weights = constant(1, columns_out, columns_in, seed=seed)
    product = relay.nn.batch_matmul(data, relay.broadcast_to(weights, (batch, columns_out, columns_in)))
    return relay.nn.bias_add(relay.squeeze(product, axis=[]), constant(columns_out, seed=seed + 50), axis=-1)
