"""What a tuned network and its peers took, and the file of it.

beside.json     in the folder of a tuning; `BesideResult` as JSON, times in seconds
"""

from __future__ import annotations

import dataclasses
import json
import statistics
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tlp_tvm.errors import BesideError
from tlp_tvm.files import write_whole

FORMAT = "tlp-tvm-beside"
FORMAT_VERSION = 1
REPORT = "beside.json"

AGREEMENT = 1e-3
"""Largest difference of outputs, relative to the largest value, of what computes the same network."""


@dataclass(frozen=True)
class Timed:
    """The tuned network or a peer.

    Attributes:
        name: `peer_kinds.OURS`, or one of `peer_kinds.PEERS`.
        version: of its package.
        turns: seconds of a run in each turn that counts; empty if it was not timed.
        round_trips: of a cache line between the cores at that time, seconds; empty where nobody looked.
        difference: of its outputs from ours, as `tuning.turns.EndToEnd` has it; None where they were not
            compared.
        problem: why it was not timed, or what is wrong with what was; empty if all is well.
    """

    name: str
    version: str
    turns: tuple[float, ...] = ()
    difference: float | None = None
    problem: str = ""
    round_trips: tuple[float, ...] = ()

    @property
    def latency(self) -> float | None:
        """Median of the turns, seconds; None if it was not timed."""
        return statistics.median(self.turns) if self.turns else None

    @property
    def lowest(self) -> float | None:
        """Of the turns, seconds; None if it was not timed."""
        return min(self.turns, default=None)

    def to_dict(self) -> dict[str, Any]:
        """For JSON."""
        value = dataclasses.asdict(self)
        lists = {"turns": list(self.turns), "round_trips": list(self.round_trips)}
        return {**value, **lists, "latency": self.latency}


@dataclass(frozen=True)
class BesideResult:
    """Timed in turns on the same inputs, each with the same number of threads.

    Attributes:
        network: its name.
        cpu: that ran it.
        threads: of each.
        programs: measured by the tuning.
        ours: the tuned network.
        peers: in the order that was asked for.
        left_out: turns that do not count, of the library of which most do not: the machine was slowed down,
            or its cores were elsewhere.
    """

    network: str
    cpu: str
    threads: int
    programs: int
    ours: Timed
    peers: tuple[Timed, ...]
    left_out: int = 0

    @property
    def fastest(self) -> Timed | None:
        """The fastest peer that computes the same network; None if there is none."""
        sound = [peer for peer in self.peers if peer.turns and not peer.problem]
        return min(sound, key=lambda peer: peer.latency or 0.0, default=None)

    @property
    def speedup(self) -> float | None:
        """How many times faster than the fastest peer the tuned network is."""
        if self.fastest is None or not self.ours.latency:
            return None
        return (self.fastest.latency or 0.0) / self.ours.latency

    def to_dict(self) -> dict[str, Any]:
        """For JSON: times in seconds."""
        own = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        timed = {"ours": self.ours.to_dict(), "peers": [peer.to_dict() for peer in self.peers]}
        return {"format": FORMAT, "format_version": FORMAT_VERSION, **own, **timed, "speedup": self.speedup}


def write_beside(folder: Path, result: BesideResult) -> None:
    """Write beside.json.

    Args:
        folder: of the tuning.
        result: to keep.
    """
    write_whole(folder / REPORT, json.dumps(result.to_dict(), indent=1) + "\n")


def read_beside(folder: Path) -> BesideResult | None:
    """What beside.json of a folder says; None where there is none.

    Args:
        folder: of a tuning.

    Raises:
        BesideError: it is damaged, or of another version.
    """
    path = folder / REPORT
    if not path.exists():
        return None
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
        if (content["format"], content["format_version"]) != (FORMAT, FORMAT_VERSION):
            raise ValueError(f"{content['format']} of version {content['format_version']}")
        return BesideResult(
            network=str(content["network"]),
            cpu=str(content["cpu"]),
            threads=int(content["threads"]),
            programs=int(content["programs"]),
            ours=_timed(content["ours"]),
            peers=tuple(map(_timed, content["peers"])),
            left_out=int(content.get("left_out", 0)),
        )
    except (AttributeError, KeyError, TypeError, ValueError) as error:
        raise BesideError(
            f"{path}: expected what `beside` writes, found {type(error).__name__}: {error}; "
            "run the same tuning with `beside` again"
        ) from error


def _timed(value: Mapping[str, Any]) -> Timed:
    difference = value["difference"]
    return Timed(
        name=str(value["name"]),
        version=str(value["version"]),
        turns=tuple(map(float, value["turns"])),
        difference=None if difference is None else float(difference),
        problem=str(value["problem"]),
        round_trips=tuple(map(float, value.get("round_trips", ()))),
    )
