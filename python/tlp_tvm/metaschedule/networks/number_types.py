"""Types of numbers that tasks compute with. Shipped models have learned from programs of one type alone.

A trace does not say what type its numbers are of, so to a model a product of 8-bit integers looks like one of
32-bit floating point, and what is fast differs: the former has four times as many in a vector.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tlp_tvm.errors import TuningError
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.model.checkpoint import shipped_models

LEARNED = "float32"
"""The type of all programs in `datasets/`, but for ids and truth values."""

_BYTES = ("int8", "uint8")

_SUMMED = 2
"""TVM's kind of a loop over what is summed up."""


def unlearned_type(module: Any) -> str:
    """The type of numbers that a task sums up; empty where it is what shipped models have learned from.

    A task that sums nothing is one of copies and single operations, fast by the same programs whatever the
    type. Of bytes, two arguments count: one alone is an image, or a weight, that becomes floating point.

    Args:
        module: IRModule with one function.
    """
    load_tvm()
    from tvm.s_tir.meta_schedule.arg_info import ArgInfo

    (function,) = module.functions.values()
    types = [str(info.as_json()[1]) for info in ArgInfo.from_prim_func(function)]
    others = [name for name in types if "float" in name and name != LEARNED]
    narrow = [name for name in types if name in _BYTES]
    found = (others or narrow[1:] or [""])[0]
    return found if found and _sums(module) else ""


def _sums(module: Any) -> bool:
    from tvm.s_tir import Schedule

    schedule = Schedule(module)
    blocks = schedule.get_child_blocks(schedule.get_sblock("root"))
    return any(int(loop.iter_type) == _SUMMED for block in blocks for loop in schedule.get(block).iter_vars)


def refuse_unlearned(tasks: Sequence[TraceTask], model: str) -> None:
    """Refuse tasks whose type of numbers a shipped model does not know.

    Args:
        tasks: of a network.
        model: the name or folder of the model that is to lead; those that are not shipped may have learned
            from anything.

    Raises:
        TuningError: a task is of another type.
    """
    for task in tasks if model in shipped_models() else ():
        if found := unlearned_type(task.module):
            raise TuningError(
                f"model {model}: expected tasks of {LEARNED}, which it has learned from, found {task.desc} "
                f"of {found}; tune the network by TVM's own model, `model` xgb"
            )
