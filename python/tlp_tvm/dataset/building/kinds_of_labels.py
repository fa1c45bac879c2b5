"""Whether the programs of a platform were timed and compiled alike in all sources."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from pathlib import Path

from tlp_tvm.measuring.child import WARM
from tlp_tvm.measuring.code_kinds import noted_code
from tlp_tvm.records.source import DatasetSource, noted_platforms


def mixed_labels(sources: Sequence[DatasetSource]) -> list[str]:
    """A sentence for each platform with labels of several kinds.

    Args:
        sources: folders that `collect` wrote say what kind theirs are; others count as alike.
    """
    kinds: dict[str, set[str]] = defaultdict(set)
    for source in sources:
        if source.table_file is None:
            continue
        for platform, noted in noted_platforms(Path(source.table_file).parent).items():
            kinds[platform].add(f"{noted.get('caches', WARM)} caches, code {noted_code(noted)}")
    return [
        f"platform {platform}: has labels of {len(found)} kinds: {'; '.join(sorted(found))}"
        for platform, found in kinds.items()
        if len(found) > 1
    ]
