"""Self-contained HTML pages of tuning runs, comparisons and datasets."""

from __future__ import annotations

import os
from pathlib import Path


def report_page(folder: str | os.PathLike[str], model: str | None = None) -> str:
    """The page of a tuning run or of a comparison.

    Args:
        folder: that `tlp-tvm tune` or `tlp-tvm compare` wrote; nothing in it is changed.
        model: a shipped model or a checkpoint folder that scores the run's programs; None for the run's own
            model, if it is a shipped one.

    Returns:
        HTML.

    Raises:
        TuningError: there is no run in the folder, or it is damaged.
        ComparisonError: its comparison is damaged.
        RecordError: its log is damaged.
    """
    from tlp_tvm.comparison.summary import RESULTS
    from tlp_tvm.errors import TuningError

    path = Path(folder)
    if (path / "run.json").is_file():
        from tlp_tvm.pages.tuning_page import tuning_page

        return tuning_page(path, model)
    if (path / RESULTS).is_file():
        from tlp_tvm.pages.comparison_page import comparison_page

        return comparison_page(path)
    found = "neither" if path.is_dir() else "a file" if path.exists() else "nothing"
    raise TuningError(
        f"{path}: expected a folder with run.json of `tlp-tvm tune` or {RESULTS} of `tlp-tvm compare`, "
        f"found {found}; choose the folder of one of them"
    )
