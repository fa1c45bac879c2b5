"""Does `collect`, `tune` or `compare` lose anything, whatever happens to it?

Set-up: each command on a small network, again and again, in a folder on a disk of 24 MB, while it and its
children are killed and stopped at random, its disk fills, its clock is shifted, the same command is started
in the same folder, and devices of its fleet are unplugged. It is run again until it ends by itself.
Baseline: the same command left alone.
Takeaway: every program is there once, none failed, no record that was there is ever gone, every refusal is a
sentence, no process is left, and the folder holds what that of the baseline holds.

    make soak [SOAK_MINUTES=60]

Linux only: the disk needs a mount namespace (`unshare --map-root-user --mount`). Network: 127.0.0.1 only.
"""

from __future__ import annotations

import argparse
import random
import shutil
import signal
import socket
import subprocess
import time
from collections import Counter
from pathlib import Path
from typing import Any

from faults import FAULTS, FLEET_FAULTS, Fleet, Scene, end_group, fleet_process, tree
from victims import Broken, Victim, keep, lines, victims

DISK_MB = 24
MOST_STARTS = 40
"""Of one command; it needs more only if it does not get on."""

LONGEST_S = 300
"""Of a command that nobody disturbs; it hangs if it takes longer."""

POLL_S = 0.1


class Soak:
    """Counts what was done and what came of it."""

    def __init__(self, disk: Path, scratch: Path, seed: int) -> None:
        self.disk, self.scratch = disk, scratch
        self.random = random.Random(seed)
        self.faults: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.whole: Counter[str] = Counter()
        self.records = 0
        self.expected: dict[str, Any] = {}
        self.began = time.monotonic()

    @property
    def minutes(self) -> float:
        """Since the beginning."""
        return (time.monotonic() - self.began) / 60

    def alone(self, scene: Scene) -> Any:
        """What a folder holds whose command was left alone."""
        scene.running = scene.start()
        self._ended(scene)
        return scene.victim.holds(scene.folder)

    def attack(self, scene: Scene) -> None:
        """Run a command until it is whole, with some faults on the way.

        Raises:
            Broken: something is lost, or not as it should be.
        """
        choices = FLEET_FAULTS if scene.victim.name == "fleet" else FAULTS
        planned = [self.random.choice(list(choices)) for _ in range(self.random.randint(3, 8))]
        before: dict[str, list[str]] = {}
        for _ in range(MOST_STARTS):
            scene.running = scene.start()
            while planned and not self._waited(scene, self.random.uniform(0.2, 12)):
                name = planned.pop()
                self.faults[name] += 1
                choices[name](scene)
            code = self._ended(scene)
            after = lines(scene.victim, scene.folder)
            keep(scene.folder, before, after)
            before = after
            if code == 0:
                break
        else:
            raise Broken(f"{scene.folder}: not whole after {MOST_STARTS} starts")
        holds = scene.victim.holds(scene.folder)
        if holds != self.expected[scene.victim.name]:
            expected = self.expected[scene.victim.name]
            raise Broken(f"{scene.folder}: expected what a run left alone holds, {expected}, found {holds}")
        self.whole[scene.victim.name] += 1
        self.records += sum(map(len, before.values()))

    def _waited(self, scene: Scene, seconds: float) -> bool:
        """Whether the command ended meanwhile."""
        for _ in range(round(seconds / POLL_S)):
            if scene.running.poll() is not None:
                return True
            time.sleep(POLL_S)
        return scene.running.poll() is not None

    def _ended(self, scene: Scene) -> int:
        """Exit code of the command, which must not hang, nor end in more than a sentence."""
        if not self._waited(scene, LONGEST_S):
            raise Broken(f"{scene.folder}: the command hangs: processes {tree(scene.running.pid)}")
        code = int(scene.running.returncode)
        told = scene.said(scene.running)
        if (
            code not in (0, 1, -signal.SIGKILL)
            or "Traceback" in told
            or (code == 1 and "error: " not in told)
        ):
            raise Broken(f"{scene.folder}: the command ended with {code}: {told}")
        self.ends["killed" if code < 0 else ("refused with a sentence" if code else "ended by itself")] += 1
        return code

    def print(self) -> None:
        """What was done, and what survived."""
        print(f"\n{self.minutes:.1f} minutes, {sum(self.faults.values())} faults:")
        for name, count in sorted(self.faults.items()):
            print(f"  {name:32}{count:6}")
        print(f"{sum(self.ends.values())} commands:")
        for name, count in sorted(self.ends.items()):
            print(f"  {name:32}{count:6}")
        print(
            f"{sum(self.whole.values())} runs whole, with {self.records} records, each there once; none lost:"
        )
        for name, count in sorted(self.whole.items()):
            print(f"  {name:32}{count:6}", flush=True)


def left_behind(scratch: Path) -> list[int]:
    """Processes of ended commands, which have the scratch folder in their environment."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        if f"SOAK_CLOCK={scratch}/".encode() in environment:
            found.append(int(entry.name))
    return found


def free_port() -> int:
    """Of this machine's loopback device."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


def run(soak: Soak, asked: list[Victim], fleet: Fleet, minutes: float) -> None:
    """Disturb one command after the other until the time is over."""
    number = 0
    while soak.minutes < minutes or number < len(asked):
        victim = asked[number % len(asked)]
        folder = soak.disk / f"{victim.name}-{number}"
        scene = Scene(victim, folder, soak.disk, soak.scratch, soak.random, fleet)
        if victim.name not in soak.expected:
            soak.expected[victim.name] = soak.alone(scene)
            shutil.rmtree(folder)
        faults, ends = sum(soak.faults.values()), sum(soak.ends.values())
        soak.attack(scene)
        shutil.rmtree(folder)
        faults, ends = sum(soak.faults.values()) - faults, sum(soak.ends.values()) - ends
        print(
            f"{soak.minutes:5.1f} min: {victim.name} whole after {faults} faults and {ends} commands",
            flush=True,
        )
        number += 1
    time.sleep(5)  # what lives with its parent looks once a second
    if processes := left_behind(soak.scratch):
        raise Broken(f"processes {processes} are left behind")
    soak.print()


def main() -> None:
    """Make the disk and the fleet, and soak."""
    parser = argparse.ArgumentParser(description="Disturb collect, tune and compare for a while.")
    parser.add_argument("--minutes", type=float, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", nargs="*", default=[], help="names of commands")
    parser.add_argument("--scratch", type=Path, default=Path("build/soak"))
    asked = parser.parse_args()
    scratch = asked.scratch.resolve()
    shutil.rmtree(scratch, ignore_errors=True)
    disk = scratch / "disk"
    for folder in (disk, scratch / "tmp"):
        folder.mkdir(parents=True)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={DISK_MB}m", "soak", str(disk)], check=True)
    tracker = f"127.0.0.1:{free_port()}"
    running = fleet_process("tracker", "--port", tracker.rpartition(":")[2])
    fleet = Fleet(tracker)
    fleet.plug()
    soak = Soak(disk, scratch, asked.seed)
    chosen = [victim for victim in victims(tracker) if not asked.only or victim.name in asked.only]
    try:
        run(soak, chosen, fleet, asked.minutes)
    except BaseException:
        soak.print()
        shutil.copytree(disk, scratch / "broken")
        raise
    finally:
        for process in (running, *fleet.devices):
            end_group(process)


if __name__ == "__main__":
    main()
