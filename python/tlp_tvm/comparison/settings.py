"""What to compare, and who is told how it goes."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path

from tlp_tvm.ansor.measure import MeasureSettings
from tlp_tvm.ansor.measure_worker import Timing
from tlp_tvm.errors import ComparisonError

MODELS = ("tlp", "tlp-online", "xgb", "random")
"""Cost models by name: the trained one alone, the same adapting to the search, TVM's XGBModel, and none."""

BASELINE = "xgb"


@dataclass(frozen=True)
class Contender:
    """A cost model and how many programs it measures in a round.

    Attributes:
        model: one of `MODELS`.
        per_round: programs measured before it learns and searches again.
    """

    model: str
    per_round: int

    @property
    def name(self) -> str:
        """As `contender` reads it."""
        return f"{self.model}:{self.per_round}"


def contender(text: str, per_round: int) -> Contender:
    """Read "xgb" or "xgb:64".

    Args:
        text: a model, and the programs of a round if they are not the usual ones.
        per_round: the usual ones.

    Raises:
        ComparisonError: no such model, or no number.
    """
    model, _, number = text.strip().partition(":")
    if model not in MODELS or (number and (not number.isdigit() or not int(number))):
        raise ComparisonError(
            f'--models "{text}": expected one of {", ".join(MODELS)}, with the programs of a round behind a '
            "colon if you like: xgb:64"
        )
    return Contender(model, int(number or per_round))


@dataclass(frozen=True)
class CompareSettings:
    """What to compare and how.

    Attributes:
        networks: built-in names.
        out: folder of the comparison; one that exists is gone on with.
        contenders: which models.
        target: TVM target; empty for this machine's CPU.
        model: what "tlp" and "tlp-online" load.
        tasks: of the networks, those with the most operations first; 0 for all.
        trials: programs of each task that each model measures.
        seeds: searches of each task and model.
        population: programs that breed in a round; TVM's default.
        measure: how to compile and time; `threads` 0 takes the cores that the target names.
    """

    networks: tuple[str, ...]
    out: Path
    contenders: tuple[Contender, ...]
    target: str = ""
    model: str = "epyc"
    tasks: int = 0
    trials: int = 200
    seeds: int = 1
    population: int = 2048
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
