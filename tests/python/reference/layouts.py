"""What a layout makes of a program, in plain Python: slow, and with nothing of the encoder in it.

Written from the dictionary form of a layout (`FeatureLayout`). A step is a list as records hold it: its kind,
then numbers, names and lists of numbers in the order of the kind's fields.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from numpy.typing import NDArray

Kinds = tuple[tuple[str, tuple[tuple[str, str], ...]], ...]
"""Name of each kind, and names and types of its fields."""


def embed(spec: dict[str, Any], kinds: Kinds, steps: list[list[Any]]) -> NDArray[np.float32]:
    """One program, (L, E) float32.

    Args:
        spec: the dictionary form of a layout, which is known to be one.
        kinds: those of its framework.
        steps: the program.
    """
    fields_of = dict(kinds)
    out = np.zeros((spec["length"], spec["width"]), np.float32)
    shown = _shown(spec, steps)
    for place, step in enumerate(shown):
        row = out[place]
        if step[0] in spec["kinds"]:
            row[spec["kinds"].index(step[0])] = 1.0
        values = [
            (name, kind, value) for (name, kind), value in zip(fields_of[step[0]], step[1:], strict=True)
        ]
        if "fields" in spec:
            _aligned(spec, step[0], values, row, _run(fields_of, shown[: place + 1]))
        else:
            _flat(spec, step[0], values, row[len(spec["kinds"]) :])
    return out


def _shown(spec: dict[str, Any], steps: list[list[Any]]) -> list[list[Any]]:
    if "until" in spec:
        ends = [place for place, step in enumerate(steps) if step[0] == spec["until"]]
        steps = steps[: ends[0]] if ends else steps
    steps = [step for step in steps if step[0] not in spec.get("omit", [])]
    length = spec["length"]
    first = {"tail": length, "head": 0, "middle": length // 2}[spec["drop"]]
    if len(steps) <= length:
        return steps
    return steps[:first] + steps[len(steps) - (length - first) :]


def _flat(
    spec: dict[str, Any], kind: str, values: list[tuple[str, str, Any]], row: NDArray[np.float32]
) -> None:
    columns: list[float] = []
    for name, type_, value in values:
        if type_ == "name":
            columns.append(spec["tokens"].get(f"{kind}.{name}", {}).get(value, 0.0))
        else:
            columns.extend(value if type_ == "list" else [value])
    row[: len(columns)] = np.array(columns[: len(row)], np.float32)


def _aligned(
    spec: dict[str, Any],
    kind: str,
    values: list[tuple[str, str, Any]],
    row: NDArray[np.float32],
    run: dict[str, list[list[int]]],
) -> None:
    for name, _, value in values:
        rule = spec["fields"].get(kind, {}).get(name)
        if rule is None:
            continue
        column, columns = rule["column"], rule.get("columns", 1)
        if rule["as"] in ("number", "list"):
            for place, item in enumerate(value[:columns] if rule["as"] == "list" else [value]):
                row[column + place] = _scaled(item, rule)
                if "twos" in rule:
                    row[rule["twos"] + place] = _twos(item, rule)
            if "sums" in rule:
                for place in range(min(len(value), columns)):
                    row[rule["sums"] + place] = _summed([items[place] for items in run[name]], rule)
        elif rule["as"] == "category":
            if 0 <= value < columns:
                row[column + value] = 1.0
        else:
            token = spec["tokens"].get(f"{kind}.{name}", {}).get(value)
            if token is None:
                continue
            if rule["as"] == "token":
                row[column] = np.float32(token) * np.float32(rule.get("scale", 1.0))
            else:
                row[column + int(token)] = 1.0


def _run(fields_of: dict[str, Any], steps: list[list[Any]]) -> dict[str, list[list[int]]]:
    """By field of the last step: the lists of the steps that it ends a run of, of one kind and as long."""
    last = steps[-1]
    found: dict[str, list[list[int]]] = {}
    for at, (name, type_) in enumerate(fields_of[last[0]], 1):
        if type_ != "list":
            continue
        lists = found.setdefault(name, [])
        for step in reversed(steps):
            if step[0] != last[0] or len(step[at]) != len(last[at]):
                break
            lists.insert(0, step[at])
    return found


def _summed(values: list[int], rule: dict[str, Any]) -> np.float32:
    total = np.float32(0)
    for value in values:
        total += np.float32(math.log2(max(value, 1))) * np.float32(rule.get("scale", 1.0))
    return total


def _scaled(value: int, rule: dict[str, Any]) -> np.float32:
    if rule.get("log2", False):
        value_or_log = math.copysign(math.log2(1.0 + abs(value)), value)
    else:
        value_or_log = value
    return np.float32(np.float32(value_or_log) * np.float32(rule.get("scale", 1.0)))


def _twos(value: int, rule: dict[str, Any]) -> np.float32:
    count = 0
    while value and value % 2 == 0:
        value, count = value // 2, count + 1
    return np.float32(np.float32(count) * np.float32(rule.get("scale", 1.0)))
