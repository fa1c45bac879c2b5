"""A network's types are inferred once after each change, and not again where nothing has changed.

TVM infers them behind every pass, and again before every pass that asks for them: 73 times in a build of
MobileNetV2, 60 of them of functions whose types it has. Each convolution takes a millisecond or two, in which
TVM writes down in words how its axes are laid out.
"""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

NETWORKS = 3
"""Level of optimisation from which a `PassContext` may be of a network; single programs have less."""

_INFERENCE = "InferType"

_others: list[Any] = []
"""Instruments that contexts of networks have besides, for now."""


@contextmanager
def with_instrument(instrument: Any) -> Iterator[None]:
    """Have an instrument in contexts of networks that begin within this one, in any thread.

    Args:
        instrument: of passes, as TVM makes them.
    """
    _others.append(instrument)
    try:
        yield
    finally:
        _others.remove(instrument)


class TypedOnce:
    """For TVM: an instrument of passes, which leaves out an inference of types that are known."""

    def __init__(self) -> None:
        """Know nothing yet."""
        self._known: list[Any] = []  # functions, kept so that no other gets the same address
        self._depth = 0

    def enter_pass_ctx(self) -> None:
        """TVM begins a context."""
        self._depth += 1

    def exit_pass_ctx(self) -> None:
        """TVM ends a context; after the outermost one nothing is kept."""
        self._depth -= 1
        if not self._depth:
            self._known = []

    def should_run(self, module: Any, info: Any) -> bool:
        """Whether a pass is to run."""
        if str(info.name) != _INFERENCE or not self._known:
            return True
        return _addresses_of(_functions_of(module)) != _addresses_of(self._known)

    def run_after_pass(self, module: Any, info: Any) -> None:
        """A pass has run."""
        if str(info.name) == _INFERENCE:
            self._known = _functions_of(module)


def _functions_of(module: Any) -> list[Any]:
    return [function for _, function in module.functions.items()]


def _addresses_of(functions: list[Any]) -> frozenset[int]:
    return frozenset(each.handle.value for each in functions)


def infer_once(tvm: Any) -> None:
    """Have contexts of networks leave out needless inferences of types, those that TVM makes itself too.

    Args:
        tvm: the module, just imported; one without instruments stays as it is.
    """
    if not hasattr(tvm, "instrument"):
        return
    once = tvm.instrument.pass_instrument(TypedOnce)()
    context = tvm.transform.PassContext
    begin = context.__init__

    @functools.wraps(begin)
    def with_once(self: Any, *values: Any, **options: Any) -> None:
        level = values[0] if values else options.get("opt_level", 0)
        if level >= NETWORKS and len(values) <= 1:
            options["instruments"] = [*(options.get("instruments") or ()), *_others, once]
        begin(self, *values, **options)

    context.__init__ = with_once
