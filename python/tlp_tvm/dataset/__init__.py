"""Measured programs: from records to the data of training and evaluation."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from tlp_tvm.dataset.reading.built import BuiltDataset


def open_dataset(path: str | os.PathLike[str]) -> BuiltDataset:
    """Open a dataset that `tlp-tvm dataset build` wrote.

    Raises:
        DatasetError: it is missing, damaged, of another version, or lacks a shard.
    """
    from tlp_tvm.dataset.reading.built import open_built  # pyarrow takes a while to import

    return open_built(path)


def framework_of_dataset(source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]]) -> str:
    """Whose programs a built dataset, a dataset folder or record files have.

    Raises:
        DatasetError: there are none, or those of several.
    """
    from tlp_tvm.dataset.reading.manifest import read_manifest
    from tlp_tvm.records.source import find_source, is_built

    if isinstance(source, str | os.PathLike) and is_built(source):
        return read_manifest(Path(source))[0].framework
    return find_source(source).framework


__all__ = ["framework_of_dataset", "open_dataset"]
