"""The native reader is used only where a child process read what TVM writes."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from processes import bundled_tvm, random_states, run_python
from tlp_tvm import FeatureLayout, extract_states
from tlp_tvm.ansor import load_tvm, steps_of
from tlp_tvm.ansor.loading import self_check
from tlp_tvm.ansor.loading.locate import tvm_info
from tlp_tvm.ansor.loading.self_check import check_layout, ensure_native
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.errors import AbiMismatchError

CURE = '; use extract_states(..., route="record"), or a TVM 0.8-0.19 built for x86-64 Linux'


def message(library: object, difference: str) -> str:
    return (
        f"TVM {tvm_info().version} ({library}): its objects are not laid out as the native reader expects: "
        f"{difference}{CURE}"
    )


@pytest.fixture
def kept(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """As in the first process of a user: where outcomes will be kept."""
    monkeypatch.setattr(self_check, "_reader", None)
    monkeypatch.setattr(self_check, "_refusal", "")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tlp-tvm" / "object-layout"


def let_children_find(monkeypatch: pytest.MonkeyPatch, outcome: dict[str, Any]) -> list[None]:
    """Give this outcome in the place of a child's; returns a list with an item a child."""
    children: list[None] = []

    def run() -> dict[str, Any]:
        children.append(None)
        return outcome

    monkeypatch.setattr(self_check, "_outcome_of_child", run)
    return children


PASSED = {"kinds": ["SP"], "states": 1, "steps": 2}


def test_the_check_is_silent_and_leaves_no_trace(kept: Path, capfd: pytest.CaptureFixture[str]) -> None:
    tvm = load_tvm()
    capfd.readouterr()
    before = random_states()

    report = check_layout(tvm)

    assert report.states > 40
    assert random_states() == before
    assert capfd.readouterr() == ("", "")
    assert [file.suffix for file in kept.iterdir()] == [".json"]


def test_a_library_is_checked_once(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    children = let_children_find(monkeypatch, PASSED)
    reader = ensure_native(load_tvm())
    assert ensure_native(load_tvm()) is reader
    monkeypatch.setattr(self_check, "_reader", None)  # another process
    ensure_native(load_tvm())
    assert len(children) == 1

    other = kept.parent / "libtvm.so"
    other.write_bytes(b"another build")
    info = tvm_info()
    with monkeypatch.context() as during:
        during.setattr(self_check, "tvm_info", lambda: type(info)(**{**vars(info), "library": str(other)}))
        assert not self_check._has_passed(self_check._outcome_file())
    for file in kept.iterdir():
        file.write_text(file.read_text()[:9])  # of a disk that was full once
    monkeypatch.setattr(self_check, "_reader", None)
    ensure_native(load_tvm())
    assert len(children) == 2


def test_where_nothing_can_be_kept_each_process_checks(kept: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kept.parent.parent.joinpath("tlp-tvm").write_text("a file where the folder would be")
    children = let_children_find(monkeypatch, PASSED)
    ensure_native(load_tvm())
    monkeypatch.setattr(self_check, "_reader", None)
    ensure_native(load_tvm())
    assert len(children) == 2


def test_another_layout_is_refused_for_good_and_the_record_route_still_works(
    kept: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = FeatureLayout.preset("ansor")
    states = sample_states(operator_task("dense", "llvm"), 8)
    difference = "state 0: step 1 (SP), field 3: expected 512, found 94"
    with monkeypatch.context() as during:
        let_children_find(during, {"difference": difference})
        with pytest.raises(AbiMismatchError) as refused:
            extract_states(states, layout)
    assert str(refused.value) == message(tvm_info().library, difference)
    assert not kept.exists()

    for attempt in (
        lambda: extract_states(states, layout),
        lambda: steps_of(states[0]),
        lambda: ensure_native(load_tvm()),
    ):
        with pytest.raises(AbiMismatchError, match="step 1 \\(SP\\), field 3: expected 512, found 94"):
            attempt()
    by_record = extract_states(states, layout, route="record")

    monkeypatch.setattr(self_check, "_refusal", "")
    let_children_find(monkeypatch, PASSED)
    np.testing.assert_array_equal(by_record, extract_states(states, layout))


@pytest.mark.usefixtures("kept")
def test_a_child_that_says_nothing_is_a_refusal(monkeypatch: pytest.MonkeyPatch) -> None:
    for child, clause in (
        ("raise SystemExit('no room')", "reading them ended a child process (no room)"),
        ("raise SystemExit(3)", "reading them ended a child process (exit status 3)"),
        ("import os; os.abort()", "reading them ended a child process (SIGABRT)"),
        ("import time; time.sleep(60)", "reading them in a child process took more than 1 s"),
    ):
        monkeypatch.setattr(self_check, "_CHILD", child)
        monkeypatch.setattr(self_check, "_SECONDS", 1 if "sleep" in child else 60)
        with pytest.raises(AbiMismatchError) as refused:
            check_layout(load_tvm())
        assert str(refused.value) == message(tvm_info().library, clause)


def tvm_with_other_objects(home: Path, one: str, other: str) -> Path:
    """A TVM whose class `one` is laid out as `other` is elsewhere: the names of the two are exchanged."""
    source = bundled_tvm()
    (home / "build").mkdir(parents=True)
    (home / "python").symlink_to(source / "python")
    library = home / "build" / "libtvm.so"
    shutil.copy(source / "build" / "libtvm.so", library)
    code = library.read_bytes()
    names = [f"\0auto_scheduler.{name}\0".encode() for name in (one, other)]
    places = [code.find(name) for name in names]
    assert places[0] >= 0
    assert len(names[0]) == len(names[1])
    with library.open("r+b") as opened:
        for place, name in zip(places, reversed(names), strict=True):
            if place >= 0:
                opened.seek(place)
                opened.write(name)
    return library


IN_ANOTHER_TVM = """
import numpy as np
from tlp_tvm import FeatureLayout, extract_states
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.errors import AbiMismatchError

layout = FeatureLayout.preset("ansor")
states = sample_states(operator_task("dense", "llvm"), 4)
try:
    extract_states(states, layout)
    refusal = ""
except AbiMismatchError as error:
    refusal = str(error)
by_record = extract_states(states, layout, route="record")
report(refusal=refusal, by_record=bool(len(by_record) == len(states) and np.any(by_record)))
"""


@pytest.mark.parametrize(
    ("one", "other", "difference"),
    [
        # Where the reader expects a list there is a number: whoever follows it is gone.
        ("ReorderStep", "RfactorStep", "reading them ended a child process (SIGSEGV)"),
        (
            "ComputeInlineStep",
            "ComputeInlineStop",
            (
                "its states cannot be read (state 0: step 0: expected a transform step of Ansor, found "
                "auto_scheduler.ComputeInlineStop)"
            ),
        ),
    ],
)
def test_a_library_with_other_objects_costs_a_sentence(
    tmp_path: Path, one: str, other: str, difference: str
) -> None:
    library = tvm_with_other_objects(tmp_path / "tvm", one, other)

    found = run_python(IN_ANOTHER_TVM, TVM_HOME=str(tmp_path / "tvm"), XDG_CACHE_HOME=str(tmp_path))

    assert found == {"refusal": message(library, difference), "by_record": True}
    library.unlink()
