"""Loops written by hand, for whichever TVM."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from typing import Any


class LoopScript(ABC):
    """What writes statements one after the other, as one TVM has them."""

    @abstractmethod
    def parallel(self, count: int) -> AbstractContextManager[Any]:
        """A loop that threads share; gives its variable."""

    @abstractmethod
    def serial(self, count: int) -> AbstractContextManager[Any]:
        """A loop; gives its variable."""

    @abstractmethod
    def vectorised(self, count: int) -> AbstractContextManager[Any]:
        """A loop that becomes vectors; gives its variable."""

    @abstractmethod
    def array(self, shape: Sequence[int]) -> Any:
        """An array for the iteration of the loop around it."""

    @abstractmethod
    def store(self, array: Any, value: Any, places: Sequence[Any]) -> None:
        """Write a number."""

    @abstractmethod
    def number(self, value: float) -> Any:
        """A constant."""

    @abstractmethod
    def both(self, one: Any, other: Any) -> Any:
        """Whether two conditions hold."""

    @abstractmethod
    def chosen(self, condition: Any, value: Any, otherwise: Any) -> Any:
        """A value, computed only where a condition holds."""

    @abstractmethod
    def where(self, condition: Any) -> AbstractContextManager[Any]:
        """Statements for where a condition holds."""

    @abstractmethod
    def either(self, condition: Any, written: Callable[[bool], None]) -> None:
        """Statements for where a condition holds, and others for where it does not."""
