"""Damage to JSON and to bytes: a value of another type or size, one that is gone, twice there, elsewhere."""

from __future__ import annotations

import copy
import json
import math
import random
from typing import Any

VALUES: tuple[Any, ...] = (
    *(-1, 0, 1, 2, 3, 4, 5, 7, 8, 16, 24, 32, 64, 256, 4096, 4097, 2**31 - 1, 2**31, 2**63, 10**30),
    *(-0.0, 0.5, 1.0, 4.0, 1e39, math.nan, math.inf, -math.inf),
    *(True, False, None, "", "4", "true", "lstm", "\ud800", "\0", "x" * 300),
    *([], {}, [1], [[]], {"a": 1}, [None, None]),
)
TOKENS = (
    '"',
    "\\",
    "[",
    "]",
    "{",
    "}",
    ",",
    ":",
    "-",
    "0",
    "1e400",
    "NaN",
    "Infinity",
    "null",
    "true",
    "\\u0000",
)


class Mutator:
    """Draws mutations; the same seed draws the same."""

    def __init__(self, seed: str) -> None:
        """Begin the sequence of a seed."""
        self.random = random.Random(seed)

    def happens(self, share: float) -> bool:
        """True in this share of the draws."""
        return self.random.random() < share

    def tree(self, value: Any, edits: int = 2) -> Any:
        """A copy of a JSON value with a few edits."""
        value = copy.deepcopy(value)
        for _ in range(self.random.randint(1, edits)):
            places = list(_places(value))
            if places:
                self._edit(*self.random.choice(places), places)
        return value

    def _edit(self, holder: Any, key: Any, places: list[tuple[Any, Any]]) -> None:
        kind = self.random.randrange(6)
        if kind < 3:
            holder[key] = copy.deepcopy(self.random.choice(VALUES))
        elif kind == 3:
            del holder[key]
        elif kind == 4:
            other, place = self.random.choice(places)
            holder[key] = copy.deepcopy(other[place])
        elif isinstance(holder, dict):
            holder[self.random.choice(("x", "", str(key) + "_", "layers"))] = copy.deepcopy(holder[key])
        else:
            holder.insert(key, copy.deepcopy(holder[key]))

    def text(self, value: Any, share: float = 0.2) -> bytes:
        """JSON of a value, in some cases with damage to the text."""
        text = json.dumps(value)
        if not self.happens(share):
            return text.encode()
        for _ in range(self.random.randint(1, 3)):
            at = self.random.randrange(len(text) + 1)
            token = self.random.choice(TOKENS) if self.happens(0.8) else "[" * 5000
            text = text[:at] + token + text[at + self.random.randrange(4) :]
        return self.bytes(text.encode()) if self.happens(0.3) else text.encode()

    def bytes(self, data: bytes) -> bytes:
        """The bytes with a few of them changed, gone or more."""
        for _ in range(self.random.randint(1, 3)):
            at = self.random.randrange(len(data) + 1)
            new = self.random.randbytes(self.random.randrange(9))
            data = data[:at] + new + data[at + self.random.choice((0, len(new), len(new), 1, 40)) :]
        return data


def _places(value: Any) -> list[tuple[Any, Any]]:
    """Every entry of every object and list inside."""
    inside: list[tuple[Any, Any]] = []
    if isinstance(value, dict):
        inside = [(value, key) for key in value]
    elif isinstance(value, list):
        inside = [(value, i) for i in range(len(value))]
    return inside + [place for holder, key in inside for place in _places(holder[key])]
