"""Prepares the next items in a thread while something else works."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import TypeVar

AHEAD = 4
"""Results that are prepared at most; this bounds the memory."""

T = TypeVar("T")
R = TypeVar("R")


def made_ahead(make: Callable[[T], R], of: Iterable[T], ahead: int = AHEAD) -> Iterator[R]:
    """`map`, with the next few made in a thread; an error of `make` is raised here, in its turn."""
    pool = ThreadPoolExecutor(1)
    waiting: deque[Future[R]] = deque()
    try:
        for each in of:
            waiting.append(pool.submit(make, each))
            if len(waiting) > ahead:
                yield waiting.popleft().result()
        while waiting:
            yield waiting.popleft().result()
    finally:
        pool.shutdown(cancel_futures=True)
