"""A network's operators as fused functions, and each of these as its program, weights laid out for it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlp_tvm.metaschedule.graph.replaced_calls import is_call
from tlp_tvm.metaschedule.graph.reshapes import with_reshapes_of_heads_behind, without_broadcasts
from tlp_tvm.metaschedule.graph.rows.masks import with_plain_masks
from tlp_tvm.metaschedule.graph.rows.more_rows import with_more_rows
from tlp_tvm.metaschedule.graph.winograd.winograd_products import with_winograd
from tlp_tvm.metaschedule.loading.locate import load_tvm

WEIGHTS = "layout_free_buffers"
"""Attribute, of TVM's, of a function that says which of its arguments a network keeps constant. A program may
have these in an order of its own: a postprocessor for CPUs lays each out as the innermost loops read it."""

PACKED = "_prepacked"
"""Ends the name of a function whose weights are laid out by another one before."""

_ROOT = "root"
"""Name of the block that TVM puts around all others of a function."""


def fused(module: Any, target: Any, *, usual: bool = False) -> Any:
    """A network whose operators are fused functions: what tasks are extracted from.

    Args:
        module: Relax module; its parameters are constants, or inputs behind the first `num_input`.
        target: TVM's target; functions for a CPU say which arguments are weights.
        usual: whether all convolutions stay, as records until commit 56b81db have them, and attention.
    """
    tvm = load_tvm()
    from tvm import relax

    if is_cpu(target) and not usual:
        longer = with_more_rows(without_broadcasts(with_plain_masks(module)))
        module = with_winograd(with_reshapes_of_heads_behind(longer))
    with target:
        whole = tvm.transform.Sequential([*_dispatching(target), relax.get_pipeline("zero")])(module)
    if is_cpu(target):
        for name, places in _constants(whole).items():
            function = whole[name]
            shapes = _shapes_of(function)
            if weights := [place for place in places if _is_matrix(shapes[place])]:
                whole.update_func(name, function.with_attr(WEIGHTS, weights))
    return whole


def with_programs(module: Any, target: Any, database: Any) -> Any:
    """A network of fused functions for a CPU, each as its best record has it, and all constants laid out so.

    Args:
        module: that `fused` gave; its parameters are constants.
        target: TVM's target.
        database: `ms.Database` with records of its tasks.
    """
    tvm = load_tvm()
    from tvm.relax import transform

    with target, database:
        known = transform.MetaScheduleApplyDatabase(enable_warning=False)(module)
    others = {name: each for name, each in known.functions.items() if isinstance(each, tvm.tirx.PrimFunc)}
    others = {name: each for name, each in others.items() if not _is_split(name, each)}
    for name in others:
        del known[name]
    weights = {
        f"{name.name_hint}{PACKED}": each.attrs[WEIGHTS]
        for name, each in known.functions.items()
        if isinstance(each, tvm.tirx.PrimFunc)
    }
    split = transform.SplitLayoutRewritePreproc()(known)
    for name, each in list(split.functions.items()):
        if name.name_hint in weights:
            split[name] = each.with_attr(WEIGHTS, weights[name.name_hint])
    for name, each in others.items():
        split[name] = each
    with target:
        cleaned = [transform.FoldConstant(), transform.DeadCodeElimination()]
        return tvm.transform.Sequential(cleaned)(split)


def _is_split(name: Any, function: Any) -> bool:
    """Whether a program lays weights out first, which is split from it.

    TVM's pass ends at functions without blocks of their own, as those of `index_put`.
    """
    if not (function.attrs or {}).get(WEIGHTS):
        return False
    tvm = load_tvm()
    from tvm.relax import transform

    try:
        transform.SplitLayoutRewritePreproc()(tvm.IRModule({name: function}))
    except tvm.error.InternalError:
        return False
    return True


def is_cpu(target: Any) -> bool:
    """Whether programs for a target may lay weights out anew."""
    return str(target.kind.name) == "llvm"


def is_schedulable(module: Any, target: Any) -> bool:
    """Whether a task is one for a search; cumulative sums and sorts come as one block that is theirs alone.

    Nor is one that gives its numbers another shape: on a CPU nothing runs for it.

    Args:
        module: IRModule with one function.
        target: TVM's target.
    """
    load_tvm()
    from tvm.relax.analysis import has_reshape_pattern

    (function,) = module.functions.values()
    if is_cpu(target) and has_reshape_pattern(function):
        return False
    return str(function.body.block.name_hint) == _ROOT


def weights_of(module: Any) -> tuple[int, ...]:
    """Which arguments of a task, or of a program of it, are weights.

    Args:
        module: IRModule with one function.

    Returns:
        Places among its arguments.
    """
    (function,) = module.functions.values()
    places = (function.attrs or {}).get(WEIGHTS, ())
    return tuple(int(place) for place in places)


def without_weights(module: Any) -> Any:
    """A task whose arguments are all alike: as others tune it, who leave weights as they come.

    Args:
        module: IRModule with one function.
    """
    tvm = load_tvm()
    ((name, function),) = module.functions.items()
    return tvm.IRModule({name: function.without_attr(WEIGHTS)}, attrs=module.attrs)


def _constants(module: Any) -> dict[Any, list[int]]:
    """Functions of a network, and the places of what is constant wherever they are called."""
    from tvm.ir.expr import GenericConst

    main = module["main"]
    fixed = set(main.params[int((main.attrs or {}).get("num_input", len(main.params))) :])
    found: dict[Any, set[int]] = {}
    for block in main.body.blocks:
        for binding in block.bindings:
            call = binding.value
            if is_call(call, "relax.call_tir"):
                name, given = call.args[0], call.args[1].fields
                places = {i for i, x in enumerate(given) if isinstance(x, GenericConst) or x in fixed}
                found[name] = found.get(name, places) & places
    return {name: sorted(places) for name, places in found.items() if places}


def _shapes_of(function: Any) -> list[list[int]]:
    from tvm.s_tir.meta_schedule.arg_info import ArgInfo

    return [[int(extent) for extent in info.as_json()[2]] for info in ArgInfo.from_prim_func(function)]


def _is_matrix(shape: Sequence[int]) -> bool:
    """Whether there is something to lay out; of a norm's scale TVM's postprocessor fails."""
    return sum(extent > 1 for extent in shape) > 1


def _dispatching(target: Any) -> Sequence[Any]:
    from tvm.relax import pipeline

    try:
        passes: Sequence[Any] = pipeline.library_dispatch_passes(target)
    except ValueError:  # no such passes for this kind of target
        return []
    return passes
