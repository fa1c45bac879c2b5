"""Which commit figures are of."""

from __future__ import annotations

import subprocess
from pathlib import Path


def checked_out() -> str:
    """The commit that is checked out here; "-changed" behind it where files differ from it."""
    said = ["git", "describe", "--always", "--dirty=-changed", "--abbrev=7", "--exclude=*"]
    done = subprocess.run(said, cwd=Path(__file__).parent, stdout=subprocess.PIPE, text=True, check=True)
    return done.stdout.strip()
