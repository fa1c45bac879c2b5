"""Every error the package raises on purpose: one sentence that says where, expected, found and cure."""

from __future__ import annotations

from tlp_tvm._core import LayoutError, RecordError, StateError


class TlpTvmError(Exception):
    """Base of the errors that have no better built-in parent; the command line prints it as one sentence."""


class TvmNotFoundError(TlpTvmError, ImportError):
    """No TVM, a TVM without Ansor, or one that cannot be loaded."""


class AbiMismatchError(TlpTvmError, RuntimeError):
    """The object layout of the loaded TVM is not the one that the native reader knows."""


class BesideError(TlpTvmError, RuntimeError):
    """Something that a tuned network cannot be timed beside."""


class CollectionError(TlpTvmError, RuntimeError):
    """A collection of measured programs that cannot start or resume."""


class ComparisonError(TlpTvmError, RuntimeError):
    """A comparison of cost models that cannot start, or a file that holds none."""


class ModelFileError(TlpTvmError, ValueError):
    """A checkpoint or exported model that is damaged, of another version, or made for another layout."""


class DatasetError(TlpTvmError, ValueError):
    """A dataset that is missing, damaged, or lacks what was asked of it."""


class NetworkError(TlpTvmError, ValueError):
    """A network that no name or file gives."""


class TrainingError(TlpTvmError, RuntimeError):
    """A training run that cannot start or resume."""


class TuningError(TlpTvmError, RuntimeError):
    """A tuning run that cannot start or resume."""


def last_line_of(error: BaseException) -> str:
    """What another library's error says in the end, behind its stacks; its type where it says nothing.

    Args:
        error: to be quoted in a sentence of ours.
    """
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1] if lines else type(error).__name__


__all__ = [
    "AbiMismatchError",
    "BesideError",
    "CollectionError",
    "ComparisonError",
    "DatasetError",
    "LayoutError",
    "ModelFileError",
    "NetworkError",
    "RecordError",
    "StateError",
    "TlpTvmError",
    "TrainingError",
    "TuningError",
    "TvmNotFoundError",
    "last_line_of",
]
