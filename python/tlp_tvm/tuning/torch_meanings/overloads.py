"""Operators of torch whose arguments all come in the order of the schema."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def by_place(overload: Any) -> Callable[..., Any]:
    """A function that calls an operator; arguments that have to be named are named for it.

    Args:
        overload: of `torch.ops.aten`.
    """
    named = [each.name if each.kwarg_only else "" for each in overload._schema.arguments]

    def call(*given: Any) -> Any:
        pairs = list(zip(named, given, strict=True))
        places = [each for name, each in pairs if not name]
        return overload(*places, **{name: each for name, each in pairs if name})

    return call
