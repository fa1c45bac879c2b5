"""Properties: on any line, the native reader and Python's json come to the same record, or both refuse."""

from __future__ import annotations

import gzip
import json
import random
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from logs import DATASETS, STEPS
from reference import steps as reference
from tlp_tvm import _core

EXAMPLES = settings(max_examples=300)


def native(line: bytes) -> reference.Record | None:
    """The line's record as the native reader sees it; None if it refuses."""
    block = _core.read_block(line + b"\n", "log", 1, True, 1)
    assert len(block) + len(block.skipped) == 1
    if len(block) == 0:
        return None
    columns = _core.columns_of([block], 1)
    task = columns["tasks"][columns["task_ids"][0]]
    record = reference.Record(
        steps=block.steps(0),
        costs=columns["cost_values"].tolist(),
        error=int(columns["errors"][0]),
        timestamp=int(columns["timestamps"][0]),
        workload_key=task[0],
        target=task[1],
        hardware=task[2],
        target_host=task[3],
    )
    assert columns["latencies"][0] == record.latency
    return record


def oracle(line: bytes) -> reference.Record | None:
    try:
        return reference.parse(line)
    except reference.RefusedError:
        return None


# Records of every form, and now and then something else in their place.

int32 = st.one_of(st.integers(0, 40), st.integers(-(2**31), 2**31 - 1))
int64 = st.one_of(int32, st.integers(-(2**63), 2**63 - 1), st.sampled_from([2**63 - 1, -(2**63), 10**18]))
text = st.text(max_size=12)
numbers = st.one_of(st.integers(), st.floats(allow_nan=False, allow_infinity=False))
other = st.one_of(st.none(), st.booleans(), numbers, text, st.lists(numbers, max_size=3), st.just({}))
junk = st.one_of(other, st.floats())
FIELD = {
    "i": int32,
    "l": int64,
    "b": st.integers(0, 1),
    "s": st.one_of(st.sampled_from(["local", "shared", "auto_unroll_max_step$16"]), text),
    "*": st.lists(int64, max_size=8),
}


@st.composite
def one_step(draw: st.DrawFn) -> list[Any]:
    kind = draw(st.sampled_from(list(reference.FIELDS)))
    return [kind, *(draw(FIELD[field]) for field in reference.FIELDS[kind])]


@st.composite
def one_record(draw: st.DrawFn) -> dict[str, Any]:
    hardware = st.lists(int64, max_size=8)
    task = draw(st.tuples(text, text, hardware, text, int32, st.lists(text, max_size=2)))
    seconds = st.one_of(st.integers(0, 10**10), st.floats(0, 1e10), st.just(1e10))
    record = {
        "i": [list(task[: draw(st.integers(2, 6))]), [[], draw(st.lists(one_step(), max_size=8))]],
        "r": [
            draw(st.lists(seconds, min_size=1, max_size=4)),
            draw(st.sampled_from([0, 0, 0, 2, 6, -1])),
            draw(seconds),
            draw(st.one_of(st.integers(0, 2**33), st.floats(0, 1e10))),
        ],
    }
    for key in draw(st.lists(st.sampled_from(["v", "x", "", "I"]), unique=True)):
        record[key] = draw(other)
    return dict(draw(st.permutations(list(record.items()))))


def spoil(value: Any, chance: random.Random, substitute: Any) -> Any:
    """The value with one random part of it replaced, dropped or doubled."""
    if isinstance(value, dict) and value and chance.random() < 0.9:
        key = chance.choice(list(value))
        return {**value, key: spoil(value[key], chance, substitute)}
    if isinstance(value, list) and value and chance.random() < 0.8:
        at = chance.randrange(len(value))
        changed = chance.choice([[], [value[at]] * 2, *[[spoil(value[at], chance, substitute)]] * 6])
        return [*value[:at], *changed, *value[at + 1 :]]
    return substitute


def spell(value: Any, chance: random.Random) -> str:
    """JSON of the value in one of its many spellings."""
    if isinstance(value, str):
        return spell_text(value, chance)
    if isinstance(value, list):
        return spaced(["[", *commas([spell(item, chance) for item in value]), "]"], chance)
    if isinstance(value, dict):
        pairs = [
            spaced([spell(key, chance), ":", spell(item, chance)], chance) for key, item in value.items()
        ]
        return spaced(["{", *commas(pairs), "}"], chance)
    return json.dumps(value)


