"""Rules that split tasks into train, validation and test. A task is always in one split only."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Literal, Protocol

import numpy as np

from tlp_tvm.dataset.building.near_duplicates import near_duplicate_groups
from tlp_tvm.errors import DatasetError, NetworkError
from tlp_tvm.network_names import ARCHITECTURES, architecture_of

Together = Literal["together", "apart"]

SIDES = ("test", "validation", "train")
"""A task that two sides claim goes to the first of them here: what is tested was never trained on."""


@dataclass(frozen=True)
class TaskFacts:
    """What a rule may look at."""

    workload_key: str
    split: str
    """As its source says."""
    networks: dict[str, tuple[int, str]]
    """Network -> how often the task occurs in it, and the split of the source's entry."""
    programs: int
    flop: float | None = None
    description: str | None = None


@dataclass(frozen=True)
class Assignment:
    """What a rule decided.

    Attributes:
        splits: the split of each task.
        networks: the networks in whose name each task counts there.
        stated: the rule, for the manifest.
    """

    splits: list[str]
    networks: list[set[str]]
    stated: dict[str, Any]


class SplitRule(Protocol):
    """Puts tasks on sides."""

    def apply(self, tasks: Sequence[TaskFacts]) -> Assignment:
        """Decide.

        Raises:
            DatasetError: the tasks cannot be divided so.
        """


@dataclass(frozen=True)
class KeepSplits:
    """As the sources say."""

    def apply(self, tasks: Sequence[TaskFacts]) -> Assignment:
        """Keep every task where it is."""
        networks = [{n for n, (_, split) in t.networks.items() if split == t.split} for t in tasks]
        return Assignment([t.split for t in tasks], networks, {"rule": "keep"})


@dataclass(frozen=True)
class TaskSplit:
    """By task: groups of near-duplicates, or single tasks, are shuffled and dealt by their programs."""

    test: float = 0.1
    """Share of the programs."""
    validation: float = 0.1
    seed: int = 0
    near_duplicates: Together = "together"

    def apply(self, tasks: Sequence[TaskFacts]) -> Assignment:
        """Deal out the groups; each side gets as near to its share as whole groups allow."""
        groups = _groups(tasks, self.near_duplicates)
        programs = np.bincount(groups, [task.programs for task in tasks])
        sides = _deal(programs, {"test": self.test, "validation": self.validation}, self.seed)
        stated = {
            "rule": "task",
            "test": self.test,
            "validation": self.validation,
            "seed": self.seed,
            "near_duplicates": self.near_duplicates,
        }
        return Assignment([sides[group] for group in groups], [set(t.networks) for t in tasks], stated)


@dataclass(frozen=True)
class FamilySplit:
    """By network: the test networks are named, and of the others whole families validate.

    A task that networks of two sides share is on the first side of `SIDES`, and counts for its networks only.
    """

    test: tuple[str, ...] = ()
    """Networks, architectures or families; where empty, the networks that the project holds out."""
    validation: float = 0.1
    """Share of the programs of the remaining networks."""
    seed: int = 0
    near_duplicates: Together = "apart"

    def apply(self, tasks: Sequence[TaskFacts]) -> Assignment:
        """Choose the sides of networks, then those of tasks."""
        networks = sorted({network for task in tasks for network in task.networks})
        held_out = {network for network in networks if self._is_test(network)}
        for name in self.test:
            if not any(name in _names_of(network) for network in networks):
                raise DatasetError(
                    f"`test` {name}: expected a network, architecture or family of {', '.join(networks)}"
                )
        if not held_out:
            raise DatasetError(
                f"`split` family: expected test networks among {', '.join(networks)}, found none; name them "
                "with `test`"
            )
        families = sorted({family_of(network) for network in networks if network not in held_out})
        programs = [
            sum(t.programs for t in tasks if any(family_of(n) == f for n in set(t.networks) - held_out))
            for f in families
        ]
        dealt = _deal(np.array(programs, float), {"validation": self.validation}, self.seed)
        side_of = dict(zip(families, dealt, strict=True))
        sides = {n: "test" if n in held_out else side_of[family_of(n)] for n in networks}
        splits = [_first_side(sides[n] for n in task.networks) for task in tasks]
        if self.near_duplicates == "together":
            groups = _groups(tasks, "together")
            members: dict[int, list[str]] = {}
            for group, split in zip(groups, splits, strict=True):
                members.setdefault(group, []).append(split)
            splits = [_first_side(members[group]) for group in groups]
        stated = {
            "rule": "family",
            "test": sorted(held_out),
            "validation": [f for f in families if side_of[f] == "validation"],
            "seed": self.seed,
            "near_duplicates": self.near_duplicates,
        }
        here = [{n for n in t.networks if sides[n] == split} for t, split in zip(tasks, splits, strict=True)]
        return Assignment(splits, here, stated)

    def _is_test(self, network: str) -> bool:
        if self.test:
            return bool(_names_of(network) & set(self.test))
        return any(ARCHITECTURES[name].split == "test" for name in _names_of(network) & set(ARCHITECTURES))


def family_of(network: str) -> str:
    """The family of a network: as the built-in networks say, or else the first word of its name."""
    for name in (network, network.split("-", maxsplit=1)[0]):
        try:
            return architecture_of(name).family
        except NetworkError:
            pass
    return re.split(r"[_-]", network)[0]


def _names_of(network: str) -> set[str]:
    return {network, network.split("-", maxsplit=1)[0], family_of(network)}


def _groups(tasks: Sequence[TaskFacts], near_duplicates: Together) -> list[int]:
    if near_duplicates == "apart":
        return list(range(len(tasks)))
    return near_duplicate_groups([(task.workload_key, task.description) for task in tasks])


def _first_side(sides: Iterable[str]) -> str:
    return min(sides, key=SIDES.index)


def _deal(programs: Any, shares: dict[str, float], seed: int) -> list[str]:
    """Splits for groups of these sizes: the named shares, the rest "train"."""
    wanted = {side: share for side, share in shares.items() if share > 0}
    if len(programs) <= len(wanted):
        raise DatasetError(
            f"dataset: expected more than {len(wanted)} groups of tasks to divide, found {len(programs)}; "
            "set a share to 0, or leave near-duplicates apart"
        )
    sides = ["train"] * len(programs)
    shuffled = np.random.default_rng(seed).permutation(len(programs)).tolist()
    for side, share in wanted.items():
        target, filled = share * float(np.sum(programs)), 0.0
        free = [group for group in shuffled if sides[group] == "train"]
        for group in list(free):
            if filled + programs[group] <= target and len(free) > 1:
                sides[group] = side
                filled += programs[group]
                free.remove(group)
        nearest = min(free, key=lambda group: abs(filled + programs[group] - target))
        nearer = abs(filled + programs[nearest] - target) < abs(filled - target)
        if len(free) > 1 and (nearer or side not in sides):
            sides[nearest] = side
    return sides
