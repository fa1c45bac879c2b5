"""A graph of torch with its arguments, exported: what TVM compiles, and how its results are put together."""

from __future__ import annotations

import hashlib
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx

from tlp_tvm.errors import NetworkError
from tlp_tvm.metaschedule.from_torch.meanings import put_meanings


class NotTaken(NetworkError):
    """A graph, or arguments of it, that run as PyTorch runs them; the sentence says why."""


class Bound(torch.nn.Module):
    """A graph whose fixed arguments, parameters above all, are part of it."""

    def __init__(self, graph: fx.GraphModule, arguments: Sequence[Any], taken: Sequence[int]) -> None:
        """Bind.

        Args:
            graph: of torch.
            arguments: all that it takes.
            taken: places of those that stay arguments.
        """
        super().__init__()
        self.inner = graph
        self.taken = tuple(taken)
        self.plain: dict[int, Any] = {}
        for i, argument in enumerate(arguments):
            if i in self.taken:
                continue
            if isinstance(argument, torch.Tensor):
                self.register_buffer(f"fixed_{i}", argument.detach())
            else:
                self.plain[i] = argument
        self.count = len(arguments)

    def forward(self, *given: torch.Tensor) -> Any:
        """What the graph gives."""
        own = dict(zip(self.taken, given, strict=True))
        arguments = [
            own[i] if i in own else self.plain[i] if i in self.plain else getattr(self, f"fixed_{i}")
            for i in range(self.count)
        ]
        return self.inner(*arguments)


@dataclass(frozen=True)
class Exported:
    """A graph that TVM can compile.

    Attributes:
        program: `torch.export.ExportedProgram`.
        results: of each result of the graph, its place among the tensors that the program gives, or None.
        values: of each result that is no tensor, what it is.
    """

    program: torch.export.ExportedProgram
    results: tuple[int | None, ...]
    values: tuple[Any, ...]


def taken_places(graph: fx.GraphModule, arguments: Sequence[Any]) -> list[int]:
    """Places of the arguments that differ from call to call: tensors that are no parameters or buffers."""
    placeholders = [node for node in graph.graph.nodes if node.op == "placeholder"]
    return [
        i
        for i, (node, argument) in enumerate(zip(placeholders, arguments, strict=True))
        if isinstance(argument, torch.Tensor)
        and not isinstance(argument, torch.nn.Parameter)
        and node.meta.get("tensor_dict", {}).get("_dynamo_static_input_type") is None
    ]


def exported(graph: fx.GraphModule, arguments: Sequence[Any], taken: Sequence[int]) -> Exported:
    """Export a graph for the shapes of these arguments.

    Args:
        graph: of torch.
        arguments: all that it takes.
        taken: places of those that stay arguments.

    Raises:
        NotTaken: torch cannot, or the graph does more than to compute.
    """
    from torch.export.graph_signature import ConstantArgument, OutputKind, TensorArgument

    bound = Bound(graph, arguments, taken).eval()
    try:
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("ignore")  # torch warns of itself
            program = torch.export.export(bound, tuple(arguments[i] for i in taken), strict=False)
            put_meanings(program)
            program = program.run_decompositions()
    except Exception as error:
        raise NotTaken(f"torch.export: {first_line(error)}") from error
    drawing = [node for node in program.graph.nodes if torch.Tag.nondeterministic_seeded in _tags(node)]
    if drawing:
        raise NotTaken(f"it draws random numbers ({drawing[0].target})")
    results: list[int | None] = []
    values: list[Any] = []
    for spec in program.graph_signature.output_specs:
        if spec.kind != OutputKind.USER_OUTPUT:
            raise NotTaken("it changes its arguments in place")
        if isinstance(spec.arg, TensorArgument):
            results.append(sum(place is not None for place in results))
            values.append(None)
        elif isinstance(spec.arg, ConstantArgument):
            results.append(None)
            values.append(spec.arg.value)
        else:
            raise NotTaken(f"one of its results is a {type(spec.arg).__name__}")
    if not any(place is not None for place in results):
        raise NotTaken("it gives no tensor")
    return Exported(program, tuple(results), tuple(values))


def digest_of(graph: fx.GraphModule, arguments: Sequence[Any], taken: Sequence[int], more: str) -> str:
    """Of all that a compiled graph depends on; empty where that cannot be told.

    Args:
        graph: of torch.
        arguments: all that it takes.
        taken: places of those whose values do not count.
        more: text that counts too.
    """
    known = hashlib.blake2b(more.encode(), digest_size=16)
    for module in graph.modules():
        if isinstance(module, fx.GraphModule):
            known.update(module.code.encode())
        elif type(module) is not torch.nn.Module:  # more than a place for parameters
            return ""
    held = [*graph.named_parameters(), *graph.named_buffers()]
    held += [
        (node.target, _attribute(graph, node.target)) for node in graph.graph.nodes if node.op == "get_attr"
    ]
    for name, value in held:
        if isinstance(value, torch.Tensor):
            _add(known, str(name), value, whole=True)
    for i, argument in enumerate(arguments):
        if isinstance(argument, torch.Tensor):
            _add(known, str(i), argument, whole=i not in taken)
        else:
            known.update(repr((i, argument)).encode())
    return known.hexdigest()


def first_line(error: BaseException) -> str:
    """What an error says first; what torch and TVM add to it fills screens."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return (lines or [type(error).__name__])[0][:200]


def _tags(node: fx.Node) -> Sequence[Any]:
    return getattr(node.target, "tags", ()) if node.op == "call_function" else ()


def _attribute(graph: fx.GraphModule, target: Any) -> Any:
    found: Any = graph
    for name in str(target).split("."):
        found = getattr(found, name, None)
    return found


def _add(known: Any, name: str, tensor: torch.Tensor, *, whole: bool) -> None:
    known.update(repr((name, tuple(tensor.shape), str(tensor.dtype))).encode())
    if whole and tensor.numel():
        known.update(tensor.detach().contiguous().reshape(-1).view(torch.uint8).numpy().data)
