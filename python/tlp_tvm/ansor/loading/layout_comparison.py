"""Compares the native reading of TVM's objects with what TVM's own serialiser writes.

This runs in a child process: objects that are laid out otherwise than the reader expects may end it.
"""

from __future__ import annotations

import importlib
import json
import resource
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tlp_tvm import _core
from tlp_tvm.errors import StateError

Steps = list[list[Any]]

ANSWER = "tlp-tvm object layout: "
"""Begins the line with the child's answer, as TVM may print lines of its own."""


@dataclass(frozen=True)
class SelfCheckReport:
    """What a passed self-check has compared.

    Attributes:
        kinds: the kinds of steps, sorted.
        states: number of programs.
        steps: number of steps.
    """

    kinds: tuple[str, ...]
    states: int
    steps: int


class LayoutDifferenceError(Exception):
    """The reader and TVM do not agree; a clause that says where."""


def compare(tvm: Any) -> SelfCheckReport:
    """Read programs with every kind of step both ways.

    Args:
        tvm: the module that `load_tvm` gave.

    Raises:
        LayoutDifferenceError: the two differ, or TVM's objects cannot be read.
    """
    from tlp_tvm.ansor.loading.locate import tvm_info
    from tlp_tvm.ansor.loading.probe import probe_states
    from tlp_tvm.ansor.search.sampling import written_steps

    kinds: set[str] = set()
    states_compared = steps_compared = 0
    try:
        reader = _core.StateReader.bind(tvm_info().library)
        for task, states in probe_states(tvm):
            expected = [written_steps(task, state) for state in states]
            array = tvm.runtime.convert(states)
            found = reader.steps(array.handle.value)
            if len(found) != len(expected):
                raise LayoutDifferenceError(f"expected {len(expected)} states, found {len(found)}")
            for state, (theirs, ours) in enumerate(zip(expected, found, strict=True), start=states_compared):
                if difference := first_difference(theirs, ours):
                    raise LayoutDifferenceError(f"state {state}: {difference}")
                kinds.update(step[0] for step in theirs)
                steps_compared += len(theirs)
            states_compared += len(states)
    except StateError as error:
        raise LayoutDifferenceError(f"its states cannot be read ({error})") from error
    return SelfCheckReport(tuple(sorted(kinds)), states_compared, steps_compared)


def first_difference(expected: Steps, found: Steps) -> str:
    """Where two programs differ first, as a sentence; empty if nowhere.

    Args:
        expected: what TVM writes.
        found: what was read.
    """
    for number, (theirs, ours) in enumerate(zip(expected, found, strict=False)):
        for field, (wanted, got) in enumerate(zip(theirs, ours, strict=False)):
            if wanted != got:
                return f"step {number} ({theirs[0]}), field {field}: expected {wanted!r}, found {got!r}"
        if len(theirs) != len(ours):
            return f"step {number} ({theirs[0]}): expected {len(theirs)} fields, found {len(ours)}"
    if len(expected) != len(found):
        return f"expected {len(expected)} steps, found {len(found)}"
    return ""


def answer(python: str, library: str) -> None:
    """Compare in this process, and print a line with the outcome.

    Args:
        python: folder that holds the package `tvm`.
        library: its `libtvm.so`.
    """
    from tlp_tvm.ansor.loading.stand_ins import load_with_stand_ins

    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))  # its end is expected, and says all there is to say
    load_with_stand_ins(Path(library))
    if python not in sys.path:
        sys.path.insert(0, python)
    importlib.import_module("tvm.auto_scheduler")
    try:
        outcome: dict[str, Any] = asdict(compare(importlib.import_module("tvm")))
    except LayoutDifferenceError as difference:
        outcome = {"difference": str(difference)}
    sys.stdout.write(f"{ANSWER}{json.dumps(outcome)}\n")
    sys.stdout.flush()
