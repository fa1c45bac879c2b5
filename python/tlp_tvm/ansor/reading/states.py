"""Live states on their way to the native reader: which object is what, and when it may be trusted."""

from __future__ import annotations

import functools
from collections.abc import Iterable
from typing import Any, Literal

import numpy as np

from tlp_tvm import _core
from tlp_tvm.embedding import Embedding, EncodingReport
from tlp_tvm.errors import StateError
from tlp_tvm.layout import FeatureLayout


def as_array(states: Any) -> Any:
    """`states` as one tvm Array of StateObject; an Array passes through, so no Python object is made a state.

    Args:
        states: a list of State or StateObject, or a tvm Array of StateObject.

    Raises:
        StateError: something else is among them.
    """
    from tlp_tvm.ansor.loading.locate import load_tvm

    tvm = load_tvm()
    if isinstance(states, tvm.ir.Array):
        return states
    objects = []
    for i, state in enumerate(states):
        state_object = getattr(state, "state_object", state)
        if not isinstance(state_object, tvm.auto_scheduler.loop_state.StateObject):
            raise StateError(
                f"state {i}: expected a State of tvm.auto_scheduler, found {type(state).__name__}"
            )
        objects.append(state_object)
    return tvm.runtime.convert(objects)


def reader() -> _core.StateReader:
    """The native reader of the loaded TVM, checked against TVM's own serialiser on first use.

    Raises:
        AbiMismatchError: the check found a difference.
    """
    from tlp_tvm.ansor.loading.locate import load_tvm
    from tlp_tvm.ansor.loading.self_check import ensure_native

    return ensure_native(load_tvm())


def encode(
    states: Any,
    layout: FeatureLayout,
    *,
    threads: int = 0,
    out: Embedding | None = None,
    report: EncodingReport | None = None,
) -> Embedding:
    """The native route of `tlp_tvm.extract_states`."""
    native = reader()
    array = as_array(states)
    handle = array.handle.value
    if out is None:
        out = np.empty((native.count(handle), layout.length, layout.width), np.float32)
    counts = native.encode(handle, layout.encoder, out, threads)
    if report is not None:
        report.add(counts)
    return out


def steps(states: Any) -> list[list[list[Any]]]:
    """The record form of every state, read natively."""
    native = reader()
    array = as_array(states)
    return native.steps(array.handle.value)


def serialise(states: Any) -> list[str]:
    """One measure-record line per state, the steps written by TVM's own serialiser.

    The task and the result in the line are placeholders: a state does not know its task.
    """
    from tlp_tvm.ansor.loading.locate import load_tvm

    tvm = load_tvm()
    return [_line_of(tvm, state) for state in _iterate(as_array(states))]


def encode_through_records(
    states: Any,
    layout: FeatureLayout,
    *,
    out: Embedding | None = None,
    report: EncodingReport | None = None,
) -> Embedding:
    """The record route of `tlp_tvm.extract_states`."""
    lines = serialise(states)
    block = _core.read_block("".join(lines).encode(), "<states>", 1, False, 0)
    if out is None:
        out = np.empty((len(block), layout.length, layout.width), np.float32)
    counts = block.encode(layout.encoder, out, 0)
    if report is not None:
        report.add(counts)
    return out


def _iterate(array: Any) -> Iterable[Any]:
    return (array[i] for i in range(len(array)))


def _line_of(tvm: Any, state_object: Any) -> str:
    """A record of the state under a task that exists only to be serialised."""
    measure_input = tvm.auto_scheduler.MeasureInput(_placeholder_task(tvm), state_object)
    text = tvm.auto_scheduler._ffi_api.SerializeMeasureInput(measure_input)
    return f'{{"i": {text}, "r": [[1], 0, 0, 0]}}\n'


@functools.cache
def _placeholder_task(tvm: Any) -> Any:
    auto_scheduler = tvm.auto_scheduler
    given = tvm.te.placeholder((1,), name="given")
    copied = tvm.te.compute((1,), lambda i: given[i], name="copied")
    return auto_scheduler.SearchTask(
        compute_dag=auto_scheduler.ComputeDAG([given, copied]),
        workload_key='["placeholder"]',
        target=tvm.target.Target("llvm"),
        hardware_params=auto_scheduler.HardwareParams(1, 64, 64, 0, 0, 0, 0, 0),
    )


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
    if route == "record":
        return encode_through_records(states, layout, out=out, report=report)
    if route != "native":
        raise ValueError(f'route: expected "native" or "record", found {route!r}')
    return encode(states, layout, threads=threads, out=out, report=report)


def steps_of(state: Any) -> list[list[Any]]:
    """The record form of a state, read natively: what TVM's own serialiser writes, as lists.

    Raises:
        AbiMismatchError: the loaded TVM's objects are not laid out as the reader expects.
        StateError: `state` is no complete state.
    """
    return steps([state])[0]
