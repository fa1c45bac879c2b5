"""What `torch.compile(..., backend="tlp_tvm", options={...})` takes."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tlp_tvm.errors import TuningError

MODEL = "x86-metaschedule"


@dataclass(frozen=True)
class BackendOptions:
    """How graphs are compiled.

    Attributes:
        minutes: to tune each graph for, before its first run; 0 to have the model choose without measuring.
        database: folder of a MetaSchedule database whose measured programs are used.
        model: what scores programs; anything that `tlp_tvm.load_model` takes.
        target: of TVM; empty for this machine's CPU.
        shapes: of one graph that are compiled; more of them run as PyTorch runs them.
        never_slower: whether a compiled graph is timed beside PyTorch's own, which runs it where it is
            faster. What is compiled does not depend on it.
    """

    minutes: float = 0.0
    database: Path | None = None
    model: str = MODEL
    target: str = ""
    shapes: int = 8
    never_slower: bool = field(default=True, repr=False)  # graphs are kept by the text of the others

    @classmethod
    def of(cls, given: Mapping[str, Any] | None) -> BackendOptions:
        """Check what a user gave.

        Raises:
            TuningError: an option is unknown, or has a value that it cannot have.
        """
        given = dict(given or {})
        names = [each.name for each in dataclasses.fields(cls)]
        if unknown := [name for name in given if name not in names]:
            raise TuningError(f'options: expected some of {", ".join(names)}, found "{unknown[0]}"')
        _check(given, "minutes", "a number that is not negative", lambda value: value >= 0, (int, float))
        _check(given, "shapes", "a positive integer", lambda value: value > 0, (int,))
        _check(given, "database", "a folder", lambda value: Path(value).is_dir(), (str, Path))
        if not isinstance(given.get("never_slower", True), bool):
            raise TuningError(
                f'options: expected True or False for "never_slower", found {given["never_slower"]!r}'
            )
        for name in ("model", "target"):
            _check(given, name, "text", lambda _: True, (str,))
        if "database" in given:
            given["database"] = Path(given["database"]).resolve()
        return cls(**given)


def _check(given: Mapping[str, Any], name: str, expected: str, fits: Any, kinds: tuple[type, ...]) -> None:
    if name not in given:
        return
    value = given[name]
    if isinstance(value, bool) or not isinstance(value, kinds) or not fits(value):
        raise TuningError(f'options: expected {expected} for "{name}", found {value!r}')
