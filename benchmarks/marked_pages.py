"""Pages with a generated part between two marks."""

from __future__ import annotations

import re
from pathlib import Path

from tlp_tvm.files import write_whole


def put(file: Path, name: str, text: str) -> None:
    """Replace the text between two marks of a file."""
    before = file.read_text()
    marks = rf"(<!-- {name}: begin -->\n).*(<!-- {name}: end -->)"
    after, count = re.subn(marks, lambda found: found[1] + text + found[2], before, flags=re.DOTALL)
    if count != 1:
        raise SystemExit(f"{file}: expected one pair of marks <!-- {name}: begin -->, found {count}")
    write_whole(file, after)
