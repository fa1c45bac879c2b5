"""FeatureLayout as a value: built, compared, saved, loaded, and refused where it contradicts itself."""

from __future__ import annotations

import json
import math
import pickle
from collections.abc import Callable
from dataclasses import FrozenInstanceError
from pathlib import Path
from typing import Any

import pytest

from logs import DATASETS
from reference import steps as reference
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.errors import LayoutError
from tlp_tvm.layout import FeatureLayout

PRESETS = ("ansor", "paper-cpu", "paper-gpu")


@pytest.mark.parametrize("name", PRESETS)
def test_a_layout_comes_back_from_every_form(name: str, tmp_path: Path) -> None:
    layout = FeatureLayout.preset(name)
    layout.save(tmp_path / "layout.json")
    for again in (
        FeatureLayout.preset(name),
        FeatureLayout.from_dict(layout.to_dict()),
        FeatureLayout.from_dict(dict(reversed(layout.to_dict().items()))),
        FeatureLayout.load(tmp_path / "layout.json"),
        pickle.loads(pickle.dumps(layout)),  # noqa: S301  (our own bytes)
    ):
        assert again == layout
        assert hash(again) == hash(layout)
        assert again.digest == layout.digest
    assert list(tmp_path.iterdir()) == [tmp_path / "layout.json"]


def test_what_a_layout_says_of_itself() -> None:
    layout = FeatureLayout.preset("paper-gpu")
    assert (layout.name, layout.framework, layout.numbers) == ("paper-gpu", "ansor", "raw")
    assert (layout.length, layout.width) == (40, 20)
    assert layout.kinds == ("AN", "CHR", "CHW", "CI", "CA", "FFSP", "SP", "FU", "RE", "PR", "FSP")
    assert repr(layout) == f"FeatureLayout('paper-gpu', 40x20, digest='{layout.digest}')"
    assert FeatureLayout.preset("ansor").numbers == "scaled"


def test_the_default_layout_covers_all_kinds() -> None:
    assert set(FeatureLayout.preset("ansor").kinds) == set(reference.FIELDS)


def test_the_digests_of_the_published_layouts_stay() -> None:
    digests = {name: FeatureLayout.preset(name).digest for name in ("paper-cpu", "paper-gpu")}
    assert digests == {"paper-cpu": "dd1f105cd9d02f5b", "paper-gpu": "bf99c3d7716785d7"}


@pytest.mark.parametrize(
    "change",
    [
        {"length": 26},
        {"width": 23},
        {"name": "mine"},
        {"drop": "head"},
        {"kinds": ["RE", "CI"]},
        {"tokens": {}},
    ],
)
def test_any_other_entry_is_another_layout(change: dict[str, Any]) -> None:
    layout = FeatureLayout.preset("paper-cpu")
    other = FeatureLayout.from_dict(layout.to_dict() | change)
    assert other != layout
    assert other.digest != layout.digest
    assert len({layout, other, FeatureLayout.preset("paper-cpu")}) == 2


def test_a_layout_cannot_be_changed_from_outside() -> None:
    layout = FeatureLayout.preset("ansor")
    layout.to_dict()["kinds"].clear()
    assert len(layout.kinds) == 14
    with pytest.raises(FrozenInstanceError):
        layout.spec = "{}"  # type: ignore[misc]


def test_with_shape_changes_the_shape_alone() -> None:
    layout = FeatureLayout.preset("paper-cpu").with_shape(length=54, width=40)
    assert (layout.length, layout.width) == (54, 40)
    assert layout.with_shape(length=25, width=22) == FeatureLayout.preset("paper-cpu")


def test_an_unknown_preset_is_refused() -> None:
    with pytest.raises(LayoutError, match='one of the presets ansor, .*, metaschedule, found "paper"'):
        FeatureLayout.preset("paper")


Change = Callable[[dict[str, Any]], Any]


def entry(**entries: Any) -> Change:
    return lambda spec: spec.update(entries)


def refusal(change: Change, folder: Path) -> str:
    """What is said of the default layout with a change, built and loaded."""
    spec = FeatureLayout.preset("ansor").to_dict()
    change(spec)
    with pytest.raises(LayoutError) as built:
        FeatureLayout.from_dict(spec)
    path = folder / "layout.json"
    path.write_text(json.dumps(spec))
    with pytest.raises(LayoutError) as loaded:
        FeatureLayout.load(path)
    assert str(loaded.value) == f"{path}: {built.value}"
    return str(built.value)


