"""Boosted trees on TVM's per-store features: a second opinion on few programs, beside the network.

A network that reads a program's steps scores any number of programs, before TVM knows them. It does not see
what the steps amount to: the bytes that a loop touches, and how soon it needs them again. TVM's features of
lowered programs say that, at some hundred programs a second; how many results the innermost loops keep, they
do not, so tile sizes are features too (`tile_sizes`), the same for all stores of a program. Its score is the
sum over its stores, as in TVM's own XGBModel; the platform is one more feature, so that platforms share what
they have in common.

The file, safetensors: T trees of depth D as heaps, whose node k has the children 2 k + 1 and 2 k + 2.
`features` (T, 2^D - 1) int16 and `thresholds` float32: values below go left; `leaves` (T, 2^D) float32.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.numpy
from numpy.typing import NDArray
from safetensors import SafetensorError, safe_open

from tlp_tvm.errors import ModelFileError, last_line_of
from tlp_tvm.files import write_whole
from tlp_tvm.model.trees.tile_sizes import TILE_WIDTH

FILE = "trees.safetensors"
FORMAT, FORMAT_VERSION = "tlp-tvm-store-trees", 2
_SAID = "trees"
"""Key of what the file says of itself."""

STORE_WIDTH = 164
"""TVM's features of a store."""

_ROWS = 512
"""That are looked up together, so that what is in use stays in the caches."""


@dataclass(frozen=True)
class StoreTrees:
    """Trees, in the order in which they were fitted."""

    platforms: tuple[str, ...]
    """Features after the stores' own: 1 for the platform that is asked about, 0 for the others."""
    features: NDArray[np.int16]
    """(T, 2^D - 1)"""
    thresholds: NDArray[np.float32]
    """(T, 2^D - 1)"""
    leaves: NDArray[np.float32]
    """(T, 2^D)"""
    tiles: int = 0
    """Features between the stores' own and those of platforms: tile sizes of the program; 0 in version 1."""

    def speeds(
        self,
        rows: NDArray[np.float32],
        counts: NDArray[np.integer[Any]],
        tiles: NDArray[np.float32],
        platform: str,
    ) -> NDArray[np.float64]:
        """Expected speeds of programs.

        Args:
            rows: (S, F) features of the stores of all programs, one program after the other.
            counts: (n,) stores of each.
            tiles: (n, T) tile sizes of each; trees that know of none do not look.
            platform: one of `platforms`.

        Returns:
            (n,) relative to the fastest program of the task; minus infinity for a program without stores.
        """
        owner = np.repeat(np.arange(len(counts)), counts)
        table = with_platform(
            rows, tiles[owner, : self.tiles], self.platforms.index(platform), len(self.platforms)
        )
        stores = [self._sums(table[begin : begin + _ROWS]) for begin in range(0, len(table), _ROWS)]
        values = np.concatenate([np.empty(0), *stores])
        sums = np.bincount(owner, values, minlength=len(counts)).astype(np.float64)
        sums[np.asarray(counts) == 0] = -np.inf
        return sums

    def _sums(self, table: NDArray[np.float32]) -> Any:
        """(S,) sums of the leaves that rows come to."""
        tree = np.arange(len(self.leaves))
        place = np.zeros((len(table), len(tree)), np.intp)
        row = np.arange(len(table))[:, None]
        inner = self.features.shape[1]
        while place[0, 0] < inner:
            right = table[row, self.features[tree, place]] >= self.thresholds[tree, place]
            place = 2 * place + 1 + right
        return self.leaves[tree, place - inner].sum(1, dtype=np.float64)

    @classmethod
    def of_dump(cls, trees: list[str], platforms: tuple[str, ...], tiles: int = 0) -> StoreTrees:
        """Take over what XGBoost fitted.

        Args:
            trees: JSON of each, as `Booster.get_dump(dump_format="json")` gives them.
            platforms: the last features.
            tiles: features before them.
        """
        roots = [json.loads(text) for text in trees]
        depth = max((_depth(root) for root in roots), default=0)
        inner = 2**depth - 1
        features = np.zeros((len(roots), inner), np.int16)
        thresholds = np.full((len(roots), inner), np.inf, np.float32)
        leaves = np.zeros((len(roots), inner + 1), np.float32)
        for root, *heap in zip(roots, features, thresholds, leaves, strict=True):
            _lay_out(root, 0, *heap)
        return cls(platforms, features, thresholds, leaves, tiles)

    def save(self, folder: Path) -> None:
        """Write the file beside a model's network."""
        said = {
            "format": FORMAT,
            "format_version": FORMAT_VERSION,
            "platforms": self.platforms,
            "tiles": self.tiles,
        }
        arrays: dict[str, NDArray[Any]] = {
            "features": self.features,
            "thresholds": self.thresholds,
            "leaves": self.leaves,
        }
        # One entry, as several would come in any order.
        write_whole(folder / FILE, safetensors.numpy.save(arrays, {_SAID: json.dumps(said)}))