def commas(items: list[str]) -> list[str]:
    return [token for item in items for token in (",", item)][1:]


def spaced(tokens: list[str], chance: random.Random) -> str:
    return "".join(token + chance.choice(["", "", "", " ", "\t", "\r", "  "]) for token in tokens)


def spell_text(value: str, chance: random.Random) -> str:
    spelled = []
    for character in value:
        units = np.frombuffer(character.encode("utf-16-le"), np.uint16).tolist()
        escape = "".join(chance.choice(["\\u{:04x}", "\\u{:04X}"]).format(unit) for unit in units)
        short = json.dumps(character, ensure_ascii=False)[1:-1]
        spelled.append(chance.choice([escape, short, short, "\\/" if character == "/" else short]))
    return f'"{"".join(spelled)}"'


@EXAMPLES
@given(one_record(), st.randoms(use_true_random=False))
def test_any_spelling_of_a_record_is_that_record(record: dict[str, Any], chance: random.Random) -> None:
    line = spell(record, chance).encode()
    expected = oracle(line)
    assert expected is not None
    assert native(line) == expected


@EXAMPLES
@given(one_record(), st.randoms(use_true_random=False), junk)
def test_a_spoilt_record_is_taken_or_refused_by_both(
    record: dict[str, Any], chance: random.Random, substitute: Any
) -> None:
    line = spell(spoil(record, chance, substitute), chance).encode()
    assert native(line) == oracle(line), line


WHOLE = {
    "i": [['["k", [4, 4]]', "llvm", [2, 64], "", 1, ["a"]], [[], STEPS]],
    "r": [[0.25, 5], 0, 1.5, 1700000000],
    "v": "v0.6",
    "x": {"a": [1, {"b": None}], "c": "é\n"},
}
PIECES = rb"""
" , [ ] { } : 0 00 - . e E5 + \ / [] {} null true NaN Infinity
\u0000 \u0041 \ud800 \ud83d\ude00 \n \/ -0 1.5 1e2 1e400 "SP" "\u0053P" "\u0000SP" "r":1,
9223372036854775807 9223372036854775808 -9223372036854775808 -9223372036854775809 2147483648 -2147483649
""".split()
PIECES += [b" ", b"\t", b"\r", b"\0", b"\x0b", b"\xff", b"\xed\xa0\x80", b"\xef\xbb\xbf", b"\xc3\xa9"]


def mutated(line: bytes, chance: random.Random) -> bytes:
    changed = bytearray(line)
    for _ in range(chance.choice([1, 1, 1, 2, 3])):
        at = chance.randrange(len(changed) + 1)
        width = chance.choice([0, 1, 1, 2, 5])
        other = chance.randrange(len(changed) + 1)
        changed[at : at + width] = chance.choice(
            [
                chance.choice(PIECES),
                chance.choice(PIECES),
                b"",
                bytes([chance.randrange(256)]),
                changed[other:][:30],
            ]
        )
    return bytes(changed).replace(b"\n", b"")


def sample_lines() -> list[bytes]:
    paths = sorted(Path(DATASETS / "epyc").rglob("*.json.gz"))[::37]
    return [
        json.dumps(WHOLE).encode(),
        *(gzip.decompress(path.read_bytes()).split(b"\n")[0] for path in paths),
    ]


@pytest.mark.parametrize("seed", range(4))
def test_mutated_lines_are_taken_or_refused_by_both(seed: int) -> None:
    chance = random.Random(seed)
    lines = sample_lines()
    taken = 0
    for _ in range(2500):
        line = mutated(chance.choice(lines), chance)
        if not line.strip(b" \t\r"):
            continue
        expected = oracle(line)
        assert native(line) == expected, line
        taken += expected is not None
    assert 100 < taken < 2400  # neither all nor nothing


@pytest.mark.parametrize("depth", [1, 63, 64, 65, 66, 67, 200])
def test_nesting_is_followed_to_the_same_depth(depth: int) -> None:
    for inner in ("", "1", '{"a": 1}'):
        line = json.dumps(WHOLE).replace('"v0.6"', "[" * depth + inner + "]" * depth).encode()
        assert native(line) == oracle(line)
