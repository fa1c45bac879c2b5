"""A transformer encoder layer in Relay, as BERT has it."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tlp_tvm.ansor.loading.locate import load_tvm


def transformer_layer(
    sequence: int, hidden: int, heads: int, feed_forward: int, batch: int
) -> tuple[Any, dict[str, Any]]:
    """Self-attention and feed-forward block with residuals, layer norms after each, and an erf-GELU.

    Args:
        sequence: tokens.
        hidden: width of a token.
        heads: attention heads; divides `hidden`.
        feed_forward: width inside the feed-forward block.
        batch: sequences at a time.

    Returns:
        The Relay module with the input "x" of shape (batch * sequence, hidden), and parameters by name.
    """
    tvm = load_tvm()
    relay = tvm.relay

    def variable(name: str, *shape: int) -> Any:
        return relay.var(name, shape=shape, dtype="float32")

    def dense(x: Any, name: str, inputs: int, outputs: int) -> Any:
        product = relay.nn.dense(x, variable(f"{name}_weight", outputs, inputs))
        return relay.nn.bias_add(product, variable(f"{name}_bias", outputs), axis=-1)

    def layer_norm(x: Any, name: str) -> Any:
        return relay.nn.layer_norm(x, variable(f"{name}_scale", hidden), variable(f"{name}_shift", hidden))

    def gelu(x: Any) -> Any:
        # Two constants of 0.5: a shared one becomes a parameter of the fused operator, and so another task.
        half = relay.const(0.5) + relay.erf(x * relay.const(math.sqrt(0.5))) * relay.const(0.5)
        return x * half

    def by_head(x: Any) -> Any:  # (batch * sequence, hidden) -> (batch * heads, sequence, hidden / heads)
        x = relay.reshape(x, (batch, sequence, heads, hidden // heads))
        return relay.reshape(relay.transpose(x, (0, 2, 1, 3)), (batch * heads, sequence, hidden // heads))

    def by_token(x: Any) -> Any:  # back again
        x = relay.reshape(x, (batch, heads, sequence, hidden // heads))
        return relay.reshape(relay.transpose(x, (0, 2, 1, 3)), (batch * sequence, hidden))

    x = variable("x", batch * sequence, hidden)
    query, key, value = (by_head(dense(x, name, hidden, hidden)) for name in ("query", "key", "value"))
    logits = relay.nn.batch_matmul(query, key) * relay.const(np.float32(1 / math.sqrt(hidden // heads)))
    attention = relay.nn.batch_matmul(relay.nn.softmax(logits, axis=-1), relay.transpose(value, (0, 2, 1)))
    attended = layer_norm(dense(by_token(attention), "projection", hidden, hidden) + x, "norm_1")
    inner = gelu(dense(attended, "feed_forward_1", hidden, feed_forward))
    output = layer_norm(dense(inner, "feed_forward_2", feed_forward, hidden) + attended, "norm_2")

    function = relay.Function(relay.analysis.free_vars(output), output)
    module = relay.transform.InferType()(tvm.IRModule.from_expr(function))
    generator = np.random.default_rng(0)
    parameters = {}
    for parameter in module["main"].params:
        if parameter.name_hint != "x":
            shape = [int(extent) for extent in parameter.type_annotation.shape]
            # Small, so that activations stay finite through the layer.
            values = generator.standard_normal(shape, dtype=np.float32) / np.float32(math.sqrt(hidden))
            parameters[parameter.name_hint] = tvm.nd.array(values)
    return module, parameters
