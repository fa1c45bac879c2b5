"""exp, erf, tanh and whole powers of float32 as polynomials, which vector units compute.

TVM calls the libm for CPUs, a number at a time: on a Zen 3 a GELU takes 9.3 ns a number so, and 0.5 as here,
and the cube in GPT-2's 9.7 and 0.2 (`benchmarks/polynomials.py`). A rule for LLVM says how each is computed
when a program is compiled, so tasks, records and sequences stay as they are. Other types keep TVM's rules.

TVM computes erf a number at a time even in a loop that is vectorised, as it knows of no vectors of it; LLVM
then gathers the numbers from wherever it finds eight. So it is told that there are.

Sources of the coefficients: exp from Cephes (Moshier, `expf`), erf and tanh from Eigen's rational functions.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

ERROR = 1e-6
"""Bound: of exp and powers relative to them, of erf and tanh absolute. Found: 1e-7, 3e-7, 4e-7 and 3e-7."""

WAY = "exp, erf, tanh and whole powers as polynomials of vectors"
"""What compiled graphs depend on beside TVM's version: caches are keyed by it."""

_LEVEL = 100
"""Above TVM's own rules."""

_EXP = (1.9875691500e-4, 1.3981999507e-3, 8.3334519073e-3, 4.1665795894e-2, 1.6666665459e-1, 5.0000001201e-1)
_LOWEST, _HIGHEST = -88.3762626647949, 88.3762626647950
_LOG2_E = 1.44269504088896341
_LN_2 = (0.693359375, -2.12194440e-4)
"""In two parts, the first of few digits, so that products with it are exact."""

_TANH_ABOVE = (
    *(-2.76076847742355e-16, 2.00018790482477e-13, -8.60467152213735e-11, 5.12229709037114e-08),
    *(1.48572235717979e-05, 6.37261928875436e-04, 4.89352455891786e-03),
)
_TANH_BELOW = (1.19825839466702e-06, 1.18534705686654e-04, 2.26843463243900e-03, 4.89352518554385e-03)
_TANH_ENDS = 9.0

_ERF_ABOVE = (
    *(-2.72614225801306e-10, 2.77068142495902e-08, -2.10102402082508e-06, -5.69250639462346e-05),
    *(-7.34990630326855e-04, -2.95459980854025e-03, -1.60960333262415e-02),
)
_ERF_BELOW = (
    *(-1.45660718464996e-05, -2.13374055278905e-04, -1.68282697438203e-03),
    *(-7.37332916720468e-03, -1.42647390514189e-02),
)
_ERF_ENDS = 4.0

_HIGHEST_POWER = 8
"""Of more, roundings add up: each product gives half a unit in the last place."""


@functools.cache
def use_polynomials() -> None:
    """Have all that is compiled for CPUs from now on use them."""
    from tvm.ir import Op
    from tvm.tirx import register_intrin_lowering

    ways: dict[str, Callable[..., Any]] = {"exp": _exp, "erf": _erf, "tanh": _tanh, "pow": _power}
    for name, way in ways.items():
        operator = Op.get(f"tirx.{name}")
        before = operator.get_attr("llvm.FLowerIntrinsic") or operator.get_attr("default.FLowerIntrinsic")
        register_intrin_lowering(f"tirx.{name}", target="llvm", f=_rule(way, before), level=_LEVEL)
    Op.get("tirx.erf").set_attr("TVectorizable", True, _LEVEL)


def _rule(way: Callable[..., Any], before: Callable[[Any], Any]) -> Callable[[Any], Any]:
    def rule(call: Any) -> Any:
        ours = way(*call.args) if _type_of(call).startswith("float32") else None
        return _one_by_one(call, before) if ours is None else ours

    return rule


def _one_by_one(call: Any, before: Callable[[Any], Any]) -> Any:
    """TVM's rule; of a vector of erf, which no libm has, for each number of it."""
    from tvm import tirx

    one, _, lanes = _type_of(call).partition("x")
    if not lanes or call.op.name != "tirx.erf":
        return before(call)
    (vector,) = call.args
    numbers = [tirx.Shuffle([vector], [lane]) for lane in range(int(lanes))]
    computed = [before(tirx.call_intrin(one, "tirx.erf", number)) for number in numbers]
    return tirx.Shuffle(computed, list(range(int(lanes))))


def _exp(x: Any) -> Any:
    """2^n e^r of the nearest n; beyond both ends 0 and infinity."""
    from tvm import tirx

    number = _numbers_like(x)
    x = tirx.max(number(_LOWEST), tirx.min(number(_HIGHEST), x))  # in this order, NaN stays
    n = tirx.floor(x * number(_LOG2_E) + number(0.5))
    r = x - n * number(_LN_2[0]) - n * number(_LN_2[1])
    whole = _type_of(x).replace("float32", "int32")
    power = (tirx.Cast(whole, n) + tirx.const(127, whole)) << tirx.const(23, whole)
    return tirx.reinterpret(_type_of(x), power) * (_polynomial(_EXP, r, number) * r * r + r + number(1))


def _tanh(x: Any) -> Any:
    return _odd(x, _TANH_ENDS, _TANH_ABOVE, _TANH_BELOW)


def _erf(x: Any) -> Any:
    return _odd(x, _ERF_ENDS, _ERF_ABOVE, _ERF_BELOW)


def _power(x: Any, exponent: Any) -> Any:
    """Products of x, for exponents that are known and whole; None for others, which stay a libm's."""
    number = getattr(exponent, "value", None)
    number = getattr(number, "value", number)  # of what several lanes repeat
    if not isinstance(number, float) or number not in range(2, _HIGHEST_POWER + 1):
        return None
    found = x
    for bit in f"{int(number):b}"[1:]:
        found = found * found * x if bit == "1" else found * found
    return found


def _odd(x: Any, ends: float, above: Sequence[float], below: Sequence[float]) -> Any:
    """X times a ratio of polynomials in its square; constant beyond both ends."""
    from tvm import tirx

    number = _numbers_like(x)
    x = tirx.max(number(-ends), tirx.min(number(ends), x))  # in this order, NaN stays
    return x * _polynomial(above, x * x, number) / _polynomial(below, x * x, number)


def _polynomial(coefficients: Sequence[float], x: Any, number: Callable[[float], Any]) -> Any:
    """By Horner's rule, the highest power first."""
    found = number(coefficients[0])
    for each in coefficients[1:]:
        found = found * x + number(each)
    return found


def _numbers_like(x: Any) -> Callable[[float], Any]:
    from tvm import tirx

    return lambda value: tirx.const(value, _type_of(x))


def _type_of(x: Any) -> str:
    """For example "float32x8"; TVM 0.27 has it as a type of its own."""
    return str(x.dtype if hasattr(x, "dtype") else x.ty.dtype)
