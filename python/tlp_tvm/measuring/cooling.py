"""Weights out of the caches before a program runs, as when a network comes to it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

COOL = "tlp_tvm.cool_weights"

FLUSH = "cache_flush_cpu_non_first_arg"
"""TVM's function that takes every argument but the first out of the caches."""

_cooled: tuple[int, ...] = ()
_registered = False


def cooling(weights: tuple[int, ...], get: Callable[..., Any], register: Callable[..., Any]) -> str:
    """The name of the function that takes these arguments out of the caches; empty if there are none.

    Args:
        weights: places among the arguments.
        get: gives a function that TVM registered, by name.
        register: registers one with TVM.
    """
    global _cooled, _registered
    if not _registered:
        flush = get(FLUSH)
        register(COOL, lambda *arrays: flush(arrays[0], *(arrays[i] for i in _cooled)), override=True)
        _registered = True
    _cooled = weights
    return COOL if weights else ""
