"""manifest.json: the description of a built dataset, with a digest over all of it.

format, version     what this is; a reader refuses another version
digest              SHA-256 of the manifest without this member, and so of every shard's checksum
framework           whose programs: "ansor" or "metaschedule"
platforms           name, target and measurements of each; a measurement names its platform by place
split               the rule that put tasks into train, validation and test
sources, skipped    where the records came from; reason -> lines passed over
shards              file, programs, measurements, bytes and sha256 of each
tasks               the task table; a program names its task by place
"""

from __future__ import annotations

import hashlib
import json
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from tlp_tvm.errors import DatasetError
from tlp_tvm.files import write_whole
from tlp_tvm.framework import DEFAULT, FRAMEWORKS
from tlp_tvm.records.source import MANIFEST

FORMAT = "tlp-tvm dataset"
VERSION = 1


@dataclass(frozen=True)
class PlatformEntry:
    """A platform and how many measurements it has."""

    name: str
    target: str
    measurements: int


@dataclass(frozen=True)
class ShardEntry:
    """A shard; `file` is relative to the manifest."""

    file: str
    programs: int
    measurements: int
    bytes: int
    sha256: str


@dataclass(frozen=True)
class TaskEntry:
    """A subgraph with its shapes."""

    workload_key: str
    split: str
    weights: dict[str, int]
    """Network -> how often the task occurs in it; networks of this split only."""
    also_in: dict[str, int]
    """The same for the networks of other splits."""
    programs: int
    flop: float | None = None
    """Floating-point operations of one run, where the source knew."""
    description: str | None = None
    """The name that the compiler gave its function, where the source knew."""


@dataclass(frozen=True)
class Manifest:
    """All that `manifest.json` says."""

    platforms: tuple[PlatformEntry, ...]
    split: dict[str, Any]
    tasks: tuple[TaskEntry, ...]
    shards: tuple[ShardEntry, ...]
    sources: list[str] = field(default_factory=list)
    skipped: dict[str, int] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    framework: str = DEFAULT

    @property
    def programs(self) -> int:
        """Programs of all shards."""
        return sum(shard.programs for shard in self.shards)

    @property
    def measurements(self) -> int:
        """Measurements of all shards."""
        return sum(shard.measurements for shard in self.shards)

    def write(self, folder: Path) -> None:
        """Write it beside its shards."""
        body = _text({"format": FORMAT, "version": VERSION, **asdict(self)})
        write_whole(folder / MANIFEST, _HEAD.format(_digest(body)).encode() + body)


def read_manifest(folder: Path) -> tuple[Manifest, str]:
    """Read and check the manifest of a built dataset.

    Returns:
        The manifest and its digest.

    Raises:
        DatasetError: there is none, it is damaged, or of another version.
    """
    path = folder / MANIFEST
    try:
        data = path.read_bytes()
        members = json.loads(data)
    except FileNotFoundError as error:
        raise DatasetError(
            f"{folder}: expected a dataset that `tlp-tvm dataset build` wrote, found no {MANIFEST}"
        ) from error
    except ValueError as error:
        raise DatasetError(f"{path}: expected JSON, found {error}; build the dataset again") from error
    found = members.get("format") if isinstance(members, dict) else type(members).__name__
    if found != FORMAT:
        raise DatasetError(f'{path}: expected the format "{FORMAT}", found {found!r}')
    if members.get("version") != VERSION:
        raise DatasetError(
            f"{path}: expected version {VERSION}, found {members.get('version')!r}; build the dataset again "
            "with this version of tlp-tvm"
        )
    stated, digest = members.get("digest"), _digest(data[len(_HEAD.format("")) + 64 :])
    if stated != digest:
        raise DatasetError(
            f"{path}: expected the digest {stated} of its content, found {digest}: it was changed or "
            "damaged; build the dataset again"
        )
    if members.get("framework", DEFAULT) not in FRAMEWORKS:
        raise DatasetError(
            f"{path}: expected programs of {' or '.join(FRAMEWORKS)}, found {members['framework']!r}; "
            "open it with the tlp-tvm that built it"
        )
    _check_places(path, members.get("shards"))
    try:
        return Manifest(
            platforms=tuple(PlatformEntry(**entry) for entry in members["platforms"]),
            split=members["split"],
            tasks=tuple(TaskEntry(**entry) for entry in members["tasks"]),
            shards=tuple(ShardEntry(**entry) for entry in members["shards"]),
            sources=members["sources"],
            skipped=members["skipped"],
            notes=members["notes"],
            framework=members["framework"],
        ), str(stated)
    except (KeyError, TypeError) as error:
        raise DatasetError(
            f"{path}: expected the members of version {VERSION}, found {error}; build the dataset again"
        ) from error


def _check_places(path: Path, shards: object) -> None:
    """Refuse a manifest that leads out of its folder."""
    for entry in shards if isinstance(shards, list) else ():
        file = entry.get("file") if isinstance(entry, dict) else None
        if isinstance(file, str) and (Path(file).is_absolute() or ".." in Path(file).parts):
            raise DatasetError(
                f"{path}: expected shards beside it, found {file}; do not open this dataset, or build it "
                "again"
            )


_HEAD = '{{\n"digest": "{}",\n'


def _text(members: dict[str, Any]) -> bytes:
    """The members as the rest of a JSON object that `_HEAD` begins; lines of members and of list entries."""
    lines = []
    for name, value in members.items():
        text = json.dumps(value)
        if isinstance(value, (list, tuple)) and value:
            text = "[\n " + ",\n ".join(json.dumps(entry) for entry in value) + "\n]"
        lines.append(f"{json.dumps(name)}: {text}")
    return (",\n".join(lines) + "\n}\n").encode()


def _digest(body: bytes) -> str:
    return hashlib.sha256(body).hexdigest()
