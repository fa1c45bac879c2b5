"""A built dataset: opened by memory map, checked against its manifest."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path

from tlp_tvm.dataset.reading.manifest import Manifest, ShardEntry, read_manifest
from tlp_tvm.dataset.reading.shards import ProgramBatch, ShardReader
from tlp_tvm.errors import DatasetError
from tlp_tvm.records.source import MANIFEST

_HASHED_AT_ONCE = 1 << 20


class BuiltDataset:
    """What `tlp-tvm dataset build` wrote. Nothing is read before it is asked for, but the manifest."""

    def __init__(self, path: Path, manifest: Manifest, digest: str) -> None:
        self.path = path
        self.manifest = manifest
        self.digest = digest

    def __len__(self) -> int:
        return self.manifest.programs

    def batches(self) -> Iterator[ProgramBatch]:
        """All programs, shard after shard; all programs of a task lie in one shard, together.

        Raises:
            DatasetError: a shard is damaged.
        """
        for i in range(len(self.manifest.shards)):
            yield from self.shard(i)

    def shard(self, i: int) -> Iterator[ProgramBatch]:
        """The programs of one shard, once its checksum is found to be right.

        Raises:
            DatasetError: it is damaged.
        """
        entry = self.manifest.shards[i]
        self._check(entry)
        found = 0
        for batch in ShardReader(self.path / entry.file, self.manifest.framework).batches():
            found += len(batch)
            if len(batch) and not 0 <= batch.tasks.min() <= batch.tasks.max() < len(self.manifest.tasks):
                raise DatasetError(
                    f"{self.path / entry.file}: expected tasks that {MANIFEST} lists, found others; build "
                    "the dataset again"
                )
            yield batch
        if found != entry.programs:
            raise DatasetError(
                f"{self.path / entry.file}: expected {entry.programs} programs, found {found}; build the "
                "dataset again"
            )

    def verify(self, progress: Callable[[int], None] = lambda _: None) -> None:
        """Read every byte and compare checksums.

        Args:
            progress: called with the bytes read since the last call.

        Raises:
            DatasetError: a shard is not what the manifest says.
        """
        for entry in self.manifest.shards:
            self._check(entry, progress)

    def _check(self, entry: ShardEntry, progress: Callable[[int], None] = lambda _: None) -> None:
        found = file_sha256(self.path / entry.file, progress)
        if found != entry.sha256:
            raise DatasetError(
                f"{self.path / entry.file}: expected SHA-256 {entry.sha256}, found {found}: it was changed "
                "or damaged; build the dataset again"
            )


def open_built(path: str | os.PathLike[str]) -> BuiltDataset:
    """Open a built dataset and check its manifest and the sizes of its shards.

    Raises:
        DatasetError: it is missing, damaged, of another version, or lacks a shard.
    """
    folder = Path(path)
    manifest, digest = read_manifest(folder)
    for shard in manifest.shards:
        file = folder / shard.file
        try:
            size = file.stat().st_size
        except FileNotFoundError as error:
            raise DatasetError(
                f"{file}: expected a shard of {shard.bytes:,} bytes, found no file; build the dataset again"
            ) from error
        if size != shard.bytes:
            raise DatasetError(
                f"{file}: expected a shard of {shard.bytes:,} bytes, found {size:,}; build the dataset again"
            )
    return BuiltDataset(folder, manifest, digest)


def file_sha256(path: Path, progress: Callable[[int], None] = lambda _: None) -> str:
    """SHA-256 of a file, in hexadecimal."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while block := file.read(_HASHED_AT_ONCE):
            digest.update(block)
            progress(len(block))
    return digest.hexdigest()
