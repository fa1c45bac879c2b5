"""What others do to the machine, by the system's own files; nobody's real load decides a test."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tlp_tvm.machine.other_work import OtherWork

HZ = os.sysconf("SC_CLK_TCK")


class System:
    """Writes /proc as Linux has it."""

    def __init__(self, root: Path) -> None:
        self.root, self.now = root, 100.0

    def write(self, busy_s: float, processes: dict[int, tuple[int, float, float]]) -> None:
        """Seconds of work of all, and process -> parent, own seconds, those of its dead children."""
        share = int(busy_s * HZ / 5)
        (self.root / "stat").write_text(
            f"cpu  {share} {share} {share} 999 88 {share} {share} 77 0 0\ncpu0 1\n"
        )
        for process, (parent, own_s, dead_s) in processes.items():
            (self.root / str(process)).mkdir(exist_ok=True)
            times = f"{int(own_s * HZ)} 0 0 {int(dead_s * HZ)}"
            line = f"{process} (a (strange) name) S {parent} 1 1 0 -1 4194304 1 0 0 0 {times} 20 0\n"
            (self.root / str(process) / "stat").write_text(line)
        (self.root / "uptime").touch()


@pytest.fixture
def system(tmp_path: Path) -> System:
    return System(tmp_path)


def test_only_the_work_of_others_counts(system: System) -> None:
    system.write(100, {1: (0, 5, 0), 10: (1, 20, 0), 11: (10, 30, 0), 12: (11, 10, 0), 99: (1, 35, 0)})
    others = OtherWork(system.root, 10, lambda: system.now)

    system.now += 10
    system.write(130, {10: (1, 24, 4), 11: (10, 36, 0), 12: (11, 11, 0), 99: (1, 50, 0)})
    assert others.cores() == pytest.approx(1.5)

    system.now += 5
    system.write(131, {10: (1, 25, 4)})
    assert others.cores() == pytest.approx(0)


def test_a_process_that_ends_meanwhile_is_no_error(system: System) -> None:
    system.write(10, {10: (1, 1, 0), 11: (10, 1, 0)})
    others = OtherWork(system.root, 10, lambda: system.now)
    (system.root / "11" / "stat").unlink()
    system.now += 1
    assert others.cores() >= 0


def test_where_the_system_does_not_tell_nobody_else_works(tmp_path: Path) -> None:
    assert OtherWork(tmp_path / "none").cores() == 0
    assert OtherWork().cores() >= 0
