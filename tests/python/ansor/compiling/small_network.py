"""A network whose weights Ansor lays out anew, and programs of it, compiled as if they were measured."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlp_tvm.ansor.compiling.kept_code import Code, name_of
from tlp_tvm.ansor.compiling.newer_llvm import newer_llvm
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring import work

FLOAT = "float32"


def network() -> Any:
    """Convolutions, one of them in Winograd's way, a difference of images, a softmax of products."""
    tvm = load_tvm()
    relay, random = tvm.relay, np.random.default_rng(0)

    def weight(*shape: int) -> Any:
        return relay.const(random.standard_normal(shape).astype(FLOAT) / 8)

    def convolved(image: Any, channels: int, taps: int, **options: Any) -> Any:
        weights = weight(channels, int(options.pop("of")), taps, taps)
        return relay.nn.conv2d(image, weights, channels=channels, kernel_size=(taps, taps), **options)

    image = relay.var("image", shape=(1, 16, 14, 14))
    first = relay.nn.relu(convolved(image, 128, 1, of=16))
    second = convolved(first, 128, 3, of=128, padding=(1, 1))
    third = convolved(relay.nn.relu(relay.subtract(first, second)), 32, 3, of=128, strides=(2, 2))
    flat = relay.nn.batch_flatten(relay.nn.avg_pool2d(third, (6, 6)))
    last = relay.nn.softmax(relay.nn.bias_add(relay.nn.dense(flat, weight(24, 32)), weight(24)))
    return tvm.IRModule.from_expr(relay.Function([image], last))


def record_of(task: Any, state: Any) -> tuple[str, Code]:
    """A program's line of a log, and its code."""
    tvm = load_tvm()
    program = tvm.auto_scheduler.MeasureInput(task, state)
    result = tvm.auto_scheduler.MeasureResult([0.1], 0, "", 0.1, 1)
    line = str(tvm.auto_scheduler.measure_record.dump_record_to_string(program, result)).rstrip("\n") + "\n"
    serialized = program.serialize()
    of = work.Serialized(serialized, newer_llvm(tvm), name_of(serialized[0]))
    built, _, message = work.compiled(of)
    assert built is not None, message
    assert built.code is not None
    return line, built.code
