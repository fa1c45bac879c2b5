"""The folder of a tuning run: its settings, measurements and results.

log.json     every measured program as a TVM record, one per line, in the order of measurement
warm.json    records of the same tasks from earlier logs
best.json    one record per task, of the program in the built network; without measuring, its cost is a
             placeholder of a billion seconds (`zero_shot`)
run.json     settings and results of this project's tuning
beside.json  the tuned network and its peers, timed in turns (`beside.beside_result`)
curve.png    estimated latency against programs measured
tuned.so     the tuned network (`library.load_tuned`)
tuned.json   its inputs and outputs
tvm.log      output of the measuring processes
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tlp_tvm.errors import TuningError
from tlp_tvm.files import write_whole
from tlp_tvm.framework import DEFAULT, FRAMEWORKS, Framework, framework_named
from tlp_tvm.measuring.child import WARM
from tlp_tvm.measuring.code_kinds import code_as_before, noted_code
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.tuning.tune_settings import TuneSettings

FORMAT = "tlp-tvm-run"
FORMAT_VERSION = 1
CURE = "choose another `out`"
LOG = "log.json"
IDENTITY = ("network", "target", "framework")
"""Entries of run.json that may not change when a run is resumed."""


class RunFolder:
    """Files of one tuning run."""

    def __init__(self, path: str | os.PathLike[str], log: str = LOG) -> None:
        """Make the folder.

        Args:
            path: of the folder; may exist.
            log: name of the file with every measured program.

        Raises:
            TuningError: it cannot be written to.
        """
        self.path = Path(path)
        self.log = self.path / log
        self.warm = self.path / "warm.json"
        self.best = self.path / "best.json"
        self.report = self.path / "run.json"
        self.curve = self.path / "curve.png"
        self.tvm_log = self.path / "tvm.log"
        try:
            self.path.mkdir(parents=True, exist_ok=True)
            with self.log.open("ab"):
                pass
        except OSError as error:
            raise TuningError(
                f"{self.path}: expected a folder that can be written to, found: {error.strerror}; {CURE}"
            ) from error

    def begin(self, settings: dict[str, Any]) -> dict[str, Any]:
        """Note what the run is for, or see that it is for the same as before.

        Args:
            settings: at least the entries of `IDENTITY`.

        Returns:
            What run.json said before; empty for a new run.

        Raises:
            TuningError: the folder holds a run of something else, or no run.
        """
        before = read_run(self.path)
        for entry in IDENTITY if before else ():
            expected, found = settings.get(entry, DEFAULT), before.get(entry, DEFAULT)
            if found != expected:
                raise TuningError(
                    f'{self.report}: expected a run of {entry} "{expected}", found one of "{found}"; {CURE}'
                )
        if not before and self.log.stat().st_size:
            raise TuningError(
                f"{self.path}: expected a run or an empty folder, found {self.log.name} without run.json; "
                f"{CURE}"
            )
        self.write({**before, **settings})
        return before

    def write(self, content: dict[str, Any]) -> None:
        """Replace run.json.

        Args:
            content: what to write beside the format.
        """
        text = json.dumps({"format": FORMAT, "format_version": FORMAT_VERSION, **content}, indent=1)
        write_whole(self.report, text + "\n")


def framework_of_run(content: Mapping[str, Any]) -> Framework:
    """Whose run it is.

    Args:
        content: of run.json.

    Raises:
        TuningError: there is no such framework.
    """
    name = content.get("framework", DEFAULT)
    if name not in FRAMEWORKS:
        raise TuningError(
            f"run.json: expected a framework, one of {', '.join(FRAMEWORKS)}, found {name!r}; tune again"
        )
    return framework_named(name)


def read_run(folder: Path) -> dict[str, Any]:
    """What run.json of a folder says.

    Args:
        folder: of a run; need not exist.

    Returns:
        Its content; empty where there is none.

    Raises:
        TuningError: it is damaged, or of something else.
    """
    report = folder / "run.json"
    if not report.exists():
        return {}
    try:
        content = json.loads(report.read_text(encoding="utf-8"))
    except ValueError as error:
        raise TuningError(f"{report}: expected JSON, found {error}; {CURE}") from error
    if not isinstance(content, dict) or content.get("format") != FORMAT:
        raise TuningError(f'{report}: expected "format": "{FORMAT}", found none; choose another `out`')
    return content


def spent_before(content: Mapping[str, Any]) -> dict[str, float]:
    """Seconds that earlier calls of a run spent by step.

    Args:
        content: of run.json.

    Raises:
        TuningError: they are no numbers.
    """
    try:
        return {name: float(value) for name, value in content.get("seconds", {}).items()}
    except (AttributeError, TypeError, ValueError) as error:
        raise TuningError(
            f"run.json: seconds: expected numbers by step, found {content['seconds']!r}; {CURE}"
        ) from error


def timing_as_before(settings: TuneSettings, framework: Framework) -> MeasureSettings:
    """How to time: a resumed run as it began, so that one log has labels of one kind.

    Args:
        settings: of the run.
        framework: of the run.

    Raises:
        TuningError: its programs were compiled by what is not here.
    """
    before = read_run(settings.out)
    caches, code = framework.caches, framework.code()
    if before:
        how = before.get("measure", {})
        caches = how.get("timing", {}).get("caches", WARM)
        code = code_as_before(how, code)
        if code != noted_code(how):
            raise TuningError(
                f"{settings.out}: expected {noted_code(how)}, which compiled the programs of the run, "
                f"found {code} here; install the llvmlite that has it, or {CURE}"
            )
    return settings.measure.at_best(caches, code)
