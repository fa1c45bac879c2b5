"""Live traces on their way to the native reader: which object is what."""

from __future__ import annotations

import functools
import json
from typing import Any, Literal

import numpy as np

from tlp_tvm import _core
from tlp_tvm.embedding import Embedding, EncodingReport
from tlp_tvm.errors import LayoutError, StateError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metaschedule.loading.locate import load_tvm, tvm_info

LAYOUT = "metaschedule"
"""Its preset layout has the framework's name."""


def as_array(traces: Any) -> Any:
    """`traces` as one Array; an Array passes through, so that no Python object is made for a trace.

    Args:
        traces: an Array or list of Trace, Schedule or MeasureCandidate.

    Raises:
        StateError: something else is among them.
    """
    load_tvm()
    from tvm_ffi import Array, Object

    if isinstance(traces, Array):
        return traces
    items = list(traces)
    for i, item in enumerate(items):
        if not isinstance(item, Object):
            raise StateError(
                f"trace {i}: expected a Trace, a Schedule or a MeasureCandidate of tvm.s_tir, "
                f"found {type(item).__name__}"
            )
    return Array(items)


@functools.cache
def reader() -> _core.TraceReader:
    """The native reader of the loaded TVM.

    Raises:
        StateError: the loaded tvm-ffi is not one that the reader knows.
    """
    return _core.TraceReader.bind(tvm_info().ffi_library)


def encode(
    traces: Any,
    layout: FeatureLayout,
    *,
    threads: int = 0,
    out: Embedding | None = None,
    report: EncodingReport | None = None,
) -> Embedding:
    """The native route of `tlp_tvm.extract_traces`."""
    array = as_array(traces)
    if out is None:
        out = np.empty((len(array), layout.length, layout.width), np.float32)
    if len(array) == 0:
        return out
    counts = reader().encode(array.__chandle__(), layout.encoder, out, threads)
    if report is not None:
        report.add(counts)
    return out


def steps(traces: Any) -> list[list[list[Any]]]:
    """Every trace as lists, read natively: the kind and fields of each primitive (`_core.kinds_of`)."""
    array = as_array(traces)
    return reader().steps(array.__chandle__()) if len(array) else []


def texts_of(traces: Any) -> list[str]:
    """The JSON of every trace, written natively, as records have it."""
    array = as_array(traces)
    return list(reader().json(array.__chandle__())) if len(array) else []


def json_of(trace: Any) -> str:
    """The JSON of a trace as TVM's own `as_json` says it: the slow route, for any TVM with MetaSchedule."""
    inner = getattr(trace, "sch", trace)
    inner = getattr(inner, "trace", inner)
    return json.dumps(_plain(inner.as_json()))


def encode_through_json(
    traces: Any,
    layout: FeatureLayout,
    *,
    out: Embedding | None = None,
    report: EncodingReport | None = None,
) -> Embedding:
    """The JSON route of `tlp_tvm.extract_traces`."""
    text = "".join(f"{json_of(trace)}\n" for trace in as_array(traces))
    block = _core.read_traces(text.encode(), "<traces>", 1, "trace", False)
    if out is None:
        out = np.empty((len(block), layout.length, layout.width), np.float32)
    counts = block.encode(layout.encoder, out, 0)
    if report is not None:
        report.add(counts)
    return out


def _plain(value: Any) -> Any:
    """A value of `as_json`, in which TVM leaves numbers as objects of its own, as plain Python."""
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if value is None or isinstance(value, bool | int | float | str):
        return value
    return value.value  # IntImm and FloatImm


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
    if layout.framework != LAYOUT:
        raise LayoutError(
            f'layout "{layout.name}": expected one of metaschedule, found one of {layout.framework}; '
            'use FeatureLayout.preset("metaschedule")'
        )
    if route == "json":
        return encode_through_json(traces, layout, out=out, report=report)
    if route != "native":
        raise ValueError(f'route: expected "native" or "json", found {route!r}')
    return encode(traces, layout, threads=threads, out=out, report=report)


def applied(module: Any, trace: str) -> Any:
    """The schedule that a recorded trace leads to.

    Args:
        module: what is computed.
        trace: as the JSON of a record.
    """
    load_tvm()
    from tvm.s_tir import Schedule, Trace

    schedule = Schedule(module)
    Trace.apply_json_to_schedule(json.loads(trace), schedule)
    return schedule
