"""Layer norm as one operator: Relay's own falls apart into four kernels that each walk the whole tensor."""

from __future__ import annotations

import functools
from typing import Any

from tlp_tvm.ansor.graph.replacing import register_operator
from tlp_tvm.ansor.loading.locate import load_tvm

OPERATOR = "tlp_tvm.layer_norm"

_LANES = 16
"""Partial sums of a row, so that compilers vectorise a sum whose order they must keep."""


def with_whole_layer_norms(module: Any) -> Any:
    """Replace what `SimplifyInference` and exporters make of layer norms by the operator.

    Args:
        module: Relay module whose layer norms are of matrices (`rows.with_fewer_axes`).

    Returns:
        The module, with types.
    """
    tvm = load_tvm()
    register()
    infer = tvm.relay.transform.InferType()
    typed = infer(tvm.relay.transform.EliminateCommonSubexpr()(infer(module)))  # a mean that is taken twice
    main = tvm.relay.dataflow_pattern.rewrite(_callback(), typed["main"])
    return infer(tvm.IRModule.from_expr(main))


def _callback() -> Any:
    from tvm.relay import const
    from tvm.relay.dataflow_pattern import DFPatternCallback, is_constant, is_op, wildcard

    class LayerNorm(DFPatternCallback):  # type: ignore[misc]
        """d / sqrt(var + eps) * gamma + beta, or d * rsqrt(...): d is x - mean, var has three forms."""

        def __init__(self) -> None:
            super().__init__()
            self.x, self.eps, self.gamma, self.beta = wildcard(), is_constant(), is_constant(), is_constant()
            self.mean = is_op("mean")(self.x)
            self.difference = is_op("subtract")(self.x, self.mean)
            other = is_op("subtract")(self.x, self.mean)  # written twice by some exporters
            square = (
                is_op("multiply")(self.difference, self.difference)
                | is_op("power")(self.difference, is_constant())
                | is_op("power")(other, is_constant())
            )
            self.variance = is_op("mean")(square) | is_op("variance")(self.x, self.mean)
            shifted = is_op("add")(self.variance, self.eps)
            normal = is_op("divide")(self.difference, is_op("sqrt")(shifted)) | is_op("multiply")(
                self.difference, is_op("rsqrt")(shifted)
            )
            self.pattern = is_op("add")(is_op("multiply")(normal, self.gamma), self.beta)

        def callback(self, pre: Any, post: Any, found: Any) -> Any:
            x, eps, gamma, beta = (found[each][0] for each in (self.x, self.eps, self.gamma, self.beta))
            shape = [int(extent) for extent in pre.checked_type.shape]
            if not _fits(shape, found, self.mean, eps, gamma, beta):
                return post
            columns = (shape[-1],)
            vectors = [const(each.data.numpy().reshape(columns)) for each in (gamma, beta)]
            attributes = load_tvm().ir.make_node("DictAttrs", epsilon=float(eps.data.numpy()))
            return load_tvm().relay.Call(load_tvm().relay.op.get(OPERATOR), [x, *vectors], attributes)

    return LayerNorm()


def _fits(shape: list[int], found: Any, mean: Any, eps: Any, gamma: Any, beta: Any) -> bool:
    """Whether it is over the rows of a float32 matrix, with one scale and shift a column."""
    attributes = found[mean][0].attrs
    over_rows = [int(axis) % len(shape) for axis in attributes.axis or ()] == [len(shape) - 1]
    sizes = [each.data.numpy().size for each in (gamma, beta)]
    kind = str(found[mean][0].checked_type.dtype)
    return (
        len(shape) == 2
        and over_rows
        and bool(attributes.keepdims)
        and eps.data.numpy().size == 1
        and sizes == [shape[-1]] * 2
        and kind == "float32"
    )


@functools.cache
def register() -> None:
    """Tell TVM of the operator, once a process."""
    register_operator(
        OPERATOR,
        "Normalise the rows of a matrix to mean 0 and variance 1, then scale and shift.",
        ("data", "gamma", "beta"),
        lambda kinds, _attributes: kinds[0],
        _computed,
        scheduled,
    )


def _computed(inputs: Any, attributes: Any) -> Any:
    data, gamma, beta = inputs
    return layer_norm(data, gamma, beta, float(attributes["epsilon"]))


def layer_norm(data: Any, gamma: Any, beta: Any, epsilon: float) -> Any:
    """The operator on `te` tensors.

    Args:
        data: (rows, columns).
        gamma: (columns,), scale.
        beta: (columns,), shift.
        epsilon: added to the variance.
    """
    tvm = load_tvm()
    te, tir = tvm.te, tvm.tir
    rows, columns = (int(extent) for extent in data.shape)
    lanes = next(lanes for lanes in (_LANES, 8, 4, 1) if columns % lanes == 0)
    one = tir.const(1.0 / columns, data.dtype)

    def sum_of_rows(value: Any, name: str) -> Any:
        chunk = te.reduce_axis((0, columns // lanes), name="k")
        lane = te.reduce_axis((0, lanes), name="l")
        partial = te.compute(
            (rows, lanes), lambda i, j: te.sum(value(i, chunk * lanes + j), axis=chunk), name=f"{name}_lanes"
        )
        return te.compute((rows,), lambda i: te.sum(partial[i, lane], axis=lane), name=name)

    total = sum_of_rows(lambda i, j: data[i, j], "total")

    def square(i: Any, j: Any) -> Any:
        difference = data[i, j] - total[i] * one
        return difference * difference

    squares = sum_of_rows(square, "squares")
    return te.compute(
        (rows, columns),
        lambda i, j: (
            (data[i, j] - total[i] * one)
            * tir.rsqrt(squares[i] * one + tir.const(epsilon, data.dtype))
            * gamma[j]
            + beta[j]
        ),
        name="layer_norm",
    )


def scheduled(outs: Any) -> Any:
    """A schedule for CPUs and for whatever else compiles loops: a row after the other, in parallel."""
    te = load_tvm().te
    [out] = list(outs)
    schedule = te.create_schedule(out.op)
    row, column = schedule[out].op.axis
    schedule[out].parallel(row)
    _outer, inner = schedule[out].split(column, _LANES)
    schedule[out].vectorize(inner)
    for stage in schedule.stages:
        if stage.op.name.startswith(("total", "squares")):
            stage.compute_at(schedule[out], row)
            if stage.op.name.endswith("_lanes"):
                lane = stage.op.axis[1]
                stage.reorder(*stage.op.reduce_axis, lane)
                stage.vectorize(lane)
    return schedule
