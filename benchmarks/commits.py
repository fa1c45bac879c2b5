"""Which commit figures are of."""

from __future__ import annotations

import subprocess
from pathlib import Path

ROOT = Path(__file__).parent.parent


def checked_out() -> str:
    """The commit that is checked out here; "-changed" behind it where code differs from it, docs aside."""
    code = [".", ":(exclude)docs", ":(exclude)README.md"]
    changed = _git("status", "--porcelain", "--untracked-files=no", "--", *code)
    return _git("rev-parse", "--short=7", "HEAD") + ("-changed" if changed else "")


def _git(*words: str) -> str:
    return subprocess.run(
        ["git", *words], cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True
    ).stdout.strip()
