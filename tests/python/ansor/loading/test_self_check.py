"""The native reader is used only while it reads what TVM writes."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from processes import random_states
from tlp_tvm import FeatureLayout, _core, extract_states, load_tvm, steps_of
from tlp_tvm.ansor.loading import self_check
from tlp_tvm.ansor.loading.locate import tvm_info
from tlp_tvm.ansor.loading.self_check import check_layout, ensure_native, first_difference
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.errors import AbiMismatchError, StateError

Steps = list[list[Any]]


@pytest.fixture
def unchecked(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has checked nothing yet."""
    monkeypatch.setattr(self_check, "_reader", None)
    monkeypatch.setattr(self_check, "_refusal", "")


def read_otherwise(monkeypatch: pytest.MonkeyPatch, change: Callable[[list[Steps]], Any]) -> None:
    """Let the native reader find something else than is there, as it would in a TVM of another layout."""
    true_steps = _core.StateReader.steps

    def steps(reader: _core.StateReader, handle: int) -> list[Steps]:
        programs = true_steps(reader, handle)
        changed = change(programs)
        return programs if changed is None else changed

    monkeypatch.setattr(_core.StateReader, "steps", steps)


def change_split_length(programs: list[Steps]) -> None:
    step = next(step for step in programs[0] if step[0] == "SP")
    step[3] = 94


def message_prefix() -> str:
    info = tvm_info()
    return f"TVM {info.version} ({info.library}): its objects are not laid out as the native reader expects: "


CURE = '; use extract_states(..., route="record"), or a TVM 0.8-0.19 built for x86-64 Linux'


def test_every_kind_of_step_is_compared() -> None:
    report = check_layout(load_tvm())

    assert set(report.kinds) == {kind for kind, _ in _core.kinds_of("ansor")}
    assert report.states > 40
    assert report.steps > 500


def test_the_check_is_silent_and_leaves_the_random_states_alone(capfd: pytest.CaptureFixture[str]) -> None:
    tvm = load_tvm()
    capfd.readouterr()
    before = random_states()

    check_layout(tvm)

    assert random_states() == before
    assert capfd.readouterr() == ("", "")


@pytest.mark.usefixtures("unchecked")
def test_the_check_runs_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = ensure_native(load_tvm())
    monkeypatch.setattr(self_check, "probe_states", None)

    assert ensure_native(load_tvm()) is reader


@pytest.mark.usefixtures("unchecked")
def test_another_layout_is_refused_for_good_and_the_record_route_still_works(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    layout = FeatureLayout.preset("ansor")
    states = sample_states(operator_task("dense", "llvm"), 8)
    with monkeypatch.context() as during:
        read_otherwise(during, change_split_length)
        with pytest.raises(AbiMismatchError) as refused:
            extract_states(states, layout)
    assert str(refused.value) == (
        message_prefix() + "state 0: step 1 (SP), field 3: expected 512, found 94" + CURE
    )

    for attempt in (
        lambda: extract_states(states, layout),
        lambda: steps_of(states[0]),
        lambda: ensure_native(load_tvm()),
    ):
        with pytest.raises(AbiMismatchError, match="step 1 \\(SP\\), field 3: expected 512, found 94"):
            attempt()
    by_record = extract_states(states, layout, route="record")

    monkeypatch.setattr(self_check, "_refusal", "")
    np.testing.assert_array_equal(by_record, extract_states(states, layout))


@pytest.mark.usefixtures("unchecked")
def test_states_that_cannot_be_read_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(programs: list[Steps]) -> None:
        raise StateError("step array: expected at most 4096, found 9999999")

    read_otherwise(monkeypatch, fail)

    with pytest.raises(AbiMismatchError) as refused:
        ensure_native(load_tvm())
    assert str(refused.value) == (
        message_prefix()
        + "its states cannot be read (step array: expected at most 4096, found 9999999)"
        + CURE
    )


@pytest.mark.usefixtures("unchecked")
def test_missing_states_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    read_otherwise(monkeypatch, lambda programs: programs[1:])

    with pytest.raises(AbiMismatchError, match="expects: expected 3 states, found 2; use"):
        check_layout(load_tvm())


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