ENTRIES = ("name", "framework", "length", "width", "drop", "kinds", "tokens", "numbers", "version")


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        *((lambda spec, key=key: spec.pop(key), f'"{key}", found no such entry') for key in ENTRIES),
        (entry(framework="tir"), 'a framework that this version knows (ansor, metaschedule), found "tir"'),
        (entry(length="25"), "\"length\" to be an integer, found '25'"),
        (entry(length=True), '"length" to be an integer, found True'),
        (entry(untl="CI"), "no other entries than those of a layout, found 'untl'"),
        (entry(name=3), '"name" to be a text, found 3'),
        (entry(version="1"), "\"version\" to be a number, found '1'"),
        (entry(version=True), '"version" to be a number, found True'),
        (entry(numbers="row"), "\"numbers\" to be raw or scaled, found 'row'"),
        (entry(length=25.5), '"length" to be an integer, found 25.5'),
        (entry(width=None), '"width" to be an integer, found None'),
        (entry(width=2**31), '"width" to be an integer, found 2147483648'),
        (entry(kinds="CI"), "\"kinds\" to be a list, found 'CI'"),
        (entry(length=0), "length and width between 1 and 4096, found 0 x "),
        (entry(width=4097), "length and width between 1 and 4096, found "),
        (entry(width=13), "room for the one-hot of 14 kinds, found a width of 13"),
        (entry(drop="none"), '"drop" to be tail, head or middle, found "none"'),
        (entry(until="XX"), 'a kind of ansor, found "XX"'),
        (entry(until=3), '"until" to be a string, found 3'),
        (entry(omit="CI"), "\"omit\" to be a list, found 'CI'"),
        (entry(omit=["XX"]), 'a kind of ansor, found "XX"'),
        (entry(kinds=["CI", "XX"]), 'a kind of ansor, found "XX"'),
        (entry(kinds=["CI", "CI"]), "each kind once, found CI twice"),
        (entry(kinds=[1]), "a kind to be a string, found 1"),
        (entry(tokens=[]), '"tokens" to be an object, found []'),
        (entry(tokens={"PR": {}}), 'a field of PR, found "PR"'),
        (entry(tokens={"PR.scope": {}}), 'a field of PR, found "scope"'),
        (entry(tokens={"XX.scope": {}}), 'a kind of ansor, found "XX"'),
        (entry(tokens={"PR.pragma_type": 5}), "the tokens of PR.pragma_type to be an object, found 5"),
        (
            entry(tokens={"PR.pragma_type": {"x": "1"}}),
            "the tokens of PR.pragma_type to be a finite number, found '1'",
        ),
        (entry(fields={"XX": {}}), 'a kind of ansor, found "XX"'),
        (entry(fields={"SP": {"scope": {}}}), 'a field of SP, found "scope"'),
        (entry(fields={"SP": 5}), "the fields of SP to be an object, found 5"),
        (entry(fields={"SP": {"extent": 5}}), "the rule of SP.extent to be an object, found 5"),
    ],
)
def test_an_entry_that_does_not_fit_is_refused(change: Change, expected: str, tmp_path: Path) -> None:
    assert refusal(change, tmp_path).startswith(f"layout: expected {expected}")


