"""A peer's process as its parent sees it: asleep, except while it is asked."""

from __future__ import annotations

import json
import os
import select
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, Any

from tlp_tvm.beside.counted_turns import Stretch
from tlp_tvm.beside.runtimes import Job
from tlp_tvm.errors import BesideError
from tlp_tvm.machine.loop_threads import VARIABLE

LOADING = 900.0
"""Seconds after which a peer is given up that has not loaded the network, as compilers may take minutes."""

TURN = 300.0
"""The same for a turn."""

_CHILD = "tlp_tvm.beside.peer_child"


class PeerProcess:
    """One running process. Errors name neither the peer nor a cure: the caller does.

    Attributes:
        number: of the process.
    """

    def __init__(self, process: subprocess.Popen[str]) -> None:
        """Wait until the network is loaded.

        Raises:
            BesideError: the peer cannot load or run it.
        """
        self._process = process
        self.number = process.pid
        loaded = self._answer(LOADING)
        if problem := loaded.get("problem"):
            raise BesideError(str(problem))

    def time(self, seconds: float) -> list[Stretch]:
        """Run the network over and over.

        Args:
            seconds: to run for.

        Raises:
            BesideError: the process ended, or does not answer.
        """
        assert self._process.stdin is not None
        try:
            self._process.stdin.write(f"{seconds}\n")
            self._process.stdin.flush()
        except OSError as error:
            raise BesideError(self._end()) from error
        return [Stretch(*map(float, each)) for each in self._answer(TURN + seconds)["stretches"]]

    def _answer(self, patience: float) -> dict[str, Any]:
        output = self._process.stdout
        assert output is not None
        if not select.select([output], [], [], patience)[0]:
            raise BesideError(f"no answer after {patience:.0f} s")
        line = output.readline()
        if not line:
            raise BesideError(self._end())
        answer: dict[str, Any] = json.loads(line)
        return answer

    def _end(self) -> str:
        code = self._process.wait()
        return f"its process ended with {f'signal {-code}' if code < 0 else f'exit code {code}'}"


@contextmanager
def peer_process(job: Job, log: IO[Any]) -> Iterator[PeerProcess]:
    """A process that has loaded the network; it ends with the block.

    Args:
        job: what it is to run.
        log: a real file for its standard error.

    Raises:
        BesideError: the peer cannot load or run it.
    """
    words = [job.peer, job.network, job.folder, job.scratch, job.threads]
    threads = str(job.threads)
    variables = {"OMP_NUM_THREADS": threads, VARIABLE: threads, "PYTHONSAFEPATH": "1"}
    process = subprocess.Popen(
        [sys.executable, "-m", _CHILD, *map(str, words)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=log,
        text=True,
        env=os.environ | variables,
        start_new_session=True,  # Ctrl-C is the parent's; its end is theirs
    )
    try:
        yield PeerProcess(process)
    finally:
        process.kill()
        process.communicate()
