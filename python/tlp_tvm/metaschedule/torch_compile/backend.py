"""The backend itself: `torch.compile(model, backend="tlp_tvm")`, found by its entry point.

    model = torch.compile(model.eval(), backend="tlp_tvm")
    with torch.inference_mode():
        model(x)

A graph is compiled at its first call, when its arguments are known, for each shape anew. What TVM cannot
take, or what PyTorch runs faster, runs as PyTorch runs it, with a warning that says why; nothing of that
reaches the caller as an error.
"""

from __future__ import annotations

import collections
import logging
import time
import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import fx

from tlp_tvm._core import __version__
from tlp_tvm.errors import TlpTvmError, TuningError
from tlp_tvm.metaschedule.compiling.building import CODE
from tlp_tvm.metaschedule.graph import prepared
from tlp_tvm.metaschedule.loading import polynomials
from tlp_tvm.metaschedule.loading.locate import tvm_info
from tlp_tvm.metaschedule.loading.targets import flags_of, target_of
from tlp_tvm.metaschedule.search import zero_shot
from tlp_tvm.metaschedule.torch_compile.backend_options import BackendOptions
from tlp_tvm.metaschedule.torch_compile.beside_eager import in_turns, is_slower
from tlp_tvm.metaschedule.torch_compile.compile_graph import compile_graph
from tlp_tvm.metaschedule.torch_compile.kept_graphs import keep, kept
from tlp_tvm.metaschedule.torch_compile.running import RunGraph
from tlp_tvm.metaschedule.torch_compile.torch_graph import (
    NotTaken,
    digest_of,
    exported,
    first_line,
    taken_places,
)
from tlp_tvm.model.checkpoint import model_digest
from tlp_tvm.tuning.network.same_outputs import difference

log = logging.getLogger("tlp_tvm")

FASTER_THERE = 'it is faster there; the option "minutes" tunes it for TVM'


@dataclass
class BackendCounts:
    """What became of the graphs of this process.

    Attributes:
        compiled: shapes of graphs that TVM can run, those from the disk included.
        kept: of these, from the disk.
        slower: of the compiled ones, those that PyTorch runs all the same, as it is faster.
        eager: reason -> how often it was the reason for which PyTorch runs a graph.
    """

    compiled: int = 0
    kept: int = 0
    slower: int = 0
    eager: collections.Counter[str] = field(default_factory=collections.Counter)


COUNTS = BackendCounts()


def backend_counts() -> BackendCounts:
    """What became of the graphs that this process gave to the backend so far."""
    return COUNTS


