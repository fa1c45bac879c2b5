"""Compiles here and times on the devices of a TVM RPC tracker.

A device that dies in the middle costs nothing but time: a program whose session ended is tried again, on
whatever device the tracker gives next, and counts as failed only after `TRIES`. Waiting for a device is no
try.
"""

from __future__ import annotations

import itertools
import queue
import shutil
import socket
import tempfile
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from types import TracebackType
from typing import IO, Any

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring import remote_work
from tlp_tvm.ansor.measuring.pools import inputs_that_matter
from tlp_tvm.ansor.measuring.remote_work import BUSY, NO_DEVICE
from tlp_tvm.ansor.measuring.work import Serialized
from tlp_tvm.errors import CollectionError
from tlp_tvm.measuring.child import RUNTIME, Outcome
from tlp_tvm.measuring.fleet import Fleet
from tlp_tvm.measuring.pool import BUILD_TIMEOUT, RUN_TIMEOUT, MeasureSettings, ask, end, start_child

TRIES = 3
"""Sessions that a program may see end before it counts as failed."""

DEVICE_WAIT_S = 60.0
"""How long a fleet may be without a device that answers before the collection stops."""

BUSY_WAIT_S = 600.0
"""How long a program may queue for a device that others use before the collection stops."""

_CONNECT_S = 10
"""For the upload, beside the time that a program may run; and to answer."""

_PAUSE_S = 0.5
"""Before a tracker is asked again."""


