"""Pages with a generated part between two marks."""

from __future__ import annotations

import re
from collections.abc import Sequence
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


def put_where_marked(pages: Sequence[Path], name: str, text: str) -> None:
    """Replace the text between two marks of whichever of some files has them."""
    marked = [page for page in pages if f"<!-- {name}: begin -->" in page.read_text()]
    if len(marked) != 1:
        where = ", ".join(str(page) for page in pages)
        raise SystemExit(f"{where}: expected the marks <!-- {name}: begin --> in one, found {len(marked)}")
    put(marked[0], name, text)
