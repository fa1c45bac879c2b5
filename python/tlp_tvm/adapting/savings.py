"""What a search has learned, as a file beside its log: adapted.safetensors.

A search teaches its cost model what it measures. The log holds the same measurements, so the file can always
be made again; it saves that, and takes what was learned of a task elsewhere. For each task: the entries in
which its measured programs' embeddings differ, their values there, one whole embedding for all other entries,
and the logarithms of the speeds (minus infinity for a failure). Scores are not in it: whichever model reads
the embeddings gives its own.
"""

from __future__ import annotations

import json
import struct
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from safetensors import SafetensorError
from safetensors.numpy import load, save

from tlp_tvm.adapting.adaptation import Measured
from tlp_tvm.errors import TuningError
from tlp_tvm.files import write_whole

FORMAT = "tlp-tvm-adapted"
FORMAT_VERSION = 1
CURE = "remove it: the log teaches the same again"


@dataclass(frozen=True)
class Adapted:
    """What was learned of some tasks.

    Attributes:
        model: name of the model that it is on top of.
        layout: name of the embeddings' layout.
        tasks: workload key to measurements.
    """

    model: str
    layout: str
    tasks: dict[str, Measured]


def save_adapted(path: Path, adapted: Adapted) -> None:
    """Write the file.

    Args:
        path: of the file.
        adapted: what to write.
    """
    tensors: dict[str, np.ndarray] = {}
    for i, measured in enumerate(adapted.tasks.values()):
        rows = measured.embeddings.reshape(len(measured.embeddings), -1)
        columns = np.flatnonzero((rows != rows[:1]).any(0))
        tensors |= {
            f"{i}.shape": np.asarray(measured.embeddings.shape[1:], np.int64),
            f"{i}.whole": rows[0],
            f"{i}.columns": columns.astype(np.int64),
            f"{i}.values": np.ascontiguousarray(rows[:, columns]),
            f"{i}.speeds": measured.speeds,
        }
    description = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "model": adapted.model,
        "layout": adapted.layout,
        "tasks": [
            {"workload_key": key, "learned": measured.learned} for key, measured in adapted.tasks.items()
        ],
    }
    write_whole(path, save(tensors, {"adapted": json.dumps(description)}))


def load_adapted(path: Path) -> Adapted:
    """Read the file.

    Args:
        path: of the file.

    Raises:
        TuningError: it is missing, damaged or of another version.
    """
    try:
        data = path.read_bytes()
        tensors = load(data)
        size = struct.unpack("<Q", data[:8])[0]
        description = json.loads(json.loads(data[8 : 8 + size])["__metadata__"]["adapted"])
        found = description["format"], description["format_version"]
        if found != (FORMAT, FORMAT_VERSION):
            raise TuningError(f"{path}: expected {FORMAT} of version {FORMAT_VERSION}, found {found}; {CURE}")
        tasks = {}
        for i, task in enumerate(description["tasks"]):
            part = {name: tensors[f"{i}.{name}"] for name in ("shape", "whole", "columns", "values")}
            rows = np.repeat(part["whole"][None], len(part["values"]), axis=0)
            rows[:, part["columns"]] = part["values"]
            length, width = (int(size) for size in part["shape"])
            speeds = tensors[f"{i}.speeds"]
            if rows.shape != (len(speeds), length * width):
                raise ValueError(f"embeddings {rows.shape} of {len(speeds)} programs, {length} x {width}")
            tasks[str(task["workload_key"])] = Measured(
                rows.reshape(-1, length, width), speeds, int(task["learned"])
            )
        return Adapted(str(description["model"]), str(description["layout"]), tasks)
    except OSError as error:
        raise TuningError(f"{path}: expected what a search has learned, found {error.strerror}") from error
    except (SafetensorError, LookupError, TypeError, ValueError, struct.error) as error:
        raise TuningError(
            f"{path}: expected what a search has learned, found {type(error).__name__}: {error}; {CURE}"
        ) from error
