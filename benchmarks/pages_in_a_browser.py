"""Does markup in the files of a run or comparison become a node of its page?

Every text and every name of `run.json` and `comparison.json` is replaced by markup, one at a time; headless
Chromium opens each page and reports its nodes. `make browser` runs it where `chromium` is installed.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parent.parent / "tests" / "python" / room) for room in ("", "pages")]

from test_pages_escape import EVIL, pages_of  # noqa: E402
from test_report_page import write_comparison  # noqa: E402
from test_report_tuning import whole_run  # noqa: E402


def main() -> None:
    """Print the number of pages opened; exit with 1 if one had a node or a title from a file."""
    browser = shutil.which("chromium")
    if browser is None:
        sys.exit("chromium: expected on the PATH, found none; apt-get install chromium")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        runs = [
            (write_comparison(folder / "compared"), "comparison.json"),
            (whole_run(folder / "run"), "run.json"),
        ]
        pages = 0
        for place, file in runs:
            for path, page in pages_of(place, file):
                (folder / "page.html").write_text(page)
                command = [browser, "--headless", "--no-sandbox", "--disable-gpu", "--dump-dom"]
                done = subprocess.run(
                    [*command, str(folder / "page.html")],
                    capture_output=True,
                    text=True,
                    check=True,
                    timeout=60,
                )
                if "<img" in done.stdout or "<title>1</title>" in done.stdout:
                    sys.exit(f"{file}: {path}: the page has a node of {EVIL}")
                pages += 1
    print(f"{pages} pages opened, no node of what their files say")


if __name__ == "__main__":
    main()
