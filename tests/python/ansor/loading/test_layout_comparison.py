"""What the native reader makes of TVM's objects is held against what TVM writes, step by step."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import pytest

from tlp_tvm import _core
from tlp_tvm.ansor import load_tvm
from tlp_tvm.ansor.loading.layout_comparison import LayoutDifferenceError, Steps, compare, first_difference
from tlp_tvm.errors import StateError


def difference(monkeypatch: pytest.MonkeyPatch, change: Callable[[list[Steps]], Any]) -> str:
    """Let the native reader find something else than is there, as it would in a TVM of another layout."""
    true_steps = _core.StateReader.steps

    def steps(reader: _core.StateReader, handle: int) -> list[Steps]:
        programs = true_steps(reader, handle)
        changed = change(programs)
        return programs if changed is None else changed

    with monkeypatch.context() as during:
        during.setattr(_core.StateReader, "steps", steps)
        with pytest.raises(LayoutDifferenceError) as found:
            compare(load_tvm())
    return str(found.value)


def test_every_kind_of_step_is_compared() -> None:
    report = compare(load_tvm())

    assert set(report.kinds) == {kind for kind, _ in _core.kinds_of("ansor")}
    assert report.states > 40
    assert report.steps > 500


def test_another_number_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def change_split_length(programs: list[Steps]) -> None:
        step = next(step for step in programs[0] if step[0] == "SP")
        step[3] = 94

    assert difference(monkeypatch, change_split_length) == (
        "state 0: step 1 (SP), field 3: expected 512, found 94"
    )


def test_states_that_cannot_be_read_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(programs: list[Steps]) -> None:
        raise StateError("step array: expected at most 4096, found 9999999")

    assert difference(monkeypatch, fail) == (
        "its states cannot be read (step array: expected at most 4096, found 9999999)"
    )


def test_missing_states_are_found(monkeypatch: pytest.MonkeyPatch) -> None:
    assert difference(monkeypatch, lambda programs: programs[1:]) == "expected 3 states, found 2"


def items(array: int) -> list[int]:
    """Addresses of what an array of TVM's holds."""
    size = ctypes.c_int64.from_address(array + 16).value
    return list((ctypes.c_int64 * size).from_address(array + 32))


def exchanged(step: int, size: int, fields: tuple[int, int]) -> None:
    """Two fields of an object change places, as where a library declares them the other way round."""
    first, second = ((ctypes.c_char * size).from_address(step + place) for place in fields)
    first.raw, second.raw = second.raw, first.raw


@pytest.mark.parametrize(
    ("kind", "size", "fields", "found"),
    [
        (
            "SP",
            8,
            (24, 32),
            r"step \d+: expected extent to be a constant integer, found Array\)",
        ),
        ("AN", 4, (20, 24), r"state \d+: step \d+ \(AN\), field [23]: expected \d+, found \d+"),
        ("RE", 4, (16, 20), r"state \d+: step \d+ \(RE\), field 1: expected \d+, found \d+"),
    ],
)
def test_objects_that_lie_otherwise_in_memory_are_found(
    monkeypatch: pytest.MonkeyPatch, kind: str, size: int, fields: tuple[int, int], found: str
) -> None:
    true_steps = _core.StateReader.steps

    def steps(reader: _core.StateReader, handle: int) -> Any:
        programs = true_steps(reader, handle)
        places = [
            address
            for state, program in zip(items(handle), programs, strict=True)
            for address, step in zip(
                items(ctypes.c_int64.from_address(state + 24).value), program, strict=True
            )
            if step[0] == kind
        ]
        for place in set(places):  # programs of one sketch share steps
            exchanged(place, size, fields)
        try:
            return true_steps(reader, handle)
        finally:
            for place in set(places):
                exchanged(place, size, fields)

    monkeypatch.setattr(_core.StateReader, "steps", steps)
    with pytest.raises(LayoutDifferenceError, match=found):
        compare(load_tvm())


SPLIT = ["SP", 2, 0, 512, [4, 2], 1]


@pytest.mark.parametrize(
    ("found", "difference"),
    [
        ([["CI", 1], SPLIT], ""),
        ([["CI", 1], ["SP", 2, 0, 512, [4, 3], 1]], "step 1 (SP), field 4: expected [4, 2], found [4, 3]"),
        ([["CR", 1], SPLIT], "step 0 (CI), field 0: expected 'CI', found 'CR'"),
        ([["CI", 1], SPLIT[:5]], "step 1 (SP): expected 6 fields, found 5"),
        ([["CI", 1]], "expected 2 steps, found 1"),
        ([["CI", 1], SPLIT, SPLIT], "expected 2 steps, found 3"),
    ],
)
def test_the_first_difference_is_named(found: Steps, difference: str) -> None:
    assert first_difference([["CI", 1], SPLIT], found) == difference
