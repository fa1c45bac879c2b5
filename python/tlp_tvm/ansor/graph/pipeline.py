"""From a network as a file has it to one that Ansor is good at: a list of passes, in order.

What is done to a network stands in its run (`run.json`, "graph"), so that a run that was begun without is
resumed without. A pass that changes nothing of a network is not named.
"""

from __future__ import annotations

import contextlib
import itertools
import operator
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tlp_tvm.ansor.graph.cheaper_math import (
    with_products_for_powers,
    with_sums_for_prelus,
    with_tanh_for_sigmoids,
)
from tlp_tvm.ansor.graph.constants import folding_pass
from tlp_tvm.ansor.graph.convolutions import (
    channels_last,
    channels_last_in_groups,
    channels_last_in_volumes,
    with_gates_kept,
    with_winograd,
    without_transposed_convolutions,
)
from tlp_tvm.ansor.graph.layer_norm import with_whole_layer_norms
from tlp_tvm.ansor.graph.operator_repairs import packable_dense, winograd_of_any_tile
from tlp_tvm.ansor.graph.padded_rows import with_padded_rows
from tlp_tvm.ansor.graph.pooling_windows import with_cut_windows, with_means_by_rows
from tlp_tvm.ansor.graph.rows import with_fewer_axes
from tlp_tvm.ansor.graph.winograd.winograd_products import with_transforms_by_hand
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.typed_once import NETWORKS


@dataclass(frozen=True)
class Pass:
    """A step.

    Attributes:
        name: in reports and in run.json.
        why: what it gives, as a clause.
        apply: Relay module -> Relay module.
        only_cpu: whether it is for CPUs alone.
    """

    name: str
    why: str
    apply: Callable[[Any], Any]
    only_cpu: bool = False


def _relay_passes(*names: str) -> Callable[[Any], Any]:
    """Passes of TVM's in their order; one that an older TVM lacks is left out."""

    def apply(module: Any) -> Any:
        tvm = load_tvm()
        ours = {"FoldConstant": folding_pass}
        makers = [ours.get(name) or getattr(tvm.relay.transform, name, None) for name in names]
        passes = [make() for make in makers if make is not None]
        with tvm.transform.PassContext(opt_level=4):
            return tvm.transform.Sequential([tvm.relay.transform.InferType(), *passes])(module)

    return apply


def _one_product(module: Any) -> Any:
    """Linear layers of one input, as Q, K and V are, in one."""
    relay = load_tvm().relay
    module = _relay_passes("EliminateCommonSubexpr")(module)
    return relay.transform.CombineParallelDense(2, to_batch=False)(module)


PASSES: tuple[Pass, ...] = (
    Pass("inference", "what only training needs is gone", _relay_passes("SimplifyInference", "FoldConstant")),
    Pass("folded padding", "convolutions pad by themselves", _relay_passes("FoldExplicitPadding")),
    Pass("cut windows", "poolings look no further than their input", with_cut_windows),
    Pass("sums for prelus", "a PReLU is part of the convolution before it", with_sums_for_prelus),
    Pass(
        "no zeros between",
        "transposed convolutions are convolutions with channels last",
        without_transposed_convolutions,
        only_cpu=True,
    ),
    Pass("channels last", "convolutions in the layout that Ansor vectorises", channels_last, only_cpu=True),
    Pass(
        "channels last in groups", "as well where groups have several", channels_last_in_groups, only_cpu=True
    ),
    Pass("channels last in volumes", "as well in three dimensions", channels_last_in_volumes, only_cpu=True),
    Pass("means by rows", "means over large images are vectorised", with_means_by_rows, only_cpu=True),
    Pass("kept gates", "gates scale activations where weights are more numbers", with_gates_kept),
    Pass(
        "folded scales",
        "batch norms are in the weights",
        _relay_passes("FoldConstant", "BackwardFoldScaleAxis", "ForwardFoldScaleAxis", "FoldConstant"),
    ),
    Pass("winograd", "convolutions with fewer products", with_winograd, only_cpu=True),
    Pass(
        "transforms by hand",
        "such convolutions are products for a search, and loops that need none",
        with_transforms_by_hand,
        only_cpu=True,
    ),
    Pass("fewer axes", "linear layers are matrix products with their bias and activation", with_fewer_axes),
    Pass("whole layer norms", "a layer norm is one kernel", with_whole_layer_norms, only_cpu=True),
    Pass("one product", "linear layers of one input are one", _one_product),
    Pass("padded rows", "rows that no tile divides are more", with_padded_rows, only_cpu=True),
    Pass("products for powers", "x to the power of 3 is x * x * x", with_products_for_powers),
    Pass("tanh for sigmoids", "a sigmoid is a tanh, of which there is a polynomial", with_tanh_for_sigmoids),
    Pass("fast math", "erf, exp and tanh are polynomials", _relay_passes("FastMath")),
    Pass(
        "tidy",
        "constants are folded",
        _relay_passes("SimplifyExpr", "FoldConstant", "EliminateCommonSubexpr"),
    ),
)

