"""torch's random numbers from one of our seeds."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch


@contextmanager
def seeded(device: torch.device, seed: int) -> Iterator[None]:
    """Draw from a seed inside the block; torch's own random state stays as it is.

    Args:
        device: to seed too, beside the CPU.
        seed: of both.
    """
    with torch.random.fork_rng([device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield


def mixed(*entropy: int) -> int:
    """One seed made of several numbers."""
    return int(np.random.SeedSequence(entropy).generate_state(1)[0])
