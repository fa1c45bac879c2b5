"""The picture of a tuning."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.image import imread

from tlp_tvm.tuning.curve import draw_curve
from tlp_tvm.tuning.history import History


def test_the_curve_is_a_picture_with_something_in_it(tmp_path: Path) -> None:
    history = History(np.array([0, 1, 0]), np.array([2.0, np.inf, 1.0]), 2)

    draw_curve(history, [1, 3], "a title", tmp_path / "curve.png")

    picture = imread(tmp_path / "curve.png")
    assert picture.shape[0] > 200
    assert picture.shape[1] > 400
    assert picture[..., :3].std() > 0.05
    assert [path.name for path in tmp_path.iterdir()] == ["curve.png"]