def with_platform(
    rows: NDArray[np.float32], tiles: NDArray[np.float32], column: int, count: int
) -> NDArray[np.float32]:
    """What trees read: features of stores, tile sizes, and which of several platforms is asked about.

    Args:
        rows: (S, F)
        tiles: (S, T) of the program that each is of.
        column: the platform's place among them.
        count: of the platforms.

    Returns:
        (S, F + T + count).
    """
    which = np.zeros((len(rows), count), np.float32)
    which[:, column] = 1
    return np.concatenate([rows, tiles, which], axis=1)


def stacked(parts: Iterable[Any]) -> tuple[NDArray[np.float32], NDArray[np.int32]]:
    """Features of several programs as one table.

    TVM gives the rows of a program in the order of addresses, another one at every call, so rows are sorted:
    the same program has the same features.

    Args:
        parts: of each program what TVM gives; no table of `STORE_WIDTH` finite columns where it fails.

    Returns:
        (S, F) rows of all, and (n,) how many each has; none where TVM failed.
    """
    found = [np.empty((0, STORE_WIDTH), np.float32)]
    for part in parts:
        rows = np.asarray(part, np.float32)
        usable = rows.ndim == 2 and rows.shape[1:] == (STORE_WIDTH,) and np.isfinite(rows).all()
        found.append(rows[np.lexsort(rows.T[::-1])] if usable else found[0])
    return np.concatenate(found), np.array([len(rows) for rows in found[1:]], np.int32)


def read_store_trees(folder: Path) -> StoreTrees | None:
    """Read a model's trees.

    Args:
        folder: of the model.

    Returns:
        None where it has none.

    Raises:
        ModelFileError: the file is damaged, or of another version.
    """
    path = folder / FILE
    if not path.exists():
        return None
    try:
        with safe_open(path, "numpy") as file:
            said = json.loads((file.metadata() or {}).get(_SAID, "{}"))
            found = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (no mapping)
        known = said.get("format") == FORMAT and said.get("format_version") in (1, FORMAT_VERSION)
        fault = "" if known else f"the format {said.get('format')} {said.get('format_version')}"
        trees = StoreTrees(tuple(said.get("platforms", ())), **found, tiles=said.get("tiles", 0))
        fault = fault or _fault(trees)
    except (OSError, SafetensorError, ValueError, TypeError, AttributeError) as error:
        fault = last_line_of(error)
    if fault:
        raise ModelFileError(
            f"{path}: expected {FORMAT} {FORMAT_VERSION} of `tlp-tvm train --trees`, found {fault}; restore "
            "the file, or train the trees again"
        )
    return trees


def _fault(trees: StoreTrees) -> str:
    """Why arrays are no trees; empty where they are."""
    count, inner = trees.features.shape
    kinds = [str(array.dtype) for array in (trees.features, trees.thresholds, trees.leaves)]
    if kinds != ["int16", "float32", "float32"]:
        return f"numbers of the types {', '.join(kinds)}"
    if trees.thresholds.shape != (count, inner) or trees.leaves.shape != (count, inner + 1):
        return f"{inner} nodes, thresholds {trees.thresholds.shape} and leaves {trees.leaves.shape}"
    if inner & (inner + 1) or not all(isinstance(name, str) for name in trees.platforms):
        return f"{inner} inner nodes of platforms {trees.platforms}"
    if not isinstance(trees.tiles, int) or not 0 <= trees.tiles <= TILE_WIDTH:
        return f"{trees.tiles} tile sizes"
    width = STORE_WIDTH + trees.tiles + len(trees.platforms)
    if count and not 0 <= trees.features.min() <= trees.features.max() < width:
        return f"features {trees.features.min()} to {trees.features.max()}"
    if np.isnan(trees.thresholds).any() or not np.isfinite(trees.leaves).all():
        return "numbers that are not finite"
    return ""


def _depth(node: dict[str, Any]) -> int:
    return 1 + max(map(_depth, node["children"])) if "children" in node else 0


def _lay_out(
    node: dict[str, Any],
    place: int,
    features: NDArray[np.int16],
    thresholds: NDArray[np.float32],
    leaves: NDArray[np.float32],
) -> None:
    """Write a node and all below it; a leaf above the last level goes on as nodes that lead to it."""
    if place >= len(features):
        leaves[place - len(features)] = node["leaf"]
        return
    low = high = node
    if "children" in node:
        features[place] = int(node["split"].removeprefix("f"))
        thresholds[place] = node["split_condition"]
        low, high = sorted(node["children"], key=lambda child: child["nodeid"] != node["yes"])
    _lay_out(low, 2 * place + 1, features, thresholds, leaves)
    _lay_out(high, 2 * place + 2, features, thresholds, leaves)
