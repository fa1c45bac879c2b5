"""Operators of TorchScript that TVM's importer lacks or misreads, as a few that it knows.

The importer ended before torch did. An operator is traced on tensors of its inputs' shapes, as torch
decomposes it or as `torch_meanings` has it, and what was traced is imported in its place.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch

from tlp_tvm.ansor.from_torch.graphs import operators_of
from tlp_tvm.ansor.from_torch.misread import MISREAD, When
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.tuning.torch_meanings.overloads import by_place
from tlp_tvm.tuning.torch_meanings.table import MEANINGS, Meaning

Infer = Callable[[Any], Any]

Converter = Callable[[Any, Any], Any]
"""Arguments and their types to the expression, or the list or tuple of these, that an operator gives."""


def decomposing(graph: Any, known: Mapping[str, Converter], infer: Infer) -> dict[str, Converter]:
    """Converters, for `from_pytorch`, of what a graph has and the importer lacks, or misreads.

    Args:
        graph: `torch.Graph`, with all functions inlined.
        known: the converters that are used otherwise, by operator.
        infer: the type of an expression.
    """
    partly = {
        f"aten::{name}": _Sometimes(when, _Decomposed(name, known, infer), known[f"aten::{name}"], infer)
        for name, when in MISREAD.items()
    }
    found = {}
    for kind in operators_of(graph):
        name = kind.removesuffix("_") if not kind.endswith("__") else kind
        if kind.startswith("aten::") and not {kind, name} & known.keys() and _gives_tensors(kind):
            found[kind] = _Decomposed(name.removeprefix("aten::"), {**known, **partly}, infer)
    return {**partly, **found}


def _gives_tensors(kind: str) -> bool:
    schemas = torch._C._jit_get_schemas_for_operator(kind)
    kinds = [str(each.type) for schema in schemas[:1] for each in schema.returns]
    return bool(kinds) and all(kind in ("Tensor", "List[Tensor]") for kind in kinds)


class _Sometimes:
    """A converter for some arguments, and another one for all others."""

    def __init__(self, when: When, then: Converter, otherwise: Converter, infer: Infer) -> None:
        self._when, self._then, self._otherwise, self._infer = when, then, otherwise, infer

    def __call__(self, given: Any, types: Any) -> Any:
        def kind_of(value: Any) -> str:
            return str(getattr(self._infer(value), "dtype", ""))

        return (self._then if self._when(given, kind_of) else self._otherwise)(given, types)


class _Decomposed:
    """A converter of one operator."""

    def __init__(self, name: str, known: Mapping[str, Converter], infer: Infer) -> None:
        self._name, self._meaning, self._known, self._infer = name, MEANINGS.get(name), known, infer

    def __call__(self, given: Any, _types: Any) -> Any:
        relay = load_tvm().relay
        expressions: list[Any] = []
        tensors: list[torch.Tensor] = []

        def stand_in(value: Any) -> Any:
            if isinstance(value, list | tuple):
                return [stand_in(each) for each in value]
            if not isinstance(value, relay.Expr):
                return value
            kind = self._infer(value)
            shape = [int(extent) for extent in kind.shape]
            expressions.append(value)
            tensors.append(torch.zeros(shape, dtype=getattr(torch, str(kind.dtype))))
            return tensors[-1]

        script, result = self._traced([stand_in(value) for value in given], tensors)
        names = [f"{self._name}_{i}" for i in range(len(tensors))]
        infos = [
            (name, (list(each.shape), str(each.dtype).removeprefix("torch.")))
            for name, each in zip(names, tensors, strict=True)
        ]
        module, parameters = relay.frontend.from_pytorch(script, infos, dict(self._known))
        values = {**dict(zip(names, expressions, strict=True)), **_constants(parameters)}
        function = module["main"]
        body = relay.bind(function.body, {each: values[each.name_hint] for each in function.params})
        if isinstance(result, torch.Tensor):
            return body
        given = iter(body.fields if isinstance(body, relay.Tuple) else [body])
        return type(result)(None if each is None else next(given) for each in result)

    def _traced(self, given: Sequence[Any], tensors: Sequence[torch.Tensor]) -> tuple[Any, Any]:
        """A script of the operator's tensors, and what it gives."""
        calls = [self._meaning] if self._meaning else _overloads(self._name, len(given))
        reasons = []
        for call in calls:
            try:
                return _script(call, given, tensors, decompose=self._meaning is None)
            except (RuntimeError, TypeError, NotImplementedError) as error:
                reasons.append((str(error).strip().splitlines() or [type(error).__name__])[0])
        raise NotImplementedError(
            f"aten::{self._name}: {reasons[-1] if reasons else 'unknown to this torch'}"
        )


def _script(
    call: Meaning, given: Sequence[Any], tensors: Sequence[torch.Tensor], decompose: bool
) -> tuple[Any, Any]:
    from torch._decomp import core_aten_decompositions
    from torch.fx.experimental.proxy_tensor import make_fx

    places = {id(each): i for i, each in enumerate(tensors)}

    def function(*values: torch.Tensor) -> Any:
        def put(value: Any) -> Any:
            if isinstance(value, list):
                return [put(each) for each in value]
            return values[places[id(value)]] if id(value) in places else value

        return call(*(put(value) for value in given))

    with torch.no_grad():
        result = function(*tensors)
        if decompose:
            table: dict[Any, Any] = {**core_aten_decompositions()}
            function = make_fx(function, decomposition_table=table)(*tensors)
        traced = torch.jit.trace(_of_tensors(function), tuple(tensors), check_trace=False)  # type: ignore[no-untyped-call]
        return traced, result


def _of_tensors(function: Meaning) -> Meaning:
    """A function that gives what a script can: tensors, without the places that are None."""

    def given(*values: torch.Tensor) -> Any:
        result = function(*values)
        if isinstance(result, torch.Tensor):
            return result
        return type(result)(each for each in result if each is not None)

    return given


def _overloads(name: str, count: int) -> list[Meaning]:
    """An operator's overloads of so many arguments, all by place."""
    packet = getattr(torch.ops.aten, name)
    return [
        by_place(getattr(packet, schema.overload_name or "default"))
        for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}")
        if len(schema.arguments) == count
    ]


def _constants(parameters: Mapping[str, Any]) -> dict[str, Any]:
    relay = load_tvm().relay
    return {name: relay.const(value) for name, value in parameters.items()}
