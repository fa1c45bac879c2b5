"""TVM's targets are dictionaries now; platforms of models are named by the flags of old."""

from __future__ import annotations

import json
from typing import Any

SHOWN = ("mcpu", "mattr", "arch", "num-cores")
"""What tells platforms apart, in the order it is written."""


def flags_of(target: Any) -> str:
    """A target as TVM wrote it up to 0.19, e.g. "llvm -mcpu=znver2 -num-cores=4".

    Args:
        target: `tvm.target.Target`, or its JSON.
    """
    entries = json.loads(str(target))
    flags = [str(entries["kind"])]
    for name in SHOWN:
        value = entries.get(name)
        if value in (None, "", []):
            continue
        flags.append(f"-{name}={','.join(value) if isinstance(value, list) else value}")
    return " ".join(flags)
