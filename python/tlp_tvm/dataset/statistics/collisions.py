"""Programs that a model cannot tell apart, and how far their latencies differ.

TLP sees a program's steps and not its tensors: programs with equal input get equal scores. Two kinds of
group: within a task, programs whose embeddings in a layout are equal, because the layout cuts or lacks
something; across tasks, programs with equal steps. The label is best latency of the task / latency, which is
what TLP predicts.
"""

from __future__ import annotations

import hashlib
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.embedding import Embedding


def collisions(
    keys: NDArray[np.uint64], latencies: NDArray[np.float32], labels: NDArray[np.float32]
) -> dict[str, Any]:
    """Count groups of programs with equal keys.

    Args:
        keys: (N, k) what a model sees of each program, and what tells groups apart besides.
        latencies: (N, P) seconds; infinity or NaN where there is none.
        labels: (N, P) best latency of the task / latency.

    Returns:
        programs, distinct; groups of more than one and the programs in them; over groups and platforms with
        two latencies or more, slowest / fastest and highest - lowest label: median, 90th percentile, maximum.
    """
    order = np.lexsort(keys.T) if len(keys) else np.empty(0, np.int64)
    ordered = keys[order]
    begins = np.flatnonzero(np.r_[True, np.any(ordered[1:] != ordered[:-1], axis=1)]) if len(keys) else order
    sizes = np.diff(np.r_[begins, len(keys)])
    shared = np.repeat(sizes > 1, sizes)
    members = order[shared]
    starts = np.cumsum(sizes[sizes > 1]) - sizes[sizes > 1]
    ratios, gaps = _spread(latencies[members], starts), _spread(labels[members], starts)
    return {
        "programs": len(keys),
        "distinct": len(begins),
        "groups": len(starts),
        "programs_in_groups": len(members),
        "latency_ratio": _summary(ratios[1] / ratios[0]),
        "label_gap": _summary(gaps[1] - gaps[0]),
    }


def embedding_keys(features: Embedding) -> NDArray[np.uint64]:
    """(N,) a 64-bit hash of each embedding."""
    digests = [hashlib.blake2b(row.data, digest_size=8).digest() for row in features]
    return np.frombuffer(b"".join(digests), np.uint64)


def _spread(
    values: NDArray[np.float32], starts: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Least and greatest value of each group and platform that has two or more."""
    if not len(starts):
        return np.empty(0), np.empty(0)
    known = np.isfinite(values) & (values > 0)
    counts = np.add.reduceat(known.astype(np.int64), starts)
    least = np.minimum.reduceat(np.where(known, values, np.inf), starts)
    greatest = np.maximum.reduceat(np.where(known, values, -np.inf), starts)
    return least[counts > 1].astype(np.float64), greatest[counts > 1].astype(np.float64)


def _summary(values: NDArray[np.float64]) -> dict[str, float] | None:
    if not len(values):
        return None
    median, p90 = np.quantile(values, [0.5, 0.9])
    return {"median": float(median), "p90": float(p90), "max": float(values.max())}
