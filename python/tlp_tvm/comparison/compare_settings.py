"""Settings and observer of a comparison."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tlp_tvm.errors import ComparisonError
from tlp_tvm.framework import DEFAULT, Contender, framework_named
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.pool import MeasureSettings

BASELINE = "xgb"


def contender(text: str, per_round: int = 0, population: int = 0, framework: str = DEFAULT) -> Contender:
    """Read "xgb", "xgb:64" or "xgb:64:2048".

    Args:
        text: a model, the programs that it measures in a round, and those that breed.
        per_round: where the text does not say; 0 for what the model's users have.
        population: the same.
        framework: whose models.

    Raises:
        ComparisonError: no such model, or no numbers.
    """
    models = framework_named(framework).contenders
    model, *numbers = text.strip().split(":")
    if model not in models or len(numbers) > 2 or not all(n.isdigit() and int(n) for n in numbers):
        raise ComparisonError(
            f'`contenders` "{text}": expected one of {", ".join(models)}, optionally with '
            "programs per round and population: xgb:64:2048"
        )
    given = [int(number) for number in numbers] + [0, 0]
    usual = models[model]
    return Contender(model, given[0] or per_round or usual[0], given[1] or population or usual[1])


@dataclass(frozen=True)
class CompareSettings:
    """What to compare and how.

    Attributes:
        networks: built-in names.
        out: folder of the comparison; an existing one is resumed.
        contenders: which models.
        target: TVM target; empty for this machine's CPU.
        model: what those of "tlp" load; empty for the framework's own.
        tasks: of each network, those with the most operations first; 0 for all.
        trials: programs of each task that each model measures.
        seeds: searches of each task and model.
        far: folder of a built dataset; tasks that one of its training tasks resembles are left out. None for
            every task.
        framework: whose tasks and searches.
        measure: how to compile and time; `threads` 0 takes the cores that the target names.
    """

    networks: tuple[str, ...]
    out: Path
    contenders: tuple[Contender, ...]
    target: str = ""
    model: str = ""
    tasks: int = 0
    trials: int = 200
    seeds: int = 1
    far: Path | None = None
    framework: str = DEFAULT
    measure: MeasureSettings = field(
        default_factory=lambda: MeasureSettings(threads=0, timing=Timing(min_repeat_ms=12))
    )


class CompareObserver:
    """Told how a comparison goes; does nothing with it."""

    def step(self, words: str) -> None:
        """A step begins, in words."""

    def planned(self, groups: int, done: int, trials: int) -> None:
        """The searches are about to begin.

        Args:
            groups: tasks times seeds.
            done: how many of them the folder already has.
            trials: programs to measure for each group, of all models together.
        """

    def measured(self, group: str, model: str, best_s: float) -> None:
        """A program was measured.

        Args:
            group: task and seed.
            model: whose turn it was.
            best_s: its best latency of the task in seconds; infinity while it has none.
        """

    def round(self, group: str, model: str, programs: int, best_s: float) -> None:
        """A round of a model is over.

        Args:
            group: task and seed.
            model: whose turn it was.
            programs: that its search has measured by now.
            best_s: as for `measured`.
        """
