"""Redirects or sifts what TVM's C++ writes to standard error: hundreds of lines per failed program."""

from __future__ import annotations

import os
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

STANDARD_ERROR = 2
"""The file descriptor, which C++ knows; Python's `sys.stderr` is a stream on top of it."""


@contextmanager
def native_messages_to(file: IO[Any]) -> Iterator[None]:
    """Lead the process's standard error to a file for a while.

    A stream on a duplicate of the descriptor, made before, still reaches the old place.

    Args:
        file: a real one.
    """
    sys.stderr.flush()
    before = os.dup(STANDARD_ERROR)
    os.dup2(file.fileno(), STANDARD_ERROR)
    try:
        yield
    finally:
        sys.stderr.flush()
        os.dup2(before, STANDARD_ERROR)
        os.close(before)


@contextmanager
def native_messages_without(remark: bytes) -> Iterator[None]:
    """Hold back what the process writes to standard error for a while, and then write all lines but some.

    Args:
        remark: lines that have it are dropped.
    """
    with tempfile.TemporaryFile() as file:
        try:
            with native_messages_to(file):
                yield
        finally:
            file.seek(0)
            sys.stderr.flush()
            for line in file:
                if remark not in line:
                    os.write(STANDARD_ERROR, line)