@pytest.mark.parametrize(
    ("kind", "name", "entries", "expected"),
    [
        (
            "SP",
            "extent",
            {"as": "digit"},
            '"as" to be number, category, list, token or one_hot, found "digit"',
        ),
        ("SP", "extent", {"as": "list"}, "an encoding that fits the field's type"),
        ("FU", "fused_ids", {"as": "number"}, "an encoding that fits the field's type"),
        ("SP", "lengths", {"as": "number"}, '"sums" of a list, found it of a number'),
        ("PR", "pragma_type", {"as": "number"}, "an encoding that fits the field's type"),
        ("SP", "extent", {"column": 13}, "columns between the one-hot (14) and the width"),
        ("SP", "extent", {"column": -1}, "columns between the one-hot (14) and the width"),
        ("SP", "extent", {"column": 4096}, "columns between the one-hot (14) and the width"),
        ("SP", "lengths", {"columns": 0}, "columns between the one-hot (14) and the width"),
        ("SP", "lengths", {"columns": 4096}, "columns between the one-hot (14) and the width"),
        ("SP", "lengths", {"columns": 2**31 - 1}, "columns between the one-hot (14) and the width"),
        ("SP", "extent", {"column": "28"}, "\"column\" to be an integer, found '28'"),
        ("SP", "extent", {"scale": "1"}, "\"scale\" to be a finite number, found '1'"),
        ("SP", "extent", {"scale": math.nan}, '"scale" to be a finite number, found nan'),
        ("SP", "extent", {"scale": 1e39}, '"scale" to be a finite number, found 1e+39'),
        ("SP", "extent", {"scale": True}, '"scale" to be a finite number, found True'),
        ("SP", "extent", {"column": True}, '"column" to be an integer, found True'),
        ("SP", "extent", {"log2": 1}, '"log2" to be true or false, found 1'),
        ("SP", "extent", {"log2": None}, '"log2" to be true or false, found None'),
        ("SP", "extent", {"scal": 2}, "no other entries than those of a layout, found 'scal'"),
        ("SP", "lengths", {"twos": 13}, 'columns of "twos" between the one-hot (14) and the width'),
        ("SP", "lengths", {"twos": -1}, 'columns of "twos" between the one-hot (14) and the width'),
        ("SP", "lengths", {"twos": -2}, 'columns of "twos" between the one-hot (14) and the width'),
        ("SP", "lengths", {"twos": 69}, 'columns of "twos" between the one-hot (14) and the width (72)'),
        ("SP", "lengths", {"twos": True}, '"twos" to be an integer, found True'),
        ("SP", "lengths", {"sums": 70}, 'columns of "sums" between the one-hot (14) and the width (72)'),
        ("RE", "after_ids", {"sums": 44}, '"sums" of at most 8 columns, found 20'),
        ("SP", "extent", {"sums": 20}, '"sums" of a list, found it of a number'),
        ("PR", "pragma_type", {"twos": 20}, '"twos" of a number or a list, found it of a token'),
        ("SP", "extent", {"log2": "yes"}, "\"log2\" to be true or false, found 'yes'"),
    ],
)
def test_a_rule_that_does_not_fit_is_refused(
    kind: str, name: str, entries: dict[str, Any], expected: str, tmp_path: Path
) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["fields"][kind][name].update(entries)

    assert refusal(change, tmp_path).startswith(f"layout: {kind}.{name}: expected {expected}")


@pytest.mark.parametrize("position", [-1, 2, 1e30, 0.5])
def test_a_token_outside_its_one_hot_is_refused(position: float, tmp_path: Path) -> None:
    def change(spec: dict[str, Any]) -> None:
        spec["fields"]["CHW"]["scope_name"] = {"as": "one_hot", "column": 20, "columns": 2}
        spec["tokens"]["CHW.scope_name"] = {"local": position}

    assert refusal(change, tmp_path).startswith(
        'layout: CHW.scope_name: expected the token of "local" to be a place below 2, found '
    )


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        (b"", r"layout\.json: expected the JSON of a layout, found "),
        (b"{", r"layout\.json: expected the JSON of a layout, found "),
        (b"\xff", r"layout\.json: expected the JSON of a layout, found "),
        (b"[]", r"layout\.json: expected a JSON object, found list"),
        (b"{}", r'layout\.json: layout: expected "framework", found no such entry'),
    ],
)
def test_a_file_that_is_no_layout_is_refused(data: bytes, expected: str, tmp_path: Path) -> None:
    path = tmp_path / "layout.json"
    path.write_bytes(data)
    with pytest.raises(LayoutError, match=expected):
        FeatureLayout.load(path)


def test_a_missing_layout_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match=r"no\.json"):
        FeatureLayout.load(tmp_path / "no.json")


def test_a_layout_of_the_other_framework_is_refused_natively() -> None:
    file = next((DATASETS / "epyc" / "epyc-avx2-1c" / "test").iterdir())
    batch = read_records(file)

    with pytest.raises(LayoutError, match="expected one for programs of ansor, found one for metaschedule"):
        batch.encode(FeatureLayout.preset("metaschedule"))