class RemotePool:
    """Children that compile, and one for each device that waits for it; a context manager."""

    def __init__(
        self,
        settings: MeasureSettings,
        fleet: Fleet,
        log: IO[Any] | None = None,
        check: Callable[[], None] = lambda: None,
    ) -> None:
        """Start nothing yet.

        Args:
            settings: how to measure; `threads` is the devices' own affair.
            fleet: whose devices time.
            log: a real file for what the children print; nowhere if None.
            check: called between programs; what it raises ends the measuring.
        """
        self.settings = settings
        self.fleet = fleet
        self._log = log
        self._check = check
        self._numbers = itertools.count()
        self._libraries: dict[int, str] = {}

    def __enter__(self) -> RemotePool:
        devices = self.devices()
        if not devices:
            raise CollectionError(
                f"{self.fleet}: expected at least one device, found none; start one there with "
                f"tlp-tvm fleet device --tracker {self.fleet.host}:{self.fleet.port} --key {self.fleet.key}"
            )
        worker = load_tvm().contrib.popen_pool.PopenWorker
        self._folder = tempfile.mkdtemp(prefix="tlp-tvm-")
        self._builders = [
            start_child(worker, self.settings, self._log) for _ in range(self.settings.children)
        ]
        self._runners = [start_child(worker, self.settings, self._log) for _ in range(devices)]
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for child in self._builders + self._runners:
            end(child)
        shutil.rmtree(self._folder, ignore_errors=True)

    def devices(self) -> int:
        """How many devices the tracker knows.

        Raises:
            CollectionError: there is no tracker.
        """
        load_tvm()
        from tvm import rpc

        try:
            socket.create_connection(
                (self.fleet.host, self.fleet.port), _CONNECT_S
            ).close()  # TVM waits longer
            tracker = rpc.connect_tracker(self.fleet.host, self.fleet.port)
            summary = tracker.summary()
            tracker.close()
        except (OSError, RuntimeError) as error:
            raise CollectionError(
                f"{self.fleet.host}:{self.fleet.port}: expected TVM's RPC tracker, found none "
                f"({error}); start one with tlp-tvm fleet tracker"
            ) from error
        return sum(server["key"] == f"server:{self.fleet.key}" for server in summary["server_info"])

    def build(self, inputs: Sequence[Any]) -> list[tuple[int, Outcome]]:
        """Compile programs side by side.

        Args:
            inputs: `auto_scheduler.MeasureInput`s.

        Returns:
            For each its number, to run it by, and what happened.
        """
        built: list[tuple[int, Outcome]] = [(next(self._numbers), Outcome((), 0, "", 0.0)) for _ in inputs]

        def work(child: Any, i: int) -> None:
            number = built[i][0]
            path = remote_work.temporary_library(self._folder)
            arguments = (path, Serialized(inputs[i].serialize(), self.settings.code))
            outcome = ask(child, BUILD_TIMEOUT, self.settings.build_timeout_s, remote_work.build, *arguments)
            assert outcome is not None
            self._libraries[number] = path
            built[i] = (number, outcome)

        for _ in self._side_by_side(self._builders, work, range(len(inputs))):
            pass
        return built

    def run_all(
        self, built: Sequence[tuple[int, Outcome]], inputs: Sequence[Any]
    ) -> Iterator[tuple[int, Outcome]]:
        """Time programs, one on each device at a time.

        Args:
            built: what `build` gave for the inputs.
            inputs: `auto_scheduler.MeasureInput`s.

        Yields:
            The index of a program and its outcome, as they are done.

        Raises:
            CollectionError: all devices are gone, or the tracker is.
        """
        compiled = [i for i, (_, outcome) in enumerate(built) if not outcome.error]
        yield from ((i, outcome) for i, (_, outcome) in enumerate(built) if outcome.error)
        results: dict[int, Outcome] = {}

        def work(child: Any, i: int) -> None:
            results[i] = self._run(child, self._libraries[built[i][0]], inputs[i])

        for i in self._side_by_side(self._runners, work, compiled):
            yield i, results[i]
        for number, _ in built:
            path = Path(self._libraries.pop(number))
            path.unlink(missing_ok=True)
            path.with_name(f"{path.name}.json").unlink(missing_ok=True)

    def _run(self, child: Any, path: str, measure_input: Any) -> Outcome:
        settings, kind = self.settings, str(measure_input.task.target.kind.name)
        arguments = (path, kind, settings.timing, inputs_that_matter(measure_input.task))
        seconds = settings.run_timeout_s + _CONNECT_S
        outcome = None
        for _ in range(TRIES):
            self._connect(child, seconds)
            outcome = ask(child, RUN_TIMEOUT, seconds, remote_work.run, *arguments)
            if outcome is None or outcome.error not in (RUNTIME, RUN_TIMEOUT):
                break
        assert outcome is not None
        return outcome

    def _connect(self, child: Any, seconds: float) -> None:
        """Wait until the child has a session with a device.

        Raises:
            CollectionError: the tracker is gone, or gives no device in time.
        """
        began = refused = time.monotonic()
        while True:
            self._check()
            listed = self.devices()
            outcome = Outcome((), NO_DEVICE, "the tracker lists none", 0.0)
            if listed:
                found = ask(child, NO_DEVICE, _CONNECT_S, remote_work.connect, self.fleet, seconds)
                assert found is not None
                outcome = found
            if not outcome.error:
                return
            now = time.monotonic()
            if outcome.error == BUSY:
                refused = now
                if now - began > BUSY_WAIT_S:
                    raise CollectionError(
                        f"{self.fleet}: expected a free device, found {listed} in use for "
                        f"{BUSY_WAIT_S:.0f} s; restart one that hangs, and the same command resumes"
                    )
                continue
            if now - refused > DEVICE_WAIT_S:
                raise CollectionError(
                    f"{self.fleet}: expected a device that answers, found none for {DEVICE_WAIT_S:.0f} s "
                    f"({outcome.message}); start one, and the same command resumes"
                )
            time.sleep(_PAUSE_S)

    def _side_by_side(
        self, children: Sequence[Any], work: Callable[[Any, int], None], numbers: Sequence[int]
    ) -> Iterator[int]:
        """Let every child take the next number until none is left; yields each when its work is done."""
        waiting: queue.SimpleQueue[int] = queue.SimpleQueue()
        done: queue.SimpleQueue[int | BaseException] = queue.SimpleQueue()
        ended = threading.Event()
        for number in numbers:
            waiting.put(number)

        def serve(child: Any) -> None:
            try:
                while not ended.is_set():
                    self._check()
                    number = waiting.get_nowait()
                    work(child, number)
                    done.put(number)
            except queue.Empty:
                pass
            except BaseException as error:  # noqa: BLE001 - raised again where the numbers are used
                done.put(error)

        with ThreadPoolExecutor(len(children)) as threads:
            try:
                for child in children:
                    threads.submit(serve, child)
                for _ in numbers:
                    item = done.get()
                    if isinstance(item, BaseException):
                        raise item
                    yield item
            finally:
                ended.set()
