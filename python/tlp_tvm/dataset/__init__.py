"""Measured programs: from records to what training and evaluation read."""

from __future__ import annotations

import os
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


__all__ = ["open_dataset"]
