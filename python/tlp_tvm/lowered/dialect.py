"""What a TVM calls the loops, loads and stores of a program whose arrays have one axis."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

SERIAL, PARALLEL, VECTORISED, UNROLLED = 0, 1, 2, 3
"""TVM's kinds of loops."""

TO_READ, SECOND_LEVEL, DATA = 0, 2, 1
"""LLVM's words for what is fetched, and where to."""


class Dialect(ABC):
    """The words of one TVM.

    Attributes:
        nodes: TVM's module of `For`, `SeqStmt`, `BufferStore`, `Add` and the like.
        load: class of what reads an element.
    """

    nodes: Any
    load: Any

    @abstractmethod
    def visit(self, node: Any, seen: Callable[[Any], None]) -> None:
        """Show each node below one, and itself, what it consists of first."""

    @abstractmethod
    def array_of(self, access: Any) -> Any:
        """What tells the array of a load or store from others, as the key of a dictionary."""

    @abstractmethod
    def buffer_of(self, access: Any) -> Any:
        """The array of a load or store, to be read at another place."""

    @abstractmethod
    def shape_of(self, buffer: Any) -> Sequence[Any]:
        """Its extents."""

    @abstractmethod
    def item_bytes(self, buffer: Any) -> int:
        """Of one of its elements."""

    @abstractmethod
    def weights_of(self, function: Any) -> Collection[Any]:
        """Arrays of weights that lie as a function reads them, as `array_of` has them."""

    @abstractmethod
    def substituted(self, node: Any, values: Mapping[Any, Any]) -> Any:
        """A node with values in the place of variables."""

    @abstractmethod
    def with_loops(self, body: Any, changed: Callable[[Any], Any]) -> Any:
        """Statements, other ones in the place of loops for which `changed` gives some; inner ones first."""

    @abstractmethod
    def moves(self, index: Any, variables: Sequence[Any]) -> Sequence[Any]:
        """How far an index moves with each variable, and where it begins; empty if it is no such sum."""

    @abstractmethod
    def simplified(self, expression: Any) -> Any:
        """The same, computed as far as it can be."""

    @abstractmethod
    def prefetch(self, address: Any) -> Any:
        """What asks for a line of memory that will be read, to be in the second-level cache."""

    def fetching(self, body: Any) -> Any:
        """Statements of a function in which there are prefetches."""
        return body

    def variables_in(self, node: Any) -> list[Any]:
        """The variables below a node."""
        return self._below(node, self.nodes.Var)

    def loads_in(self, node: Any) -> list[Any]:
        """The loads below a node."""
        return self._below(node, self.load)

    def _below(self, node: Any, kind: Any) -> list[Any]:
        found: list[Any] = []
        self.visit(node, lambda each: found.append(each) if isinstance(each, kind) else None)
        return found
