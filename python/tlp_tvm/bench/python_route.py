"""A plain encoder in Python: the baseline of the extraction benchmarks."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tlp_tvm import _core
from tlp_tvm.embedding import Embedding
from tlp_tvm.layout import FeatureLayout


class PythonEncoder:
    """A flat layout, value by value: one-hot, then the fields, names by their token, cut at the width."""

    def __init__(self, layout: FeatureLayout) -> None:
        spec = layout.to_dict()
        if "fields" in spec:
            raise ValueError(f"layout {layout.name}: expected a flat one, found an aligned one")
        self._shape = (layout.length, layout.width)
        kinds = spec["kinds"]
        self._no_kind = [0.0] * len(kinds)
        self._one_hot = {kind: [float(i == k) for i in range(len(kinds))] for k, kind in enumerate(kinds)}
        self._tokens = {key.split(".")[0]: names for key, names in spec["tokens"].items()}

    def encode(self, steps: list[list[Any]]) -> Embedding:
        """One program in record form as (L, E) float32."""
        length, width = self._shape
        out = np.zeros(self._shape, np.float32)
        for row, step in enumerate(steps[:length]):
            values = list(self._one_hot.get(step[0], self._no_kind))
            for field in step[1:]:
                if isinstance(field, list):
                    values += field
                elif isinstance(field, str):
                    values.append(self._tokens[step[0]].get(field, 0))
                else:
                    values.append(field)
            values = values[:width]
            out[row, : len(values)] = values
        return out


class PythonAlignedEncoder:
    """An aligned layout, field by field: one-hot, then each field in its columns, numbers scaled."""

    def __init__(self, layout: FeatureLayout) -> None:
        spec = layout.to_dict()
        if "fields" not in spec or spec["drop"] != "middle":
            raise ValueError(f"layout {layout.name}: expected an aligned one that drops from the middle")
        self._shape = (layout.length, layout.width)
        self._until, self._omitted = spec.get("until"), set(spec.get("omit", ()))
        self._one_hot = {kind: column for column, kind in enumerate(spec["kinds"])}
        names = {kind: [name for name, _ in fields] for kind, fields in _core.kinds_of(layout.framework)}
        self._rules = {
            kind: [(names[kind].index(name) + 1, rule) for name, rule in rules.items()]
            for kind, rules in spec["fields"].items()
        }
        self._tokens = {
            (kind, at): spec["tokens"].get(f"{kind}.{names[kind][at - 1]}", {})
            for kind, rules in self._rules.items()
            for at, _ in rules
        }

    def encode(self, steps: list[list[Any]]) -> Embedding:
        """One program, one list per primitive, as (L, E) float32."""
        out = np.zeros(self._shape, np.float32)
        shown = []
        for step in steps:
            if step[0] == self._until:
                break
            if step[0] not in self._omitted:
                shown.append(step)
        length = self._shape[0]
        if len(shown) > length:
            shown = shown[: length // 2] + shown[len(shown) - (length - length // 2) :]
        before, sums = ("", 0), [0.0]  # kind and list's length of the row before
        for row, step in zip(out, shown, strict=False):
            kind = step[0]
            if kind != before[0]:
                before = "", 0
            if kind in self._one_hot:
                row[self._one_hot[kind]] = 1.0
            for at, rule in self._rules.get(kind, ()):
                self._put(row, rule, step[at], self._tokens[kind, at])
                if "sums" in rule:
                    logs = _logs(step[at][: rule["columns"]], rule)
                    run = kind, len(step[at])
                    sums = [a + b for a, b in zip(sums, logs, strict=True)] if run == before else logs
                    before = run
                    row[rule["sums"] : rule["sums"] + len(sums)] = sums
        return out

    @staticmethod
    def _put(row: Embedding, rule: dict[str, Any], value: Any, tokens: dict[str, int]) -> None:
        column, kind = rule["column"], rule["as"]
        if kind in ("number", "list"):
            for k, item in enumerate(value[: rule["columns"]] if kind == "list" else [value]):
                row[column + k] = _scaled(item, rule)
                if "twos" in rule:
                    row[rule["twos"] + k] = _twos(item) * rule.get("scale", 1.0)
        elif kind == "category":
            if 0 <= value < rule["columns"]:
                row[column + value] = 1.0
        elif value in tokens:
            if kind == "token":
                row[column] = tokens[value] * rule.get("scale", 1.0)
            else:
                row[column + tokens[value]] = 1.0


def _scaled(value: float, rule: dict[str, Any]) -> float:
    if rule.get("log2", False):
        value = math.copysign(math.log2(1 + abs(value)), value)
    scale: float = rule.get("scale", 1.0)
    return value * scale


def _logs(items: list[int], rule: dict[str, Any]) -> list[float]:
    return [math.log2(max(item, 1)) * rule.get("scale", 1.0) for item in items]


def _twos(value: int) -> int:
    """How often two divides a number; of zero, not at all."""
    return (value & -value).bit_length() - 1 if value else 0
