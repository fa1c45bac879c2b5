"""exp, erf, tanh, a cube and a GELU as polynomials, beside TVM's own rules, which call the libm.

Question: how much sooner are they computed, and how exact are they?
Set-up: a million numbers of a normal distribution, one thread, eight at once where the rule allows; each
function is compiled by TVM's rules, then by ours, and both run in turns.
Baseline: TVM's rules, the same program, the same run.
Checked: the largest error, beside NumPy in double precision: of exp and cube relative, else absolute.

    .venv-metaschedule/bin/python benchmarks/polynomials.py
"""

from __future__ import annotations

import math
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.metaschedule.loading.locate import load_runtime, load_tvm
from tlp_tvm.metaschedule.loading.targets import target_of

COUNT, LANES, TURNS = 1 << 20, 8, 9
ERF = np.vectorize(math.erf)
TRUE: dict[str, Callable[[NDArray[Any]], NDArray[Any]]] = {
    "exp": np.exp,
    "erf": ERF,
    "tanh": np.tanh,
    "cube": lambda x: x**3,
    "gelu": lambda x: x * (0.5 + 0.5 * ERF(x * math.sqrt(0.5))),
}


def compiled(function: str) -> Any:
    """A function of all numbers, by the rules of now."""
    tvm = load_runtime()
    from tvm import te, tirx
    from tvm.s_tir import Schedule

    def value(x: Any) -> Any:
        if function == "cube":
            return te.power(x, tirx.const(3.0, "float32"))
        if function != "gelu":
            return getattr(te, function)(x)
        half, root = (tirx.const(each, "float32") for each in (0.5, math.sqrt(0.5)))
        return x * (half + half * te.erf(x * root))

    given = te.placeholder((COUNT,), "float32", "x")
    result = te.compute((COUNT,), lambda i: value(given[i]))
    schedule = Schedule(te.create_prim_func([given, result]))
    (block,) = schedule.get_child_blocks(schedule.get_sblock("root"))
    schedule.vectorize(schedule.split(*schedule.get_loops(block), [None, LANES])[1])
    return tvm.compile(schedule.mod, target=target_of(""))


def main() -> None:
    """Compile, time and print."""
    tvm = load_runtime()
    before = {name: compiled(name) for name in TRUE}
    load_tvm()  # which sets the rules
    after = {name: compiled(name) for name in TRUE}
    x = np.random.default_rng(0).standard_normal(COUNT).astype(np.float32)
    given, result = tvm.runtime.tensor(x), tvm.runtime.tensor(np.zeros_like(x))
    print(f"{this_cpu().model}\n")
    heads = ("function", "libm, ns", "polynomial, ns", "times as fast", "error, libm", "error, polynomial")
    print(f"| {' | '.join(heads)} |\n{'|---' * len(heads)}|")
    for name, true in TRUE.items():
        expected = true(x.astype(np.float64))
        ways = (before[name], after[name])
        times: tuple[list[float], list[float]] = ([], [])
        errors = []
        for way in ways:
            way(given, result)
            scale = expected if name in ("exp", "cube") else 1
            errors.append(float((np.abs(result.numpy() - expected) / scale).max()))
        for _ in range(TURNS):
            for way, taken in zip(ways, times, strict=True):
                began = time.perf_counter()
                way(given, result)
                taken.append((time.perf_counter() - began) / COUNT * 1e9)
        old, new = map(statistics.median, times)
        cells = [name, f"{old:.2f}", f"{new:.2f}", f"{old / new:.1f}x", *(f"{each:.0e}" for each in errors)]
        print(f"| {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
