"""Compiled networks, of whatever Relax makes one, to files and from them."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

from tlp_tvm.files import fresh_file
from tlp_tvm.measuring.native_messages import native_messages_without
from tlp_tvm.metaschedule.loading.locate import load_runtime

_REMARK = b"Warning: Scope "
"""Of TVM's, for each array that a network holds; there is nothing that it warns of."""


def save_compiled(built: Any, library: str | os.PathLike[str]) -> None:
    """Write it; a file of this name is the old one or the whole new one at any time.

    Args:
        built: that `end_to_end.compiled` gave.
        library: to write; its folder exists.

    Raises:
        RuntimeError: TVM cannot write it.
    """
    with fresh_file(Path(library)) as fresh, native_messages_without(_REMARK):
        built.export_library(str(fresh))


def load_compiled(library: str | os.PathLike[str]) -> Any:
    """Read what `save_compiled` wrote.

    Args:
        library: to read.

    Raises:
        RuntimeError: TVM cannot read it.
    """
    with native_messages_without(_REMARK):
        return load_runtime().runtime.load_module(str(library))
