"""What a model's network and its trees say of a program together."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.adaptation import UNIT
from tlp_tvm.adapting.process import SLOPE

NETWORK, TREES = 0.06, 0.9
"""Units of speed for one of the network's score and one of the trees' speed: what fits the networks best that
are left out, on each of three processors (0.05 to 0.06, 0.8 to 1.0). Of the variance of a task's speeds on a
Zen 5 the network explains .33, the trees .48, both .49."""


def both(scores: NDArray[Any], speeds: NDArray[np.float64]) -> NDArray[np.float32]:
    """What the network and the trees say together.

    Args:
        scores: (n,) of the network.
        speeds: (n,) of the trees, relative to the fastest program; minus infinity where nothing was lowered.

    Returns:
        (n,) in units of the network's score.
    """
    return np.asarray((NETWORK * scores + TREES / UNIT * speeds) / SLOPE, np.float32)
