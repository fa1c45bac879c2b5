"""Mean and spread over seeds."""

from __future__ import annotations

import pytest

from tlp_tvm.metrics.over_seeds import OverSeeds


def test_spread_over_seeds() -> None:
    spread = OverSeeds.of([0.2, 0.4, 0.6])
    assert (spread.low, spread.high) == (0.2, 0.6)
    assert (spread.mean, spread.deviation) == pytest.approx((0.4, 0.2))
    assert OverSeeds.of([0.5]).deviation == 0.0
