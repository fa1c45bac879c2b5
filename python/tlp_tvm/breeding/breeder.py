"""What breeds of one task: TVM draws a sample, and everything else comes of it."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm import _core


@dataclass
class Replays:
    """What became of programs that TVM was to replay.

    Attributes:
        replayed: that TVM made the same program of.
        failed: the first sentence of TVM's errors, with how many programs each refused.
    """

    replayed: int = 0
    failed: dict[str, int] = field(default_factory=dict)

    def refuse(self, reason: str) -> None:
        """Count a program that is none of TVM's."""
        self.failed[reason] = self.failed.get(reason, 0) + 1


class Replayer(ABC):
    """Bred programs of one task -> TVM's: the only place where TVM works on what was bred.

    Attributes:
        counts: what became of them.
    """

    def __init__(self) -> None:
        self.counts = Replays()

    @abstractmethod
    def program(self, herd: _core.Herd, i: int) -> Any | None:
        """TVM's program.

        Args:
            herd: bred programs of the task.
            i: which.

        Returns:
            It, with the steps that were bred; None, counted, where TVM refuses them.
        """

    def all_programs(self, herd: _core.Herd, places: Sequence[int]) -> list[tuple[int, Any]]:
        """Some programs, each with its place, less those that TVM refuses.

        Args:
            herd: bred programs of the task.
            places: which.
        """
        return self.programs(herd, places, len(places))

    def programs(self, herd: _core.Herd, places: Iterable[int], count: int) -> list[tuple[int, Any]]:
        """The first programs that TVM replays.

        Args:
            herd: bred programs of the task.
            places: which, the most wanted first.
            count: how many are wanted.

        Returns:
            Places with programs; fewer where TVM refuses more than there are to replace them.
        """
        found: list[tuple[int, Any]] = []
        for i in places:
            if len(found) >= count:
                break
            if (program := self.program(herd, i)) is not None:
                found.append((i, program))
        return found


@dataclass(frozen=True)
class Replayed:
    """Programs that TVM replayed.

    Attributes:
        places: of each, among those that were bred.
        programs: TVM's.
        herd: the same as TVM has them.
    """

    places: list[int]
    programs: list[Any]
    herd: _core.Herd


class Breeder(ABC):
    """The programs of one task that breed.

    Attributes:
        stock: their forms, natively.
        plan: how children differ from their parents.
        gpu: what the task's GPU can run; None for a CPU.
    """

    stock: _core.Stock
    plan: _core.BreedingPlan
    gpu: _core.GpuRules | None = None

    @property
    @abstractmethod
    def sample(self) -> _core.Herd:
        """What TVM draws, each program once."""

    def grow(self) -> None:  # noqa: B027 - some have all from the beginning
        """A search gains no more: have TVM draw more programs, if that is wanted."""

    @property
    @abstractmethod
    def replayer(self) -> Replayer:
        """Gives TVM's programs of what was bred."""

    def replayed(
        self, herd: _core.Herd, places: Sequence[int], count: int, known: NDArray[np.uint64]
    ) -> Replayed:
        """The first programs that TVM replays, each once.

        Args:
            herd: bred programs.
            places: which, the most wanted first.
            count: how many are wanted.
            known: hashes of programs that are not wanted again.
        """
        taken: list[int] = []
        programs: list[Any] = []
        herds = [self.stock.joined([])]
        seen = set(known.tolist())
        for i in places:
            if len(programs) >= count:
                break
            if (program := self.replayer.program(herd, i)) is None:
                continue
            own = self.as_replayed(herd.take(np.array([i], np.intp)), program)
            if seen.issuperset(own.hashes.tolist()):
                continue
            seen.update(own.hashes.tolist())
            taken.append(i)
            programs.append(program)
            herds.append(own)
        return Replayed(taken, programs, self.stock.joined(herds))

    def as_replayed(self, bred: _core.Herd, program: Any) -> _core.Herd:
        """A program as TVM has it now.

        Args:
            bred: the program as it was bred.
            program: TVM's replay of it.
        """
        return bred

    def distinct(self, herds: Sequence[_core.Herd]) -> _core.Herd:
        """The programs of some herds, each once.

        Args:
            herds: of this stock.
        """
        joined = self.stock.joined(list(herds))
        _, first = np.unique(joined.hashes, return_index=True)
        return joined.take(np.sort(first))
