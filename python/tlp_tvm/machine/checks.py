"""Checks of this environment, one per line of `tlp-tvm doctor`."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Check:
    """One line of the diagnosis.

    Attributes:
        name: what was looked at.
        ok: whether it will do.
        found: what is there.
        cure: what to do about it; a hint if `ok`, and empty if there is nothing to say.
    """

    name: str
    ok: bool
    found: str
    cure: str = ""


def run_check(name: str, check: Callable[[], tuple[str, str]]) -> Check:
    """A check returns what it found and a hint; whatever it raises is its failure, cure included."""
    try:
        found, hint = check()
    except Exception as error:  # noqa: BLE001 - whatever it is, it is the finding
        found, _, cure = str(error).strip().rpartition("; ")
        return Check(name, False, found or f"{type(error).__name__}: {cure}", cure if found else "")
    return Check(name, True, found, hint)


def torch_check() -> tuple[str, str]:
    """Which torch, and where it computes."""
    import torch

    where = torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU"
    return f"{torch.__version__} on {where}, {torch.get_num_threads()} threads", ""
