"""Ctrl-C: noted once, not swallowed, and the handler of before is back afterwards."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading

import pytest

from tlp_tvm.measuring.stopping import StopOnInterrupt, Stopped


def test_an_interrupt_is_noted_and_raised_where_it_is_asked_for() -> None:
    before = signal.getsignal(signal.SIGINT)
    with StopOnInterrupt() as stop:
        stop.check()
        os.kill(os.getpid(), signal.SIGINT)
        assert stop.requested
        with pytest.raises(Stopped, match="^the tuning was asked to stop$"):
            stop.check()
    assert signal.getsignal(signal.SIGINT) is before


def test_the_second_interrupt_ends_the_process() -> None:
    code = """
import os, signal
from tlp_tvm.measuring.stopping import StopOnInterrupt
with StopOnInterrupt():
    os.kill(os.getpid(), signal.SIGINT)
    print("still here", flush=True)
    os.kill(os.getpid(), signal.SIGINT)
    print("too far", flush=True)
"""
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert ended.returncode == 130
    assert ended.stdout == "still here\n"


def test_in_another_thread_only_requests_count() -> None:
    before = signal.getsignal(signal.SIGINT)
    seen: list[bool] = []

    def work() -> None:
        with StopOnInterrupt() as stop:
            seen.append(signal.getsignal(signal.SIGINT) is before)
            stop.request()
            seen.append(stop.requested)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert seen == [True, True]
