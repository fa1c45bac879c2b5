"""The self-check of the native reader: it is trusted only after it read what TVM's own serialiser writes.

The reader knows the memory layout of Ansor's objects by heart, as no TVM package ships headers. TVM's
`SerializeMeasureInput` writes the same steps into records; over programs with every kind of step both must
agree in every primitive, or the reader is never used.
"""

from __future__ import annotations

import threading
from dataclasses import dataclass
from typing import Any

from tlp_tvm import _core
from tlp_tvm.ansor.loading.locate import tvm_info
from tlp_tvm.ansor.loading.probe import probe_states
from tlp_tvm.ansor.search.sampling import written_steps
from tlp_tvm.errors import AbiMismatchError, StateError

Steps = list[list[Any]]


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


_lock = threading.RLock()
_reader: _core.StateReader | None = None
_refusal = ""
"""Why the reader is not to be used."""


def ensure_native(tvm: Any) -> _core.StateReader:
    """The native reader of the loaded TVM, checked once in a process; a refusal is remembered too.

    Args:
        tvm: the module that `load_tvm` gave.

    Raises:
        AbiMismatchError: TVM's objects are not laid out as the reader expects.
    """
    global _reader, _refusal
    with _lock:
        if _refusal:
            raise AbiMismatchError(_refusal)
        if _reader is None:
            try:
                _reader = _checked(tvm)[0]
            except AbiMismatchError as error:
                _refusal = str(error)
                raise
        return _reader


def check_layout(tvm: Any) -> SelfCheckReport:
    """Run the self-check, again if it ran before.

    Args:
        tvm: the module that `load_tvm` gave.

    Raises:
        AbiMismatchError: names the TVM, its library and the first difference.
    """
    return _checked(tvm)[1]


def _checked(tvm: Any) -> tuple[_core.StateReader, SelfCheckReport]:
    reader = _core.StateReader.bind(tvm_info().library)
    kinds: set[str] = set()
    states_compared = steps_compared = 0
    for task, states in probe_states(tvm):
        expected = [written_steps(task, state) for state in states]
        array = tvm.runtime.convert(states)
        try:
            found = reader.steps(array.handle.value)
        except StateError as error:
            raise _mismatch(f"its states cannot be read ({error})") from error
        if len(found) != len(expected):
            raise _mismatch(f"expected {len(expected)} states, found {len(found)}")
        for state, (theirs, ours) in enumerate(zip(expected, found, strict=True), start=states_compared):
            if difference := first_difference(theirs, ours):
                raise _mismatch(f"state {state}: {difference}")
            kinds.update(step[0] for step in theirs)
            steps_compared += len(theirs)
        states_compared += len(states)
    return reader, SelfCheckReport(tuple(sorted(kinds)), states_compared, steps_compared)


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


def _mismatch(difference: str) -> AbiMismatchError:
    info = tvm_info()
    return AbiMismatchError(
        f"TVM {info.version} ({info.library}): its objects are not laid out as the native reader expects: "
        f'{difference}; use extract_states(..., route="record"), or a TVM 0.8-0.19 built for x86-64 Linux'
    )
