"""Machine code of measured programs, kept for the network that is built of them.

A program is compiled when it is measured, and is the same function in the network: what TVM and LLVM take
a second for, of a Winograd convolution three, is done once.
"""

from __future__ import annotations

import hashlib
import json
import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

Arguments: TypeAlias = tuple[tuple[tuple[int, ...], str], ...]

MOST = 8
"""Programs of a task whose code is kept, the fastest."""


class Code(NamedTuple):
    """Of one program.

    Attributes:
        name: of its function.
        object_file: that has the function.
        arguments: shape and type of each of the function's tensors.
    """

    name: str
    object_file: bytes
    arguments: Arguments


def arguments_of(tensors: Sequence[Any]) -> Arguments:
    """Shape and type of TVM's tensors."""
    return tuple((tuple(int(each) for each in tensor.shape), str(tensor.dtype)) for tensor in tensors)


def name_of(program: Any) -> str:
    """What the function of a program is called, by its task and its steps.

    Args:
        program: "i" of a record; or a JSON text of it, as TVM gives it.
    """
    described = json.loads(program) if isinstance(program, str) else program
    return f"program_{hashlib.sha256(json.dumps(described).encode()).hexdigest()[:16]}"


class KeptCode:
    """The code of each task's fastest programs."""

    def __init__(self) -> None:
        """Keep nothing yet."""
        self._codes: dict[str, Code] = {}
        self._latencies: dict[str, dict[str, float]] = defaultdict(dict)

    def add(self, code: Code) -> None:
        """Keep code, at least until its program was timed."""
        self._codes[code.name] = code

    def timed(self, task: str, name: str, latency: float) -> None:
        """Note how fast a program is, and forget what is too slow to be wanted.

        Args:
            task: workload key.
            name: that `name_of` gave.
            latency: seconds; infinity where it failed.
        """
        if name not in self._codes:
            return
        latencies = self._latencies[task]
        latencies[name] = min(latency, latencies.get(name, latency))
        for slow in sorted(latencies, key=lambda each: latencies[each])[MOST:]:
            del latencies[slow], self._codes[slow]

    def fastest(self, task: str) -> float:
        """Lowest latency of a task's programs whose code is kept, seconds; infinity where none is.

        Args:
            task: workload key.
        """
        return min(self._latencies.get(task, {}).values(), default=math.inf)

    def of(self, line: str) -> Code | None:
        """The code of a record.

        Args:
            line: of TVM's record file.
        """
        return self._codes.get(name_of(json.loads(line)["i"]))


@dataclass(frozen=True)
class CodeOf:
    """How programs became machine code when they were measured, and what is kept of it.

    Attributes:
        kind: as `MeasureSettings` has it.
        kept: of programs that need not be compiled again.
    """

    kind: str
    kept: KeptCode = field(default_factory=KeptCode)

    def of_records(self, log: Path) -> dict[str, Code]:
        """Workload key to the code of its record, for those that have some.

        Args:
            log: TVM's record file, of one program a task.
        """
        lines = log.read_text(encoding="utf-8").splitlines()
        found = {str(json.loads(line)["i"][0][0]): self.kept.of(line) for line in lines}
        return {key: code for key, code in found.items() if code is not None}
