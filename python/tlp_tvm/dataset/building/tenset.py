"""A TenSet or TenSet-TLP tree as a source.

    measure_records/<platform>/([hash,1,56,...],llvm).json     measure records, one task a file
    network_info/((resnet_50,[(1,3,224,224)]),llvm).task.pkl   pickled (tasks, how often each occurs)

The pickles hold objects of the TVM that wrote them. They are read only when trusted, and even then nothing
that they name is imported: what is wanted of a task is one string.
"""

from __future__ import annotations

import os
import pickle
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from tlp_tvm.dataset.building.split_rules import FamilySplit, KeepSplits, SplitRule
from tlp_tvm.errors import DatasetError
from tlp_tvm.records.record_files import record_files
from tlp_tvm.records.source import PLAIN_SPLIT, DatasetSource, RecordGroup

RECORDS, NETWORKS = "measure_records", "network_info"

HELD_OUT = ("resnet_50-224", "mobilenet_v2-224", "resnext_50-224", "bert_base-128", "bert_tiny-128")
"""The test networks of TenSet's and TLP's published splits, one input at a time."""


def tenset_source(tree: str | os.PathLike[str], *, trust_pickle: bool = False) -> DatasetSource:
    """Find the records of a tree, and the networks of its tasks.

    Args:
        tree: the folder with measure_records/, or with `dataset*` folders that have it.
        trust_pickle: read network_info/; without it every task belongs to the network "records".

    Raises:
        DatasetError: there are no records, or a pickle is not a network's tasks.
    """
    root = Path(tree)
    inner = [
        place for place in sorted(root.glob("dataset*")) if not place.is_symlink()
    ]  # TLP links one of them
    places = [place for place in (root, *inner) if (place / RECORDS).is_dir()]
    if not places:
        raise DatasetError(f"{root}: expected a TenSet tree with a folder {RECORDS}, found none")
    folders = sorted(p for place in places for p in (place / RECORDS).iterdir() if p.is_dir())
    try:
        groups = [RecordGroup(tuple(record_files(folder)), PLAIN_SPLIT, folder.name) for folder in folders]
    except FileNotFoundError as error:
        raise DatasetError(str(error)) from error
    if not groups:
        raise DatasetError(f"{places[0] / RECORDS}: expected one folder per platform, found none")
    table: dict[str, list[dict[str, Any]]] | None = None
    if trust_pickle:
        table = {}
        for place in places:
            for file in sorted((place / NETWORKS).glob("*.task.pkl")):
                for entry in _entries(file):
                    table.setdefault(entry["workload_key"], []).append(entry)
        if not table:
            raise DatasetError(f"{places[0] / NETWORKS}: expected *.task.pkl of networks, found none")
    return DatasetSource(str(root), tuple(groups), table, is_complete=False)


def published_split(source: DatasetSource) -> SplitRule:
    """The published split as far as the tree has its test networks; all tasks train without the table."""
    networks = {str(entry["network"]) for entries in (source.table or {}).values() for entry in entries}
    held_out = tuple(network for network in HELD_OUT if network in networks)
    return FamilySplit(test=held_out, validation=0.0) if held_out else KeepSplits()


def network_name(file_name: str) -> str:
    """A network as this project calls it: "resnet_50-224-b4" of "((resnet_50,[(4,3,224,224)]),...".

    Raises:
        DatasetError: the file has another kind of name.
    """
    found = re.fullmatch(r"\(\((\w+),\[\(?([\d,]+)\)?\]\),\w+\)\.task\.pkl", file_name)
    if not found:
        raise DatasetError(
            f'{file_name}: expected a name like "((resnet_50,[(1,3,224,224)]),llvm).task.pkl", found another'
        )
    shape = [int(extent) for extent in found[2].split(",") if extent]
    batch = f"-b{shape[0]}" if shape[0] != 1 else ""
    return f"{found[1]}-{shape[-1]}{batch}"


def _entries(file: Path) -> Iterator[dict[str, Any]]:
    network = network_name(file.name)
    try:
        with file.open("rb") as stream:
            tasks, weights = _InertUnpickler(stream).load()
        pairs = [
            (_text(task.state["workload_key"]), int(weight))
            for task, weight in zip(tasks, weights, strict=True)
        ]
    except Exception as error:
        raise DatasetError(
            f"{file}: expected a pickle of a network's tasks and weights, found "
            f"{type(error).__name__}: {error}"
        ) from error
    for key, weight in pairs:
        yield {"workload_key": key, "network": network, "weight": weight, "split": PLAIN_SPLIT}


def _text(value: Any) -> str:
    """A string, Python's or TVM's."""
    if isinstance(value, _Inert) and len(value.arguments) == 1:
        value = value.arguments[0]
    if not isinstance(value, str):
        raise TypeError(f"a workload key that is not text but {value!r}")
    return value


class _Inert:
    """Stands for every object in a pickle: keeps what it is given and does nothing."""

    state: Any = None
    arguments: tuple[Any, ...] = ()

    def __new__(cls, *arguments: Any, **_: Any) -> _Inert:
        inert = super().__new__(cls)
        inert.arguments = arguments
        return inert

    def __init__(self, *_: Any, **__: Any) -> None:
        pass

    def __setstate__(self, state: Any) -> None:
        self.state = state

    def __setitem__(self, key: Any, value: Any) -> None:
        pass

    def append(self, value: Any) -> None:
        """Ignore it."""

    def extend(self, values: Any) -> None:
        """Ignore them."""


class _InertUnpickler(pickle.Unpickler):
    """Imports nothing, whatever the pickle names."""

    def find_class(self, module: str, name: str) -> Any:
        return _Inert
