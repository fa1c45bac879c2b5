"""Tasks with the same operator graph at other batch or image sizes: their programs are near-copies.

Ansor's workload key starts with a hash of the graph, in which some extents stand as numbers: the bounds of
padding, the tiles of Winograd, an extent of 1. So one graph has one hash at some sizes and another at others.
Two tasks count as near-duplicates if either
  - the hash is the same (shapes are not part of it), or
  - the compiler's name of the function is the same but for its number, and so is the last extent of every
    tensor: the channels, in the layouts that Ansor prefers; batch and image size change other extents.
Two tasks near to a third are near to each other. This puts a few tasks too many together rather than one too
few: a convolution with other channels, too, may share the hash. Where the source gave no function names (as
TenSet), only the hash counts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Hashable, Iterator, Sequence


def near_duplicate_groups(tasks: Sequence[tuple[str, str | None]]) -> list[int]:
    """Group tasks.

    Args:
        tasks: workload key, and the name of the function or None.

    Returns:
        The group of each task, numbered from 0 in the order of their first tasks.
    """
    parent = list(range(len(tasks)))

    def root(i: int) -> int:
        while parent[i] != i:
            parent[i] = parent[parent[i]]
            i = parent[i]
        return i

    first: dict[Hashable, int] = {}
    for i, (key, description) in enumerate(tasks):
        for signature in _signatures(key, description):
            a, b = root(first.setdefault(signature, i)), root(i)
            parent[max(a, b)] = min(a, b)
    numbers: dict[int, int] = {}
    return [numbers.setdefault(root(i), len(numbers)) for i in range(len(tasks))]


def _signatures(key: str, description: str | None) -> Iterator[Hashable]:
    """What two near-duplicates may have in common."""
    try:
        parts = json.loads(key)
    except ValueError:
        parts = None
    if not isinstance(parts, list) or not parts or not isinstance(parts[0], str):
        yield key
        return
    yield parts[0]
    shapes = parts[1:]
    if description and shapes and all(isinstance(shape, list) and shape for shape in shapes):
        operator = re.sub(r"_\d+$", "", description)
        yield operator, tuple(json.dumps(shape[-1]) for shape in shapes)
