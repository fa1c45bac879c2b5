"""A comparison read back: its searches, and each model against the baseline."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tlp_tvm.comparison.against import Against, against
from tlp_tvm.comparison.compare_settings import BASELINE
from tlp_tvm.comparison.search_run import Run
from tlp_tvm.errors import ComparisonError
from tlp_tvm.files import read_content

RESULTS = "comparison.json"
FORMAT, FORMAT_VERSION = "tlp-tvm-comparison", 1


@dataclass(frozen=True)
class Comparison:
    """A comparison read back; `content` is the file itself."""

    content: dict[str, Any]

    @property
    def contenders(self) -> tuple[str, ...]:
        """The models, "tlp:16"."""
        return tuple(self.content["contenders"])

    @property
    def baseline(self) -> str | None:
        """The contender that the others are compared with: TVM's own model, if it took part."""
        return next((name for name in self.contenders if name.startswith(f"{BASELINE}:")), None)

    def runs(self) -> list[Run]:
        """Every search."""
        return [
            Run.of(name, group, entry)
            for group in self.content["groups"]
            for name, entry in group["sessions"].items()
        ]

    def against_baseline(self) -> list[Against]:
        """Every other model compared with the baseline; empty without one."""
        if self.baseline is None:
            return []
        runs = {(run.contender, run.task, run.seed): run for run in self.runs()}
        return [
            against(
                name,
                [
                    (run, runs[self.baseline, task, seed])
                    for (contender, task, seed), run in runs.items()
                    if contender == name
                ],
            )
            for name in self.contenders
            if name != self.baseline
        ]


def read_comparison(folder: str | os.PathLike[str]) -> Comparison:
    """Read a comparison's folder.

    Args:
        folder: that `compare` wrote.

    Raises:
        ComparisonError: it holds none.
    """
    path = Path(folder) / RESULTS
    return Comparison(read_content(path, FORMAT, FORMAT_VERSION, "a comparison", ComparisonError))
