"""What the soak does to a command while it runs."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

from victims import Broken, Victim

COMMAND = str(Path(sys.executable).with_name("tlp-tvm"))

CLOCK_SHIFTER = """# Debian's libfaketime makes Python's time.sleep fail with EINVAL
import os, time
_real = time.time
def _shifted():
    try:
        with open(os.environ["SOAK_CLOCK"]) as file:
            return _real() + float(file.read())
    except (OSError, ValueError):
        return _real()
time.time = _shifted
"""
LOCKED = "expected nobody else to write there, found process"


@dataclass
class Scene:
    """A command that runs, and what can be done to it.

    Attributes:
        victim: which command.
        folder: that it writes to.
        disk: the small disk on which the folder is.
        scratch: for whatever else is written.
        random: draws.
        fleet: where the devices are.
        running: the command's process.
        errors: what each process wrote to standard error.
    """

    victim: Victim
    folder: Path
    disk: Path
    scratch: Path
    random: random.Random
    fleet: Fleet
    running: subprocess.Popen[str] = field(init=False)
    errors: dict[int, Path] = field(default_factory=dict)

    def start(self) -> subprocess.Popen[str]:
        """The command, whose wall clock can be shifted."""
        clock, wrapper = self.scratch / "clock", self.scratch / "wrapper"
        wrapper.mkdir(exist_ok=True)
        (wrapper / "sitecustomize.py").write_text(CLOCK_SHIFTER)
        shifted = {"PYTHONPATH": os.pathsep.join([str(wrapper), os.environ.get("PYTHONPATH", "")])}
        arguments = [*self.victim.arguments, "--out", str(self.folder)]
        environment = {**os.environ, **shifted, "SOAK_CLOCK": str(clock), "TMPDIR": str(self.scratch / "tmp")}
        errors = self.scratch / f"said-{time.monotonic_ns()}"
        with errors.open("wb") as stream:
            process = subprocess.Popen(
                [COMMAND, *arguments], stdout=subprocess.DEVNULL, stderr=stream, env=environment, text=True
            )
        self.errors[process.pid] = errors
        return process

    def said(self, process: subprocess.Popen[str]) -> str:
        """What an ended command wrote to standard error."""
        return self.errors[process.pid].read_text()


class Fleet:
    """Two devices behind a tracker, all on this machine."""

    def __init__(self, tracker: str) -> None:
        self.tracker = tracker
        self.devices: list[subprocess.Popen[str]] = []

    def plug(self) -> None:
        """Start devices until there are two."""
        while len(self.devices) < 2:
            self.devices.append(fleet_process("device", "--tracker", self.tracker, "--key", "soak"))

    def unplug(self, which: int) -> None:
        """Kill a device."""
        end_group(self.devices.pop(which))


def fleet_process(*arguments: str) -> subprocess.Popen[str]:
    """A tracker or a device, in a group of its own; ready when this returns."""
    process = subprocess.Popen(
        [COMMAND, "fleet", *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    return process


def end_group(process: subprocess.Popen[str]) -> None:
    """Kill a process and all that it started."""
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def tree(process: int) -> list[int]:
    """A process and all below it, parents first."""
    children: dict[int, list[int]] = {}
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
        except (OSError, IndexError):
            continue
        children.setdefault(parent, []).append(int(entry.name))
    found = [process]
    for each in found:
        found += children.get(each, [])
    return found


def tell(processes: list[int], number: int) -> None:
    """Send a signal to those that are still there."""
    for process in processes:
        with suppress(ProcessLookupError):
            os.kill(process, number)


def kill_command(scene: Scene) -> None:
    tell([scene.running.pid], signal.SIGKILL)


def kill_all(scene: Scene) -> None:
    tell(tree(scene.running.pid), signal.SIGKILL)


def kill_child(scene: Scene) -> None:
    if children := tree(scene.running.pid)[1:]:
        tell([scene.random.choice(children)], signal.SIGKILL)


def _stop(scene: Scene, processes: list[int]) -> None:
    tell(processes, signal.SIGSTOP)
    time.sleep(scene.random.choice([0.5, 2, 13]))
    tell(processes, signal.SIGCONT)


def stop_all(scene: Scene) -> None:
    _stop(scene, tree(scene.running.pid))


def stop_child(scene: Scene) -> None:
    if children := tree(scene.running.pid)[1:]:
        _stop(scene, [scene.random.choice(children)])


def fill_disk(scene: Scene) -> None:
    """Leave no byte for some seconds."""
    ballast = scene.disk / "ballast"
    with ballast.open("wb", buffering=0) as file:
        try:
            while file.write(b"\0" * 4096):
                pass
        except OSError:
            time.sleep(scene.random.uniform(1, 6))
    ballast.unlink()


def shift_clock(scene: Scene) -> None:
    (scene.scratch / "clock").write_text(f"{scene.random.randint(-100_000, 100_000):+d}")


def start_second(scene: Scene) -> None:
    """The same command in the same folder: one of the two is refused."""
    second = scene.start()
    while scene.running.poll() is None and second.poll() is None:
        time.sleep(0.1)
    if second.poll() is None:
        scene.running, second = second, scene.running
    told = scene.said(second)
    if second.returncode and LOCKED not in told:
        raise Broken(f"{scene.folder}: two at once ended with {second.returncode}: {told}")


def unplug(scene: Scene) -> None:
    scene.fleet.unplug(0)
    time.sleep(scene.random.uniform(0, 4))
    scene.fleet.plug()


Fault = Callable[[Scene], None]
FAULTS: dict[str, Fault] = {
    "command killed": kill_command,
    "command and children killed": kill_all,
    "child killed": kill_child,
    "command and children stopped": stop_all,
    "child stopped": stop_child,
    "disk full": fill_disk,
    "clock shifted": shift_clock,
    "second command in the folder": start_second,
}
FLEET_FAULTS: dict[str, Fault] = {**FAULTS, "device unplugged": unplug}
