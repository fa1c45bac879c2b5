"""The built-in networks of MetaSchedule's side: the same names as Ansor's, written in Relax."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tlp_tvm.metaschedule.networks.layers import Layers

Builder = Callable[[int, int], tuple[Any, dict[str, Any]]]
"""Function of size (0 where there is but one) and batch that gives a Relax module and its parameters."""

_CLASSES = 1000


def _of(shape: tuple[int, ...], build: Callable[[Layers, Any], Any]) -> tuple[Any, dict[str, Any]]:
    layers = Layers(*shape)
    return layers.network(lambda x: build(layers, x)), layers.parameters


def _resnet(blocks: tuple[int, ...], *, bottleneck: bool) -> Builder:
    def block(net: Layers, x: Any, width: int, stride: int) -> Any:
        outputs = width * 4 if bottleneck else width
        if bottleneck:
            y = net.conv(x, width, 1)
            y = net.conv(y, width, 3, stride)
            y = net.conv(y, outputs, 1, relu=False)
        else:
            y = net.conv(net.conv(x, width, 3, stride), width, 3, relu=False)
        if stride != 1 or net.channels(x) != outputs:
            x = net.conv(x, outputs, 1, stride, relu=False)
        return net.add(y, x, relu=True)

    def network(net: Layers, x: Any) -> Any:
        x = net.max_pool(net.conv(x, 64, 7, 2))
        for stage, count in enumerate(blocks):
            for i in range(count):
                x = block(net, x, 64 << stage, 2 if stage and not i else 1)
        return net.softmax(net.dense(net.mean_of_image(x), _CLASSES))

    return lambda size, batch: _of((batch, size, size, 3), network)


def _mobilenet(size: int, batch: int) -> tuple[Any, dict[str, Any]]:
    def network(net: Layers, x: Any) -> Any:
        x = net.conv(x, 32, 3, 2)
        steps = [(64, 1), (128, 2), (128, 1), (256, 2), (256, 1), (512, 2)]
        for outputs, stride in [*steps, *[(512, 1)] * 5, (1024, 2), (1024, 1)]:
            inputs = net.channels(x)
            x = net.conv(net.conv(x, inputs, 3, stride, groups=inputs), outputs, 1)
        return net.softmax(net.dense(net.mean_of_image(x), _CLASSES))

    return _of((batch, size, size, 3), network)


def _vgg(size: int, batch: int) -> tuple[Any, dict[str, Any]]:
    def network(net: Layers, x: Any) -> Any:
        for count, outputs in ((1, 64), (1, 128), (2, 256), (2, 512), (2, 512)):
            for _ in range(count):
                x = net.conv(x, outputs, 3)
            x = net.max_pool(x, 2)
        x = net.dense(net.dense(net.flat(x), 4096, relu=True), 4096, relu=True)
        return net.softmax(net.dense(x, _CLASSES))

    return _of((batch, size or 224, size or 224, 3), network)


def _squeezenet(size: int, batch: int) -> tuple[Any, dict[str, Any]]:
    def fire(net: Layers, x: Any, squeeze: int, expand: int) -> Any:
        y = net.conv(x, squeeze, 1)
        return net.concatenated(net.conv(y, expand, 1), net.conv(y, expand, 3))

    def network(net: Layers, x: Any) -> Any:
        x = net.max_pool(net.conv(x, 96, 7, 2))
        for squeeze, expand in ((16, 64), (16, 64), (32, 128)):
            x = fire(net, x, squeeze, expand)
        x = net.max_pool(x)
        for squeeze, expand in ((32, 128), (48, 192), (48, 192), (64, 256)):
            x = fire(net, x, squeeze, expand)
        x = fire(net, net.max_pool(x), 64, 256)
        return net.softmax(net.mean_of_image(net.conv(x, _CLASSES, 1)))

    return _of((batch, size or 224, size or 224, 3), network)


def _densenet(size: int, batch: int) -> tuple[Any, dict[str, Any]]:
    def network(net: Layers, x: Any) -> Any:
        x = net.max_pool(net.conv(x, 64, 7, 2))
        for stage, count in enumerate((6, 12, 24, 16)):
            if stage:
                x = net.average_pool(net.conv(x, net.channels(x) // 2, 1))
            for _ in range(count):
                x = net.concatenated(x, net.conv(net.conv(x, 128, 1), 32, 3))
        return net.softmax(net.dense(net.mean_of_image(x), _CLASSES))

    return _of((batch, size or 224, size or 224, 3), network)


def _dcgan(_size: int, batch: int) -> tuple[Any, dict[str, Any]]:
    def network(net: Layers, x: Any) -> Any:
        x = net.reshaped(net.dense(x, 4 * 4 * 512, relu=True), batch, 4, 4, 512)
        for outputs in (256, 128, 64):
            x = net.upscale(x, outputs)
        return net.upscale(x, 3, relu=False)

    return _of((batch, 100), network)


def _mlp(_size: int, batch: int) -> tuple[Any, dict[str, Any]]:
    def network(net: Layers, x: Any) -> Any:
        x = net.dense(net.dense(x, 128, relu=True), 64, relu=True)
        return net.softmax(net.dense(x, 10))

    return _of((batch, 28 * 28), network)


def _dqn(_size: int, batch: int) -> tuple[Any, dict[str, Any]]:
    def network(net: Layers, x: Any) -> Any:
        x = net.conv(net.conv(net.conv(x, 32, 8, 4), 64, 4, 2), 64, 3)
        return net.dense(net.dense(net.flat(x), 512, relu=True), 18)

    return _of((batch, 84, 84, 4), network)


def _transformer(hidden: int, heads: int, feed_forward: int) -> Builder:
    def build(size: int, batch: int) -> tuple[Any, dict[str, Any]]:
        def layer(net: Layers, x: Any) -> Any:
            attended = net.layer_norm(net.add(net.attention(x, batch, size, heads), x))
            inner = net.gelu(net.dense(attended, feed_forward))
            return net.layer_norm(net.add(net.dense(inner, hidden), attended))

        return _of((batch * size, hidden), layer)

    return build


BUILDERS: dict[str, Builder] = {
    "resnet_18": _resnet((2, 2, 2, 2), bottleneck=False),
    "resnet_34": _resnet((3, 4, 6, 3), bottleneck=False),
    "resnet_50": _resnet((3, 4, 6, 3), bottleneck=True),
    "mobilenet": _mobilenet,
    "vgg_11": _vgg,
    "squeezenet": _squeezenet,
    "densenet_121": _densenet,
    "dcgan": _dcgan,
    "mlp": _mlp,
    "dqn": _dqn,
    "bert_tiny": _transformer(128, 2, 512),
    "bert_mini": _transformer(256, 4, 1024),
    "bert_small": _transformer(512, 8, 2048),
    "bert_base": _transformer(768, 12, 3072),
    "bert_large": _transformer(1024, 16, 4096),
    "gpt_like": _transformer(384, 6, 1536),
    "vit_tiny": _transformer(192, 3, 768),
}
"""Key of Ansor's `ARCHITECTURES`, which says family, split and sizes -> what makes the network."""
