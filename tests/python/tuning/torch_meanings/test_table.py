"""What operators are in terms of others, they are."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
import torch

from tlp_tvm.tuning.torch_meanings.overloads import by_place
from tlp_tvm.tuning.torch_meanings.table import MEANINGS

torch.manual_seed(0)
IMAGE = torch.randn(2, 4, 7, 9)
X, Y = torch.randn(5, 8), torch.randn(6, 8)
WHOLE = torch.randint(-9, 9, (4, 6))
HEADS = [torch.randn(2, heads, 5, 8) for heads in (4, 2, 2)]
TABLE, WORDS = torch.randn(20, 6), torch.randint(0, 20, (10,))
ENCODER = torch.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True).requires_grad_(False)
ATTENTION = ENCODER.self_attn
IN = (ATTENTION.in_proj_weight, ATTENTION.in_proj_bias, ATTENTION.out_proj.weight, ATTENTION.out_proj.bias)
NORMS = (ENCODER.norm1.weight, ENCODER.norm1.bias, ENCODER.norm2.weight, ENCODER.norm2.bias)
FED = (ENCODER.linear1.weight, ENCODER.linear1.bias, ENCODER.linear2.weight, ENCODER.linear2.bias)
ROWS = torch.randn(3, 5, 8)
MASK = torch.ones(5, 5).triu(1).bool()
ENDS = torch.tensor([float("inf"), -float("inf"), float("nan"), 1.0])

CASES: dict[str, Sequence[Any]] = {
    "_cdist_forward": (X, Y, 2.0, None),
    "_convolution": (
        *(IMAGE, torch.randn(4, 3, 4, 3), torch.randn(6), [2, 1], [1, 0], [1, 2], True, [1, 0], 2),
        *(False, False, False, False),
    ),
    "_embedding_bag": (TABLE, WORDS, torch.tensor([0, 3, 3, 8]), False, 1, False, None, False, -1),
    "_native_multi_head_attention": (ROWS, ROWS, ROWS, 8, 2, *IN, MASK, True, True, 0),
    "_transformer_encoder_layer_fwd": (ROWS, 8, 2, *IN, True, True, 1e-5, *NORMS, *FED, None, None),
    "_upsample_bilinear2d_aa": (IMAGE, [3, 4], False, None, None),
    "acosh": (X.abs() + 1,),
    "adaptive_max_pool2d": (IMAGE, [3, 4]),
    "add": (X, X * X, 3),
    "aminmax": (X, 1, True),
    "any": (X > 9,),
    "as_strided": (X, [3, 4, 2], [8, 3, 1], 2),
    "asinh": (X,),
    "atan2": (X, X.flip(1)),
    "atanh": (torch.tanh(X),),
    "avg_pool2d": (IMAGE, [3, 3], [2, 2], [1, 1], False, False, 5),
    "bilinear": (X, X[:, :3], torch.randn(6, 8, 3), torch.randn(6)),
    "cat": ([torch.empty(0), X, X * 2], 1),
    "cdist": (X, Y, 1.0, None),
    "clamp": (WHOLE, -3, None),
    "clamp_max": (WHOLE, 3),
    "clamp_min": (WHOLE, 3),
    "convolution": (
        *(IMAGE[:, :, None].expand(2, 4, 3, 7, 9), torch.randn(4, 3, 2, 3, 3), None),
        *([2, 2, 1], [0, 1, 1], [1, 1, 1], True, [1, 0, 0], 1),
    ),
    "count_nonzero": (WHOLE, [1]),
    "diagonal": (IMAGE, -2, 2, 3),
    "div": (X, 0.3, "trunc"),
    "embedding_bag": (TABLE, WORDS, torch.tensor([0, 3, 8]), False, 2, False, None, False, None),
    "eq": (X > 0, X < 1),
    "erfc": (X,),
    "exp2": (X,),
    "expm1": (X,),
    "full": ([2, 3], -float("inf"), torch.float32, None, None, None),
    "full_like": (X, -float("inf"), None, None, None, None, None),
    "group_norm": (IMAGE, 2, None, None, 1e-5, True),
    "heaviside": (WHOLE.float(), torch.tensor(0.3)),
    "im2col": (IMAGE, [3, 2], [1, 2], [1, 0], [2, 1]),
    "index": (IMAGE, [None, torch.tensor([[0], [3]]), torch.tensor([2, 5, 6])]),
    "index_put": (IMAGE, [IMAGE > 1], torch.tensor(0.5), False),
    "layer_norm": (X, [8], None, None, 1e-5, True),
    "lerp": (X, X * X, 0.3),
    "logaddexp": (torch.cat([X[0], ENDS[:2]]), torch.cat([X[1], ENDS[:2]])),
    "max": (X, 1, False),
    "median": (X, 1, False),
    "meshgrid": ([X[0], X[1, :4]], "xy"),
    "min": (X, 0, True),
    "mish": (X * 9,),
    "mul": (X > 0, X < 1),
    "nan_to_num": (ENDS, None, None, None),
    "ne": (X > 0, 0),
    "pad": (IMAGE, [1, 2, 3, 0], "circular", None),
    "round": (X, 2),
    "rrelu": (X, 0.1, 0.3, False, None),
    "scaled_dot_product_attention": (*HEADS, None, 0.0, False, 0.7, True),
    "sum": (X > 0, [1], False, None),
    "unfold": (IMAGE, 3, 4, 2),
    "upsample_nearest2d": (IMAGE, [5, 11], None, None),
    "var_mean": (X, [1], 1, True),
}
CHOSEN = {
    "adaptive_max_pool2d of equal parts": ("adaptive_max_pool2d", (IMAGE[..., :8], [7, 4])),
    "bags by sums of shares": (
        "_embedding_bag",
        (TABLE, WORDS, torch.tensor([0, 4, 10]), False, 0, False, torch.rand(10), True, -1),
    ),
    "bags with padding": (
        "_embedding_bag",
        (TABLE, WORDS, torch.tensor([0, 4]), False, 1, False, None, False, int(WORDS[0])),
    ),
    "clamp by tensors": ("clamp", (X, X * 0.5, X + 9)),
    "diagonal above": ("diagonal", (IMAGE, 1, -1, 0)),
    "encoder with what is padded": (
        "_transformer_encoder_layer_fwd",
        (ROWS, 8, 2, *IN, False, False, 1e-5, *NORMS, *FED, torch.arange(15).reshape(3, 5) % 5 > 3, 1),
    ),
    "equals one": ("eq", (X > 0, 1)),
    "equals three": ("eq", (X > 0, 3)),
    "far index": ("index", (IMAGE, [torch.tensor([0, 1]), None, torch.tensor([2, 5])])),
    "more where a mask is": ("index_put", (X, [X[:, 0] > 0], torch.tensor([0.5]), True)),
    "strides of a transposed tensor": ("as_strided", (X.T, [3, 4], [1, 8], None)),
    "median of all": ("median", (X,)),
    "nearest by factors": ("upsample_nearest2d", (IMAGE, None, [1.5, 0.7])),
}


@pytest.mark.parametrize("name", [*CASES, *CHOSEN])
def test_an_operator_is_what_it_is_in_torch(name: str) -> None:
    operator, given = CHOSEN[name] if name in CHOSEN else (name, CASES[name])

    found = MEANINGS[operator](*given)

    expected = in_torch(operator, given)
    found, expected = ([each] if isinstance(each, torch.Tensor) else list(each) for each in (found, expected))
    for ours, theirs in zip(found, expected, strict=True):
        if ours is not None:
            assert ours.dtype == theirs.dtype
            torch.testing.assert_close(ours, theirs, rtol=1e-5, atol=1e-5)


def test_every_meaning_is_looked_at() -> None:
    assert set(CASES) == set(MEANINGS)


def in_torch(operator: str, given: Sequence[Any]) -> Any:
    """What torch gives by the overload that takes such arguments."""
    packet = getattr(torch.ops.aten, operator)
    for name in packet.overloads():
        overload = getattr(packet, name)
        if len(overload._schema.arguments) == len(given) and "out" not in name:
            try:
                return by_place(overload)(*given)
            except (RuntimeError, TypeError):  # another overload takes these
                continue
    raise AssertionError(f"no overload of {operator} takes these")
