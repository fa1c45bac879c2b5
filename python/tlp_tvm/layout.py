"""FeatureLayout: which column of an embedding means what, as a value."""

from __future__ import annotations

import functools
import hashlib
import json
import os
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from tlp_tvm import _core
from tlp_tvm.errors import LayoutError
from tlp_tvm.files import write_whole

PRESETS = ("ansor", "paper-cpu", "paper-gpu", "metaschedule")
"""Layouts that ship, as JSON in the folder `layouts`."""


def _entry(spec: dict[str, Any], key: str) -> object:
    if key not in spec:
        raise LayoutError(f'layout: expected "{key}", found no such entry')
    return spec[key]


@dataclass(frozen=True)
class FeatureLayout:
    """The shape of an embedding and the meaning of its columns: the contract between encoder and model.

    Two layouts are equal when every entry is; `digest` names that in 16 characters. The dictionary form:

        name, framework, version   what the layout is called
        length, width              L rows (primitives) and E columns of an embedding
        until                      optional: the kind at which encoding ends, what follows being derived
        omit                       optional: kinds without a row, because others say what they say
        drop                       which rows go when a program has more: "tail", "head" or "middle"
        numbers                    "raw", or "scaled" to about [0, 3] by the encoder
        kinds                      primitive kinds in the order of their one-hot, which comes first
        tokens                     "KIND.field" -> {name: number}, for the fields that hold names
        fields                     aligned layouts only: KIND -> field -> where it goes,
                                   {"as": "number" | "category" | "list" | "token" | "one_hot",
                                    "column": int, "columns": int, "log2": bool, "scale": float,
                                    "twos": int, "sums": int}: "twos" of numbers and lists is the first
                                   of as many columns for how often two divides each of them, "sums" of
                                   lists the first of those for log2 of each, summed over the rows just
                                   before of the same kind with lists as long: the product of a level's tiles

    Without `fields` a layout is flat, as published: fields follow the one-hot in the order of the record,
    lists spilled in place, cut at E.
    """

    spec: str
    """Canonical JSON of the dictionary form."""

    @classmethod
    def from_dict(cls, spec: dict[str, Any]) -> FeatureLayout:
        """Build a layout from its dictionary form.

        Raises:
            LayoutError: an entry is missing, of another type, or does not fit the others.
        """
        layout = cls(json.dumps(spec, sort_keys=True, separators=(",", ":")))
        _ = layout.encoder  # checks every entry
        for key, kind, what in (("name", str, "a text"), ("version", int, "a number")):
            if type(_entry(spec, key)) is not kind:
                raise LayoutError(f'layout: expected "{key}" to be {what}, found {spec[key]!r}')
        if _entry(spec, "numbers") not in ("raw", "scaled"):
            raise LayoutError(f'layout: expected "numbers" to be raw or scaled, found {spec["numbers"]!r}')
        return layout

    @classmethod
    def preset(cls, name: str) -> FeatureLayout:
        """A layout that ships: "ansor", "metaschedule", "paper-cpu" (25 x 22) or "paper-gpu" (40 x 20).

        Raises:
            LayoutError: there is no preset of that name.
        """
        if name not in PRESETS:
            raise LayoutError(f'layout: expected one of the presets {", ".join(PRESETS)}, found "{name}"')
        text = resources.files("tlp_tvm").joinpath("layouts").joinpath(f"{name}.json").read_text()
        return cls.from_dict(json.loads(text))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> FeatureLayout:
        """Read a layout that `save` wrote.

        Raises:
            LayoutError: the file is no layout.
            OSError: the file cannot be read.
        """
        try:
            spec = json.loads(Path(path).read_text(encoding="utf-8"))
        except (ValueError, RecursionError) as error:
            raise LayoutError(f"{path}: expected the JSON of a layout, found {error}") from error
        if not isinstance(spec, dict):
            raise LayoutError(f"{path}: expected a JSON object, found {type(spec).__name__}")
        try:
            return cls.from_dict(spec)
        except LayoutError as error:
            raise LayoutError(f"{path}: {error}") from error

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the layout as JSON, to a new name first."""
        write_whole(path, json.dumps(self.to_dict(), indent=1) + "\n")

    def to_dict(self) -> dict[str, Any]:
        """The dictionary form, a fresh copy."""
        spec: dict[str, Any] = json.loads(self.spec)
        return spec

    def with_shape(self, *, length: int | None = None, width: int | None = None) -> FeatureLayout:
        """The same layout with another L or E, e.g. the uncropped ones of the paper: 54 x 40, 69 x 49.

        Raises:
            LayoutError: the layout cannot have that shape.
        """
        spec = self.to_dict()
        spec["length"] = self.length if length is None else length
        spec["width"] = self.width if width is None else width
        return FeatureLayout.from_dict(spec)

    @functools.cached_property
    def _entries(self) -> dict[str, Any]:
        return self.to_dict()

    @functools.cached_property
    def encoder(self) -> _core.Encoder:
        """The native encoder of this layout."""
        return _core.Encoder(self.to_dict())

    @property
    def name(self) -> str:
        """What the layout is called."""
        return str(self._entries["name"])

    @property
    def framework(self) -> str:
        """Whose primitives it encodes: "ansor" or "metaschedule"."""
        return str(self._entries["framework"])

    @property
    def length(self) -> int:
        """Rows L of an embedding."""
        return int(self._entries["length"])

    @property
    def width(self) -> int:
        """Columns E of an embedding."""
        return int(self._entries["width"])

    @property
    def kinds(self) -> tuple[str, ...]:
        """Primitive kinds in the order of their one-hot, columns 0 to len(kinds) - 1."""
        return tuple(self._entries["kinds"])

    @property
    def numbers(self) -> str:
        """Whether numbers stand as they are ("raw") or come scaled from the encoder ("scaled")."""
        return str(self._entries["numbers"])

    @property
    def digest(self) -> str:
        """16 hexadecimal characters of the SHA-256 of the canonical JSON."""
        return hashlib.sha256(self.spec.encode()).hexdigest()[:16]

    def __getstate__(self) -> dict[str, str]:
        return {"spec": self.spec}  # the encoder is made anew where it is needed

    def __repr__(self) -> str:
        return f"FeatureLayout({self.name!r}, {self.length}x{self.width}, digest={self.digest!r})"
