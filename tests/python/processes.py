"""What tests need to know of processes: fresh ones, the bundled TVM, and the state of random generators."""

from __future__ import annotations

import importlib.util
import json
import os
import pickle
import random
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import numpy as np

_PRELUDE = """
import json as _json, sys as _sys

def report(**values):
    print("report:" + _json.dumps(values))

"""

_TVM_VARIABLES = ("LD_LIBRARY_PATH", "PYTHONPATH", "TOPHUB_LOCATION", "TVM_HOME", "TVM_LIBRARY_PATH")
"""Set by this process when it loads TVM; a fresh process must not inherit them."""


def bundled_tvm() -> Path:
    """The root of the TVM inside `bitblas`: python/ and build/libtvm.so."""
    spec = importlib.util.find_spec("bitblas")
    assert spec is not None
    assert spec.submodule_search_locations
    return Path(spec.submodule_search_locations[0]) / "3rdparty" / "tvm"


def random_states() -> tuple[Any, bytes]:
    """Where Python's and NumPy's global random generators stand."""
    return random.getstate(), pickle.dumps(np.random.get_state())  # noqa: NPY002


def run_python(code: str, **variables: str) -> Any:
    """Run code with warnings as errors; it calls `report(name=value)` once.

    Args:
        code: indented as you like.
        variables: of the environment.

    Returns:
        What it reported, after JSON.
    """
    environment = {name: value for name, value in os.environ.items() if name not in _TVM_VARIABLES}
    finished = subprocess.run(
        [sys.executable, "-W", "error", "-c", _PRELUDE + textwrap.dedent(code)],
        env=environment | variables,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    reports = [line for line in finished.stdout.splitlines() if line.startswith("report:")]
    assert len(reports) == 1, finished.stdout + finished.stderr
    return json.loads(reports[0].removeprefix("report:"))
