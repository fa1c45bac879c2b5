"""Layers of networks in Relax, in the layouts in which MetaSchedule's CPU programs are fast."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.metaschedule.loading.locate import load_tvm


class Layers:
    """Emits a network's operators one after the other; convolutions are NHWC, with a bias as after folding.

    Attributes:
        parameters: name -> random values, the same at every call.
    """

    def __init__(self, *shape: int) -> None:
        """Begin a network.

        Args:
            shape: of its one input, "x".
        """
        tvm = load_tvm()
        from tvm import relax

        self._relax = relax
        self._op = relax.op
        self._builder = relax.BlockBuilder()
        self._random = np.random.default_rng(0)
        self._variables: list[Any] = []
        self.parameters: dict[str, Any] = {}
        self._tensor = tvm.runtime.tensor
        self._shape = shape

    def network(self, build: Any) -> Any:
        """The network as a Relax module.

        Args:
            build: function of the input that emits all and gives the output.
        """
        x = self._relax.Var("x", self._relax.TensorType(self._shape, "float32"))
        with self._builder.function("main", attrs={"num_input": 1}):
            with self._builder.dataflow():
                output = self._builder.emit_output(build(x))
            self._builder.emit_func_output(output, [x, *self._variables])
        return self._builder.get()

    def emit(self, expression: Any) -> Any:
        """Any operator."""
        return self._builder.emit(expression)

    def constant(self, value: float) -> Any:
        """A float32 scalar."""
        return self._relax.const(value, "float32")

    def weight(self, *shape: int) -> Any:
        """A parameter; its values keep activations finite."""
        name = f"p{len(self._variables)}"
        fan_in = math.prod(shape[:-1]) if len(shape) > 1 else 10_000
        values: NDArray[np.float32] = self._random.standard_normal(shape, dtype=np.float32)
        self.parameters[name] = self._tensor(values / np.float32(math.sqrt(fan_in)))
        self._variables.append(self._relax.Var(name, self._relax.TensorType(shape, "float32")))
        return self._variables[-1]

    def channels(self, x: Any) -> int:
        """Extent of the last axis."""
        return int(x.ty.shape[-1])

    def conv(
        self, x: Any, outputs: int, kernel: int, stride: int = 1, *, groups: int = 1, relu: bool = True
    ) -> Any:
        """Convolution that keeps the size at stride 1, bias, and ReLU if asked for."""
        inputs = self.channels(x) // groups
        y = self.emit(
            self._op.nn.conv2d(
                x,
                self.weight(kernel, kernel, inputs, outputs),
                strides=stride,
                padding=kernel // 2,
                groups=groups,
                data_layout="NHWC",
                kernel_layout="HWIO",
            )
        )
        return self._biased(y, outputs, relu)

    def upscale(self, x: Any, outputs: int, *, relu: bool = True) -> Any:
        """Twice the size: nearest neighbours, then a convolution."""
        height, width = (int(extent) * 2 for extent in list(x.ty.shape)[1:3])
        x = self.emit(self._op.image.resize2d(x, (height, width), layout="NHWC", method="nearest_neighbor"))
        return self.conv(x, outputs, 5, relu=relu)

    def dense(self, x: Any, outputs: int, *, relu: bool = False) -> Any:
        """Matrix product with a bias, and ReLU if asked for."""
        y = self.emit(self._op.matmul(x, self.weight(self.channels(x), outputs)))
        return self._biased(y, outputs, relu)

    def add(self, x: Any, y: Any, *, relu: bool = False) -> Any:
        """Sum, and ReLU if asked for."""
        total = self.emit(self._op.add(x, y))
        return self.emit(self._op.nn.relu(total)) if relu else total

    def concatenated(self, *parts: Any) -> Any:
        """Channels of all parts."""
        return self.emit(self._op.concat(list(parts), axis=-1))

    def max_pool(self, x: Any, size: int = 3, stride: int = 2) -> Any:
        """Maximum of windows."""
        padding = (size - 1) // 2
        return self.emit(
            self._op.nn.max_pool2d(x, (size, size), (stride, stride), padding=padding, layout="NHWC")
        )

    def average_pool(self, x: Any, size: int = 2) -> Any:
        """Mean of windows that do not overlap."""
        return self.emit(self._op.nn.avg_pool2d(x, (size, size), (size, size), layout="NHWC"))

    def mean_of_image(self, x: Any) -> Any:
        """(N, H, W, C) -> (N, C)."""
        return self.emit(self._op.mean(x, axis=[1, 2]))

    def flat(self, x: Any) -> Any:
        """(N, ...) -> (N, all)."""
        shape = [int(extent) for extent in x.ty.shape]
        return self.reshaped(x, shape[0], math.prod(shape[1:]))

    def reshaped(self, x: Any, *shape: int) -> Any:
        """Another shape of the same size."""
        return self.emit(self._op.reshape(x, shape))

    def softmax(self, x: Any) -> Any:
        """Over the last axis."""
        return self.emit(self._op.nn.softmax(x, axis=-1))

    def layer_norm(self, x: Any) -> Any:
        """Over the last axis, with scale and shift."""
        width = self.channels(x)
        return self.emit(self._op.nn.layer_norm(x, self.weight(width), self.weight(width), axes=[-1]))

    def gelu(self, x: Any) -> Any:
        """The Gaussian error linear unit, x * Phi(x)."""
        inner = self.emit(self._op.erf(self.emit(self._op.multiply(x, self.constant(math.sqrt(0.5))))))
        half = self.emit(self._op.multiply(inner, self.constant(0.5)))
        return self.emit(self._op.multiply(x, self.emit(self._op.add(half, self.constant(0.5)))))

    def attention(self, x: Any, batch: int, sequence: int, heads: int) -> Any:
        """Self-attention of (batch * sequence, hidden), with its projection."""
        hidden = self.channels(x)
        shape = (batch, sequence, heads, hidden // heads)

        def by_head(part: Any, *axes: int) -> Any:
            return self.emit(self._op.permute_dims(self.reshaped(part, *shape), axes))

        query = by_head(self.dense(x, hidden), 0, 2, 1, 3)
        key = by_head(self.dense(x, hidden), 0, 2, 3, 1)
        value = by_head(self.dense(x, hidden), 0, 2, 1, 3)
        logits = self.emit(self._op.matmul(query, key))
        scaled = self.emit(self._op.multiply(logits, self.constant(1 / math.sqrt(hidden // heads))))
        attended = self.emit(self._op.matmul(self.softmax(scaled), value))
        joined = self.emit(self._op.permute_dims(attended, (0, 2, 1, 3)))
        return self.dense(self.reshaped(joined, batch * sequence, hidden), hidden)

    def _biased(self, y: Any, outputs: int, relu: bool) -> Any:
        y = self.emit(self._op.add(y, self.weight(outputs)))
        return self.emit(self._op.nn.relu(y)) if relu else y
