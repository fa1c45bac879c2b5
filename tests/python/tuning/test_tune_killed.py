"""A tuning killed at random moments: nothing that was measured is lost, and nothing is measured twice."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

from test_tuning import TASKS, settings

from places import python_path
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.tune_observer import TuneObserver

TRIALS, KILLS, DEADLINE_S = 6 * TASKS, 2, 240


class Says(TuneObserver):
    """Prints a line for each program."""

    def measured(self, trials: int, *_rest: object) -> None:
        sys.stdout.write(f"{trials} programs\n")
        sys.stdout.flush()


def tune(out: str) -> None:
    """What is killed; `online`, so that what was learned is written too."""
    tune_network(settings(Path(out), trials=TRIALS, measures_per_round=3), Says())


def started(out: Path) -> subprocess.Popen[str]:
    code = f"import test_tune_killed as t; t.tune({str(out)!r})"
    environment = {
        **os.environ,
        "PYTHONPATH": python_path("tuning"),
    }
    return subprocess.Popen([sys.executable, "-c", code], text=True, env=environment, stdout=subprocess.PIPE)


def test_killed_at_random_moments_it_loses_no_measurement(tmp_path: Path) -> None:
    out = tmp_path / "run"
    moments = random.Random(11)
    seen: list[str] = []
    for _ in range(KILLS):
        with started(out) as process:
            assert process.stdout is not None
            for _ in range(moments.randrange(1, 6)):
                process.stdout.readline()
            time.sleep(moments.uniform(0, 0.3))
            process.send_signal(signal.SIGKILL)
        lines = (out / "log.json").read_text().splitlines(keepends=True)
        whole = [line for line in lines if line.endswith("\n")]
        assert whole[: len(seen)] == seen
        assert len(whole) > len(seen)
        seen = whole
    assert len(seen) < TRIALS, "the moments missed the measuring"

    with started(out) as process:
        process.communicate(timeout=DEADLINE_S)

    assert process.returncode == 0
    lines = (out / "log.json").read_text().splitlines(keepends=True)
    assert lines[: len(seen)] == seen
    assert len(lines) == TRIALS
    programs = {line[: line.index('"r":')] for line in lines}
    assert len(programs) == TRIALS
    assert (out / "run.json").exists()
    assert (out / "tuned.so").exists()
