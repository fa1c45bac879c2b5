"""What the latency of a measured program is, wherever it was timed: the median of its repeats.

TVM takes their mean. On a shared machine one of three repeats is now and then half as fast again, and the
mean goes with it.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np


def latency_of_costs(costs: Sequence[float]) -> float:
    """The latency that some timings say.

    Args:
        costs: seconds, at least one.
    """
    return float(np.median(costs))


def latency_of(result: Any) -> float:
    """The latency of a result of TVM's auto-scheduler.

    Args:
        result: `auto_scheduler.MeasureResult`.

    Returns:
        Seconds; infinity where it failed.
    """
    return float("inf") if result.error_no else latency_of_costs([cost.value for cost in result.costs])
