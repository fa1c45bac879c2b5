"""The Python route: Trace.as_json -> json -> primitives -> embedding, without native code.

The baseline of the extraction benchmark, and the reference for the native reader: each kind's operands are
written here a second time, from TVM's `as_python`, so that a mistake in the native table shows. A primitive
is a list: its kind, then its fields in order.
"""

from __future__ import annotations

import json
import struct
from typing import Any

from tlp_tvm.metaschedule.reading.traces import json_of

LETTERS = "blv"
"""First letters of blocks, loops and numbers."""

# kind -> inputs, attributes, outputs ("", "one", "many"), decision ("", "index", "factors")
KINDS: dict[str, tuple[str, str, str, str]] = {
    "SampleCategorical": ("", "ints reals", "one", "index"),
    "SamplePerfectTile": ("ref", "int int", "many", "factors"),
    "SampleComputeLocation": ("ref", "", "one", "index"),
    "GetSBlock": ("", "str str", "one", ""),
    "GetLoops": ("ref", "", "many", ""),
    "GetChildBlocks": ("ref", "", "many", ""),
    "GetProducers": ("ref", "", "many", ""),
    "GetConsumers": ("ref", "", "many", ""),
    "Fuse": ("refs", "int", "one", ""),
    "Split": ("ref amounts", "int int", "many", ""),
    "Reorder": ("refs", "", "", ""),
    "Parallel": ("ref", "", "", ""),
    "Vectorize": ("ref", "", "", ""),
    "Unroll": ("ref", "", "", ""),
    "Bind": ("ref", "str", "", ""),
    "CacheRead": ("ref list", "int str", "one", ""),
    "CacheWrite": ("ref list", "int str", "one", ""),
    "ReIndex": ("ref", "int int", "one", ""),
    "ComputeAt": ("ref ref", "int int", "", ""),
    "ReverseComputeAt": ("ref ref", "int int", "", ""),
    "ComputeInline": ("ref", "", "", ""),
    "ReverseComputeInline": ("ref", "", "", ""),
    "DecomposeReduction": ("ref ref", "", "one", ""),
    "RFactor": ("ref", "int", "one", ""),
    "StorageAlign": ("ref", "int int int int", "", ""),
    "SetScope": ("ref", "int str", "", ""),
    "Blockize": ("rest", "int", "one", ""),
    "Annotate": ("ref any", "str", "", ""),
    "Unannotate": ("ref", "str", "", ""),
    "TransformLayout": ("ref rest", "rest", "", ""),
    "AddUnitLoop": ("ref", "", "one", ""),
    "EnterPostproc": ("", "", "", ""),
}


def steps_of(trace: Any) -> list[list[Any]]:
    """The sequence of a Trace, a Schedule or a MeasureCandidate of `tvm.s_tir`."""
    instructions, decisions = json.loads(json_of(trace))
    decided = {int(index): decision for index, decision in decisions}
    values: dict[str, int] = {}  # of the variables that stand for numbers
    names: list[str] = []
    steps = []
    for i, (kind, inputs, attributes, outputs) in enumerate(instructions):
        of_inputs, of_attributes, of_outputs, of_decision = KINDS[kind]
        fields = [
            *_fields(of_inputs.split(), inputs, values),
            *_fields(of_attributes.split(), attributes, values),
        ]
        fields += [len(names)] if of_outputs else []
        fields += [len(outputs)] if of_outputs == "many" else []
        names += outputs
        decision: Any = decided.get(i)
        if of_decision == "factors":
            values.update(zip(outputs, decision, strict=True))
        elif kind == "SampleCategorical":
            values[outputs[0]] = attributes[0][decision]
        fields += [decision] if of_decision else []
        steps.append([kind, *fields])
    assert names == [f"{name[0]}{n}" for n, name in enumerate(names)]
    return steps


def _fields(forms: list[str], operands: list[Any], values: dict[str, int]) -> list[Any]:
    rest = list(operands)
    fields: list[Any] = []
    for form in forms:
        if form == "refs":
            fields.append([_number(name) for name in rest])
            rest = []
        elif form == "amounts":
            fields.append([_amount(value, values) for value in rest])
            fields.append([_source(value) for value in rest])
            rest = []
        elif form == "rest":
            fields.append(json.dumps([_canonical(value) for value in rest], separators=(",", ":")))
            rest = []
        else:
            fields += _field(form, rest.pop(0), values)
    assert rest == []
    return fields


def _field(form: str, value: Any, values: dict[str, int]) -> list[Any]:
    if form == "ref":
        return [_number(value)]
    if form == "list":
        return [[_number(name) for name in value]]
    if form == "int":
        return [int(value)]
    if form == "ints":
        return [[int(item) for item in value]]
    if form == "reals":
        return [[struct.unpack("<q", struct.pack("<d", item))[0] for item in value]]
    if form == "str":
        return [value]
    assert form == "any"
    if isinstance(value, str) and value.startswith('"'):
        return [2, 0, -2, value[1:-1], []]
    if isinstance(value, str):
        return [1, values[value], _number(value), "", []]
    if isinstance(value, list) and all(isinstance(item, int) for item in value):
        return [3, 0, -2, "", value]
    if isinstance(value, int) or (isinstance(value, float) and value.is_integer()):
        return [0, int(value), -1, "", []]
    return [4, 0, -2, json.dumps(_canonical(value), separators=(",", ":")), []]


def _number(name: str) -> int:
    assert name[0] in LETTERS
    return int(name[1:])


def _amount(value: Any, values: dict[str, int]) -> int:
    if value == "None":
        return 0
    return values[value] if isinstance(value, str) else int(value)


def _source(value: Any) -> int:
    if value == "None":
        return -2
    return _number(value) if isinstance(value, str) else -1


def _canonical(value: Any) -> Any:
    """One form of what TVM's two JSON writers write differently."""
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, str) and value.startswith("{"):
        graph = json.loads(value)
        graph.pop("metadata", None)
        return json.dumps(graph, separators=(",", ":"))
    if isinstance(value, list):
        return [_canonical(item) for item in value]
    if isinstance(value, dict):
        return {key: _canonical(value[key]) for key in sorted(value)}
    return value