PACKED = "packed weights"
"""No pass, but left out by the same list: dense layers whose weights TVM can pack (`operator_repairs`)."""

ALL = (*(each.name for each in PASSES), PACKED)

_ADDED: tuple[tuple[str, ...], ...] = (
    ("transforms by hand",),
    ("winograd",),
    ("sums for prelus", "no zeros between", "channels last in groups", "channels last in volumes"),
    ("means by rows", "kept gates"),
    ("tanh for sigmoids",),
    ("cut windows", "products for powers"),
    ("folded padding",),
)
"""Passes that came after the first programs with cold weights were collected, the latest first."""

AS_BEFORE = tuple(itertools.accumulate(_ADDED, operator.add))
"""What `prepare` left out as tasks of older records were split off, the latest first."""

_NOT_KNOWN_ONCE = AS_BEFORE[-1]
"""What runs did not know that do not say which passes they knew."""

_SIMPLIFIES = ("SimplifyExpr", "SimplifyExprPostAlterOp")
"""A fifth of the time of a build; after "tidy" they find nothing on a CPU, by `tests/python/ansor/graph`."""


@dataclass(frozen=True)
class Prepared:
    """A network that is ready to be split into tasks.

    Attributes:
        module: Relay module.
        parameters: by name; none where passes ran, which make them constants.
        passes: names of those that changed it.
        left_out: names of those that did not run.
        needless: TVM's own passes that a build can leave out, as they would change nothing more.
    """

    module: Any
    parameters: dict[str, Any]
    passes: tuple[str, ...]
    left_out: tuple[str, ...]
    needless: tuple[str, ...] = ()

    @contextmanager
    def operators(self) -> Iterator[None]:
        """What its extraction and its build need of TVM's operators."""
        with (
            winograd_of_any_tile(),
            contextlib.nullcontext() if PACKED in self.left_out else packable_dense(),
        ):
            yield

    def to_dict(self) -> dict[str, Any]:
        """For run.json."""
        return {"passes": list(self.passes), "left_out": list(self.left_out), "known": list(ALL)}


def prepare(module: Any, parameters: dict[str, Any], target: Any, leave_out: Sequence[str] = ()) -> Prepared:
    """Run the passes.

    Args:
        module: Relay module.
        parameters: by name.
        target: TVM target.
        leave_out: names of passes that are not to run.
    """
    if set(ALL) <= set(leave_out):
        return Prepared(module, parameters, (), ALL)
    with load_tvm().transform.PassContext(opt_level=NETWORKS):
        return _prepared(module, parameters, str(target.kind.name) == "llvm", leave_out)


def _prepared(module: Any, parameters: dict[str, Any], cpu: bool, leave_out: Sequence[str]) -> Prepared:
    tvm = load_tvm()
    main = module["main"]
    if parameters:
        main = tvm.relay.build_module.bind_params_by_name(main, parameters)
    infer = tvm.relay.transform.InferType()
    current = folding_pass()(tvm.IRModule.from_expr(main))
    changed = []
    for each in PASSES:
        if each.name in leave_out or (each.only_cpu and not cpu):
            continue
        after = infer(each.apply(current))
        if not tvm.ir.structural_equal(current, after):
            changed.append(each.name)
        current = after
    if PACKED not in leave_out and cpu and "nn.dense" in _operators(current):
        changed.append(PACKED)
    needless = _SIMPLIFIES if cpu and "tidy" not in leave_out else ()
    return Prepared(current, {}, tuple(changed), tuple(leave_out), needless)


def _operators(module: Any) -> set[str]:
    relay = load_tvm().relay
    found: set[str] = set()

    def visit(expression: Any) -> None:
        if isinstance(expression, relay.Call):
            found.add(str(getattr(expression.op, "name", "")))

    relay.analysis.post_order_visit(module["main"], visit)
    return found


def left_out_of(run: Mapping[str, Any]) -> tuple[str, ...]:
    """The passes that a run was begun without.

    Args:
        run: content of run.json; empty for a new run.
    """
    if not run:
        return ()
    graph = run.get("graph")
    if graph is None:
        return ALL
    known = graph.get("known", [name for name in ALL if name not in _NOT_KNOWN_ONCE])
    return tuple(name for name in ALL if name in graph.get("left_out", ()) or name not in known)
