"""States, traces and records -> embeddings: the extraction, as users call it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any, Literal

from tlp_tvm.ansor.reading.records import RecordBatch, read_records, steps_of_record
from tlp_tvm.embedding import Embedding, EncodingReport
from tlp_tvm.errors import LayoutError
from tlp_tvm.layout import FeatureLayout


def extract_states(
    states: Any,
    layout: FeatureLayout,
    *,
    threads: int = 0,
    out: Embedding | None = None,
    report: EncodingReport | None = None,
    route: Literal["native", "record"] = "native",
) -> Embedding:
    """Embed live states.

    Args:
        states: a list of Ansor's State (or StateObject), or a tvm Array of them.
        layout: what to write where.
        threads: native threads; 0 for all cores. The result does not depend on it.
        out: (N, L, E) float32 to write to instead of a new array.
        report: receives counts of what the layout could not encode.
        route: "native" reads TVM's objects in place. "record" lets TVM serialise every state and reads that:
            some hundred times slower, right for any TVM; for one whose object layout the self-check refused.

    Returns:
        (N, L, E) float32.

    Raises:
        AbiMismatchError: the loaded TVM's objects are not laid out as the reader expects.
        StateError: an object among `states` is no complete state.
    """
    from tlp_tvm.ansor.reading import states as ansor_states

    if route == "record":
        return ansor_states.encode_through_records(states, layout, out=out, report=report)
    if route != "native":
        raise ValueError(f'route: expected "native" or "record", found {route!r}')
    return ansor_states.encode(states, layout, threads=threads, out=out, report=report)


def extract_traces(
    traces: Any,
    layout: FeatureLayout,
    *,
    threads: int = 0,
    out: Embedding | None = None,
    report: EncodingReport | None = None,
    route: Literal["native", "json"] = "native",
) -> Embedding:
    """Embed live traces of MetaSchedule.

    Args:
        traces: a list or tvm Array of MeasureCandidate, Schedule or Trace.
        layout: what to write where; of the framework "metaschedule".
        threads: native threads; 0 for all cores. The result does not depend on it.
        out: (N, L, E) float32 to write to instead of a new array.
        report: receives counts of what the layout could not encode.
        route: "native" reads TVM's objects in place, by tvm-ffi's reflection. "json" lets TVM write every
            trace as JSON and reads that: some hundred times slower, right for any TVM with MetaSchedule.

    Returns:
        (N, L, E) float32.

    Raises:
        LayoutError: the layout is of another framework.
        StateError: an object among `traces` has no trace, or one without decisions.
    """
    from tlp_tvm.metaschedule.reading import traces as live

    if layout.framework != "metaschedule":
        raise LayoutError(
            f'layout "{layout.name}": expected one of metaschedule, found one of {layout.framework}; '
            'use FeatureLayout.preset("metaschedule")'
        )
    if route == "json":
        return live.encode_through_json(traces, layout, out=out, report=report)
    if route != "native":
        raise ValueError(f'route: expected "native" or "json", found {route!r}')
    return live.encode(traces, layout, threads=threads, out=out, report=report)


def steps_of(state: Any) -> list[list[Any]]:
    """The record form of a state, read natively: what TVM's own serialiser writes, as lists.

    Raises:
        AbiMismatchError: the loaded TVM's objects are not laid out as the reader expects.
        StateError: `state` is no complete state.
    """
    from tlp_tvm.ansor.reading import states as ansor_states

    return ansor_states.steps([state])[0]


def extract_records(
    source: str | os.PathLike[str] | Sequence[str | os.PathLike[str]],
    layout: FeatureLayout,
    *,
    errors: Literal["raise", "skip"] = "raise",
    threads: int = 0,
) -> RecordBatch:
    """Read measure records and embed their programs.

    Args:
        source: a log, a list of logs, or a folder; plain or .gz (see `read_records`).
        layout: what to write where.
        errors: "raise" stops at the first bad line; "skip" passes over it and counts it in `skipped`.
        threads: native threads; 0 for all cores.

    Returns:
        The records, with `features` (N, L, E) and `pages` filled.

    Raises:
        RecordError: a line is no record, as `path:line: step: expected, found`.
        OSError: a file cannot be read.
    """
    batch = read_records(source, errors=errors, threads=threads)
    batch.report = EncodingReport()
    batch.features = batch.encode(layout, threads=threads, report=batch.report)
    return batch


__all__ = [
    "Embedding",
    "EncodingReport",
    "FeatureLayout",
    "RecordBatch",
    "extract_records",
    "extract_states",
    "extract_traces",
    "read_records",
    "steps_of",
    "steps_of_record",
]