def tlp_tvm(
    graph: fx.GraphModule,
    _examples: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Take a graph; torch calls it.

    Args:
        graph: that torch captured.
        options: of `BackendOptions`.
        mode: of torch's own backend; none here.

    Returns:
        What computes the same as the graph.

    Raises:
        TuningError: the options are wrong.
        TvmNotFoundError: there is no TVM with MetaSchedule.
    """
    if mode is not None:
        raise TuningError(f'mode: expected none, found "{mode}"; choose among `options`')
    return CompiledGraph(graph, BackendOptions.of(options))


class CompiledGraph:
    """A graph, compiled for the shapes that it is called with."""

    def __init__(self, graph: fx.GraphModule, options: BackendOptions) -> None:
        """Take it; nothing is compiled yet.

        Raises:
            TvmNotFoundError: there is no TVM with MetaSchedule.
            TuningError: the target is none.
        """
        self._graph, self._options = graph, options
        self._about = repr(
            (
                *(__version__, tvm_info().version, torch.__version__),
                *(flags_of(target_of(options.target)), options),
                *(zero_shot.WAY, polynomials.WAY, prepared.WAY, CODE),
            )
        )
        self._by_shape: dict[tuple[Any, ...], RunGraph | None] = {}
        self._taken: list[int] | None = None
        self._parameters: list[int] = []
        self._not_fixed: list[int] = []
        self._fixed: tuple[Any, ...] = ()
        self._compilations = 0

    def __call__(self, *arguments: Any) -> Any:
        """What the graph gives."""
        if reason := _not_for_inference(arguments):
            COUNTS.eager[reason] += 1
            _say(reason)
            return self._graph(*arguments)
        if self._taken is None:
            self._take(taken_places(self._graph, arguments), arguments)
        if (fixed := self._fixed_now(arguments)) != self._fixed:  # parameters changed: all is compiled anew
            self._fixed = fixed
            self._by_shape = {}
        shape = tuple(
            (each.shape, each.dtype) if isinstance(each, torch.Tensor) else each
            for each in (arguments[i] for i in self._not_fixed)
        )
        if shape not in self._by_shape:
            self._by_shape[shape] = self._compiled(arguments)
        run = self._by_shape[shape]
        if run is None:
            return self._graph(*arguments)
        return run(*(arguments[i] for i in self._taken or ()))

    def _take(self, taken: list[int], arguments: Sequence[Any]) -> None:
        """Sort the places of arguments; what a call must look at is little, as it is looked at in each."""
        self._taken, differing = taken, set(taken)
        for i, each in enumerate(arguments):
            fixed = isinstance(each, torch.Tensor) and i not in differing
            (self._parameters if fixed else self._not_fixed).append(i)

    def _fixed_now(self, arguments: Sequence[Any]) -> tuple[Any, ...]:
        """What tells whether parameters are still those that were compiled."""
        fixed = (arguments[i] for i in self._parameters)
        return tuple((each.data_ptr(), 0 if each.is_inference() else each._version) for each in fixed)

    def _compiled(self, arguments: Sequence[Any]) -> RunGraph | None:
        """The graph for these arguments; None where it runs as PyTorch runs it."""
        assert self._taken is not None
        began = time.monotonic()
        try:
            self._compilations += 1
            if self._compilations > self._options.shapes:
                raise NotTaken(
                    f"expected at most {self._options.shapes} shapes of it, or changes of its parameters, "
                    'found another; raise the option "shapes"'
                )
            run = self._kept_or_new(arguments)
            self._check(run, arguments)
            slower = self._options.never_slower and self._is_slower(run, arguments)
        except Exception as error:  # noqa: BLE001 - whatever it is, the user's forward pass goes on
            reason = str(error) if isinstance(error, TlpTvmError) else first_line(error)
            COUNTS.eager[reason] += 1
            _say(reason)
            return None
        COUNTS.compiled += 1
        log.info(
            "a graph of %d nodes compiled in %.1f s", len(self._graph.graph.nodes), time.monotonic() - began
        )
        if slower:
            COUNTS.slower += 1
            _say(FASTER_THERE)
        return None if slower else run

    def _check(self, run: RunGraph, arguments: Sequence[Any]) -> None:
        """Refuse what gives something else than PyTorch: importers and compilers have faults."""
        ours, theirs = run(*(arguments[i] for i in self._taken or ())), self._graph(*arguments)
        if found := difference(ours, theirs):
            raise NotTaken(f"expected the outputs that it has there, found {found}; please report the model")

    def _is_slower(self, run: RunGraph, arguments: Sequence[Any]) -> bool:
        given = [arguments[i] for i in self._taken or ()]
        ours, theirs = in_turns(lambda: run(*given), lambda: self._graph(*arguments))
        log.info("a run of it takes %.3f ms by TVM, %.3f by PyTorch", ours * 1e3, theirs * 1e3)
        return is_slower(ours, theirs)

    def _kept_or_new(self, arguments: Sequence[Any]) -> RunGraph:
        taken = self._taken or []
        digest = digest_of(self._graph, arguments, taken, f"{self._about}{model_digest(self._options.model)}")
        if digest and (run := kept(digest)):
            COUNTS.kept += 1
            return run
        out = exported(self._graph, arguments, taken)
        built = compile_graph(out.program, self._options, digest)
        if digest and keep(digest, built, out.results, out.values) and (run := kept(digest)):
            return run  # what is built would be made into machine code a second time
        return RunGraph(built, out.results, out.values)


def _not_for_inference(arguments: Sequence[Any]) -> str:
    """Why a call runs as PyTorch runs it whatever the graph; empty where it need not."""
    tensors = [each for each in arguments if isinstance(each, torch.Tensor)]
    if torch.is_grad_enabled() and any(each.requires_grad for each in tensors):
        return "expected inference, found gradients to be computed; call the model in torch.inference_mode()"
    if torch.is_autocast_enabled("cpu"):
        return "expected no autocast, found it on; give the model its types by `model.to(...)`"
    if elsewhere := [each.device for each in tensors if each.device.type != "cpu"]:
        return f"expected tensors on the CPU, found one on {elsewhere[0]}"
    return ""


def _say(reason: str) -> None:
    """Warn; Python shows each reason once a place."""
    warnings.warn(f"tlp_tvm: a graph runs as PyTorch runs it: {reason}", RuntimeWarning, stacklevel=3)
