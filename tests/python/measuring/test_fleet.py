"""Measuring on real RPC servers: a device that dies in the middle loses no work."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import struct
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring import remote as measure_remote
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.collection import CollectObserver, CollectSettings, collect
from tlp_tvm.errors import CollectionError
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.fleet import Fleet
from tlp_tvm.measuring.pool import MeasureSettings

NETWORK, TASKS, PROGRAMS = "mlp", 4, 6
MEASURE = MeasureSettings(threads=1, timing=Timing(repeat=2, min_repeat_ms=1))


class Process:
    """A command of its own process group, as a TVM server forks for every session."""

    def __init__(self, *arguments: str) -> None:
        code = f"import sys; sys.argv = {['tlp-tvm', *arguments]!r}; from tlp_tvm.cli.app import main; main()"
        self.process = subprocess.Popen(
            [sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True
        )
        assert self.process.stdout is not None
        self.line = self.process.stdout.readline()

    @property
    def port(self) -> int:
        found = re.search(r":(\d+)", self.line)
        assert found, self.line
        return int(found[1])

    def kill(self) -> None:
        os.killpg(self.process.pid, signal.SIGKILL)
        self.process.communicate()


@contextmanager
def running(*arguments: str) -> Iterator[Process]:
    process = Process(*arguments)
    try:
        yield process
    finally:
        if process.process.returncode is None:
            process.kill()


def free_port() -> int:
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


@pytest.fixture(scope="module")
def tracker() -> Iterator[str]:
    port = free_port()
    with running("fleet", "tracker", "--port", str(port)):
        yield f"127.0.0.1:{port}"


def settings(out: Path, tracker: str, key: str) -> CollectSettings:
    host, port = tracker.split(":")
    fleet = Fleet(host, int(port), key)
    return CollectSettings(
        (NETWORK,), out, "llvm -num-cores=1", "far", programs=PROGRAMS, batch=8, fleet=fleet, measure=MEASURE
    )


class KillsADevice(CollectObserver):
    """Ends a server when some programs are measured."""

    def __init__(self, device: Process) -> None:
        self.device = device
        self.killed_at = 0

    def measured(self, programs: int, tasks_done: int, failures: Mapping[str, int]) -> None:
        if programs >= 5 and not self.killed_at:
            self.killed_at = programs
            self.device.kill()


def test_a_device_that_dies_in_the_middle_loses_no_work(tmp_path: Path, tracker: str) -> None:
    device = device_for(tracker, "cpu")
    with running(*device) as first, running(*device):
        observer = KillsADevice(first)
        result = collect(settings(tmp_path, tracker, "cpu"), observer)

    batch = read_records(tmp_path / "far")
    assert observer.killed_at
    assert result.finished
    assert result.failures == {}
    assert len(batch) == len(set(batch.sequence_hashes.tolist())) == PROGRAMS * TASKS
    assert set(batch.errors.tolist()) == {0}
    assert ((batch.latencies > 0) & (batch.latencies < 1)).all()


def test_a_fleet_that_loses_all_devices_stops_and_goes_on_later(
    tmp_path: Path, tracker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure_remote, "DEVICE_WAIT_S", 1.0)
    device = device_for(tracker, "lonely")
    with (
        running(*device) as only,
        pytest.raises(CollectionError, match="found none for 1 s"),
    ):
        collect(settings(tmp_path, tracker, "lonely"), KillsADevice(only))
    measured = len(read_records(tmp_path / "far"))
    assert 5 <= measured < PROGRAMS * TASKS

    with running(*device):
        result = collect(settings(tmp_path, tracker, "lonely"))

    assert result.measured == PROGRAMS * TASKS - measured
    assert set(read_records(tmp_path / "far").errors.tolist()) == {0}


def device_for(tracker: str, key: str) -> tuple[str, ...]:
    return ("fleet", "device", "--tracker", tracker, "--key", key, "--threads", "1")


def wait_until_listed(tracker: str, key: str) -> None:
    """A device prints its line before the tracker knows it."""
    deadline = time.monotonic() + 60
    while f"server:{key}" not in {server["key"] for server in client(tracker).summary()["server_info"]}:
        assert time.monotonic() < deadline, f"the tracker lists no {key}"
        time.sleep(0.1)


def client(tracker: str) -> Any:
    load_tvm()
    from tvm import rpc

    host, port = tracker.split(":")
    return rpc.connect_tracker(host, int(port))


def test_waiting_for_a_busy_device_is_no_run_time(
    tmp_path: Path, tracker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure_remote, "TRIES", 1)
    monkeypatch.setattr(measure_remote, "_CONNECT_S", 3)
    quick = replace(settings(tmp_path, tracker, "shared"), measure=replace(MEASURE, run_timeout_s=1))
    with running(*device_for(tracker, "shared")):
        others = [client(tracker).request("shared")]

        class Frees(CollectObserver):
            """Ends the others' session when a program has waited for longer than it may run."""

            def planned(self, tasks: int, programs: int, known: int) -> None:
                threading.Timer(10, others.clear).start()

        result = collect(replace(quick, programs=1), Frees())

    assert not others
    assert result.failures == {}
    assert set(read_records(tmp_path / "far").errors.tolist()) == {0}


def test_a_device_that_hangs_is_not_waited_for_for_ever(
    tmp_path: Path, tracker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(measure_remote, "BUSY_WAIT_S", 2.0)
    with running(*device_for(tracker, "hangs")) as device:
        wait_until_listed(tracker, "hangs")
        os.killpg(device.process.pid, signal.SIGSTOP)
        with pytest.raises(
            CollectionError,
            match=r"key hangs: expected a free device, found 1 in use for 2 s; restart one that hangs, and "
            "the same command resumes",
        ):
            collect(settings(tmp_path, tracker, "hangs"))


def test_a_dead_device_that_the_tracker_lists_ends_in_a_sentence(
    tmp_path: Path, tracker: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Listed by a connection that stays open, as of a machine that lost its network; its port refuses."""
    monkeypatch.setattr(measure_remote, "DEVICE_WAIT_S", 2.0)
    host, port = tracker.split(":")
    nobody = free_port()
    with socket.create_connection((host, int(port))) as listed:

        def tell(message: list[Any]) -> None:
            data = json.dumps(message).encode()
            listed.sendall(struct.pack("<i", len(data)) + data)
            listed.recv(1024)

        load_tvm()
        from tvm.rpc import base

        listed.sendall(struct.pack("<i", base.RPC_TRACKER_MAGIC))
        listed.recv(4)
        tell([base.TrackerCode.UPDATE_INFO, {"key": "server:dead", "addr": ["127.0.0.1", nobody]}])
        for number in range(100):
            tell([base.TrackerCode.PUT, "dead", [nobody, f"dead:{number}"], None])
        with pytest.raises(
            CollectionError,
            match=r"key dead: expected a device that answers, found none for 2 s \(.*Connect to .* failed",
        ):
            collect(settings(tmp_path, tracker, "dead"))


def test_no_tracker_and_no_device_are_named(tmp_path: Path, tracker: str) -> None:
    with pytest.raises(CollectionError, match=r"key nobody: expected at least one device"):
        collect(settings(tmp_path, tracker, "nobody"))
    with pytest.raises(CollectionError, match="expected TVM's RPC tracker, found none"):
        collect(settings(tmp_path, f"127.0.0.1:{free_port()}", "cpu"))
