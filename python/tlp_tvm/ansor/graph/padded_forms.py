"""Expressions as they were, and with some of their axes longer: the two forms of `padded_rows`."""

from __future__ import annotations

from typing import Any

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.tuning.network.longer_axes import Padded, Shape


class Forms:
    """Every expression of a function in one form or both; one is made of the other when it is asked for."""

    def __init__(self, before: int, after: int) -> None:
        """Begin.

        Args:
            before: the extent that is made longer.
            after: what it becomes.
        """
        self._relay = load_tvm().relay
        self.before, self.after = before, after
        self._plain: dict[Any, Any] = {}
        self._long: dict[Any, Padded] = {}
        self._made: dict[tuple[Any, frozenset[int]], Padded] = {}

    def knows(self, original: Any) -> bool:
        """Whether an expression has a form."""
        return original in self._plain or original in self._long

    def set_plain(self, original: Any, expression: Any) -> None:
        """Say what an expression became, in its own shape."""
        self._plain[original] = expression

    def set_long(self, original: Any, long: Padded) -> None:
        """Say what an expression became, in its long form."""
        self._long[original] = long

    def long_axes(self, original: Any) -> frozenset[int]:
        """The axes in which an expression is longer already."""
        return self._long[original].axes if original in self._long else frozenset()

    def plain(self, original: Any) -> Any:
        """An expression in its own shape."""
        if original not in self._plain:
            shape = shape_of(original)
            self._plain[original] = self._relay.strided_slice(
                self._long[original].expression, [0] * len(shape), list(shape)
            )
        return self._plain[original]

    def long(self, original: Any, axes: frozenset[int]) -> Padded:
        """An expression with these axes longer, each of which has the extent `before`."""
        known = self._long.get(original)
        if known is not None and known.axes == axes:
            return known
        if not axes:
            return Padded(self.plain(original), axes)
        if (original, axes) not in self._made:
            begin = (
                known
                if known is not None and known.axes < axes
                else Padded(self.plain(original), frozenset())
            )
            new = axes - begin.axes
            more = self.after - self.before
            widths = [(0, more if axis in new else 0) for axis in range(len(shape_of(original)))]
            padded = self._relay.nn.pad(begin.expression, widths)
            self._made[original, axes] = Padded(padded, axes, begin.zero | new)
        return self._made[original, axes]


def shape_of(expression: Any) -> Shape:
    """The shape that an expression was typed with."""
    return tuple(int(extent) for extent in expression.checked_type.shape)
