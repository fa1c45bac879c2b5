"""Tasks whose weights TVM cannot lay out anew are tuned with the weights as they are.

For a network on a CPU, Ansor packs the constant weights of a convolution or dense layer to suit the schedule.
The TVM 0.17 inside the wheel of `bitblas` cannot do that for dense layers (`IndexRewriter` in compute_dag.cc
takes the digit in the axis name `i1` for an extent, and fails), and no program of such a task would compile.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

from tlp_tvm.ansor.compiling.kept_code import Code
from tlp_tvm.ansor.compiling.linking import Linked, linked
from tlp_tvm.ansor.compiling.weight_places import layout_free
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.search.sampling import drawn_states

_DRAWN = (8, 64)
"""Random programs, at first and where TVM fails: it drops invalid ones, and fails where no other is left."""


def keep_layout_where_needed(tasks: Sequence[Any]) -> tuple[list[Any], set[str]]:
    """Try the rewrite on one random program of each task.

    Args:
        tasks: `auto_scheduler.SearchTask`s.

    Returns:
        The tasks, those that cannot be rewritten replaced by the same without a rewrite; their workload keys.
    """
    auto_scheduler = load_tvm().auto_scheduler
    keep = auto_scheduler.LayoutRewriteOption.NO_REWRITE
    result, kept = [], set()
    for task in tasks:
        chosen = task
        if task.layout_rewrite_option != keep and not _can_rewrite(task):
            chosen = auto_scheduler.SearchTask(
                workload_key=task.workload_key,
                target=task.target,
                hardware_params=task.hardware_params,
                layout_rewrite_option=keep,
                task_inputs=list(task.task_input_names) or None,
                desc=task.desc,
            )
            kept.add(str(task.workload_key))
        result.append(chosen)
    return result, kept


def best_records(log: Path, kept: Collection[str], codes: Mapping[str, Code] | None = None) -> Any:
    """TVM's `ApplyHistoryBest` for building a network, that leaves the layout of some tasks alone.

    Args:
        log: TVM's record file.
        kept: workload keys of the tasks whose weights stay as they are.
        codes: workload key to the code of its program in `log`, for those that have some: TVM lays out their
            weights, and compiles plain loops in their place.

    Returns:
        A context manager; its `tasks` say, after a build, which function (by name) is of which task (by
        workload key), and its `linked` which functions have a program's code.
    """
    auto_scheduler = load_tvm().auto_scheduler
    tracing = auto_scheduler.relay_integration

    class BestRecords(auto_scheduler.ApplyHistoryBest):  # type: ignore[misc, name-defined]
        """Notes which function has the program of which task."""

        def __init__(self, log: str) -> None:
            super().__init__(log)
            self.tasks: dict[str, str] = {}
            self.linked: dict[str, Linked] = {}
            self._original: dict[str, str] = {}
            self._asked = ""

        def update(self, target: Any, workload_key: str, state: Any) -> None:
            """The task with its weights packed has another key."""
            self._original[workload_key] = self._asked
            super().update(target, workload_key, state)

        def query(self, target: Any, workload_key: str, has_complex_op: bool, dag: Any, name: str) -> Any:
            self._asked = workload_key
            task = self.tasks[str(name)] = self._original.get(workload_key, workload_key)
            environment = tracing.TracingEnvironment.current
            rewriting = (
                environment is not None
                and environment.tracing_mode == tracing.TracingMode.PREPARE_LAYOUT_REWRITE
            )
            if rewriting and workload_key in kept:
                return None
            found = super().query(target, workload_key, has_complex_op, dag, name)
            code = (codes or {}).get(task)
            if environment is not None or found is None or code is None:
                return found
            if (call := linked(code, dag.tensors)) is None:
                return found
            self.linked[str(name)] = call
            return dag.get_init_state()

    return BestRecords(str(log))


def _can_rewrite(task: Any) -> bool:
    if _copies_weights(task.compute_dag):  # TVM ends with a segmentation fault
        return False
    failure = load_tvm().TVMError
    try:
        states = drawn_states(task, _DRAWN[0], 0)
    except failure:
        states = drawn_states(task, _DRAWN[1], 0)
    try:
        task.compute_dag.apply_steps_from_state(states[0], layout_rewrite=task.layout_rewrite_option)
    except failure:
        return False
    return True


def _copies_weights(dag: Any) -> bool:
    """Whether what would be laid out anew is a copy: both operands of a product are one tensor."""
    return any(len(tensor.op.input_tensors) > 0 for tensor in layout_free(dag))
