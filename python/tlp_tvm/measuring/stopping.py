"""Ctrl-C during a tuning: finish the current program, keep the log, end the measuring processes."""

from __future__ import annotations

import os
import signal
import threading
import time
from types import FrameType, TracebackType
from typing import Any

from tlp_tvm.errors import TuningError


class Stopped(TuningError):
    """The tuning was asked to stop; passes through TVM's C++ frames, which `KeyboardInterrupt` does not."""


class StopOnInterrupt:
    """While it is open, the first Ctrl-C makes `check` raise, and the second ends the process.

    Outside the main thread, where Python allows no signal handlers, it only ever does what `request` asks.
    """

    def __init__(self) -> None:
        """Begin, without a deadline."""
        self._requested = threading.Event()
        self._deadline: float | None = None
        self._enough = False
        self._previous: Any = None

    def __enter__(self) -> StopOnInterrupt:
        if threading.current_thread() is threading.main_thread():
            self._previous = signal.signal(signal.SIGINT, self._on_signal)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._previous is not None:
            signal.signal(signal.SIGINT, self._previous)

    @property
    def requested(self) -> bool:
        """Whether the tuning is to stop."""
        return self._requested.is_set()

    @property
    def time_is_up(self) -> bool:
        """Whether the deadline has passed or enough was done, and nobody asked to stop."""
        passed = self._deadline is not None and time.monotonic() >= self._deadline
        return (passed or self._enough) and not self.requested

    def request(self) -> None:
        """Stop at the next `check`."""
        self._requested.set()

    def end_at(self, deadline: float | None) -> None:
        """Have this deadline, of `time.monotonic`, after which `check` raises too; None for none."""
        self._deadline = deadline

    def end(self) -> None:
        """End at the next `check`, as if the deadline had passed."""
        self._enough = True

    def check(self) -> None:
        """Raise if the tuning is to stop.

        Raises:
            Stopped: it is, or its time is over.
        """
        if self.requested:
            raise Stopped("the tuning was asked to stop")
        if self.time_is_up:
            raise Stopped("the time of the tuning is over")

    def _on_signal(self, number: int, frame: FrameType | None) -> None:
        if self.requested:
            os._exit(128 + number)  # the children notice and end themselves
        self.request()
