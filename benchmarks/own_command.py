"""Running this project's own command from a benchmark."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from typing import Any

from commits import ROOT

MAIN = "from tlp_tvm.cli.app import main; main()"


def answer_of(*words: str, **environment: str) -> dict[str, Any]:
    """What `tlp-tvm WORDS... --json` prints, run by this Python in the project's folder.

    Args:
        words: command, arguments and options.
        environment: variables besides those of this process.
    """
    done = subprocess.run(
        [sys.executable, "-c", MAIN, *words, "--json"],
        cwd=ROOT,
        env={**os.environ, **environment},
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    found: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return found
