"""Tasks whose weights TVM cannot lay out anew: found by trying, and buildable without it."""

from __future__ import annotations

from typing import Any

import pytest

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.builtin import load_network
from tlp_tvm.ansor.networks.layout_rewrite import best_records, keep_layout_where_needed
from tlp_tvm.ansor.networks.tasks import extract_tasks
from tlp_tvm.ansor.search.sampling import sample_states

TARGET = "llvm -num-cores=1"


@pytest.fixture(scope="module")
def tasks() -> list[Any]:
    return extract_tasks(load_network("dqn")[:2], TARGET)[0]


def test_only_the_tasks_that_fail_keep_their_layout(tasks: list[Any]) -> None:
    options = load_tvm().auto_scheduler.LayoutRewriteOption

    usable, kept = keep_layout_where_needed(tasks)

    dense = {str(task.workload_key) for task in tasks if "dense" in task.desc}
    assert len(dense) == 2
    assert kept == dense
    for before, after in zip(tasks, usable, strict=True):
        assert after.workload_key == before.workload_key
        assert after.desc == before.desc
        assert list(after.hardware_params.__repr__()) == list(before.hardware_params.__repr__())
        keeps = after.layout_rewrite_option == options.NO_REWRITE
        assert keeps == (str(after.workload_key) in kept)
        state = sample_states(after, 16)[0]
        after.compute_dag.apply_steps_from_state(state, layout_rewrite=after.layout_rewrite_option)


def test_their_records_are_hidden_from_the_rewrite_only(tasks: list[Any], tmp_path: Any) -> None:
    tvm = load_tvm()
    auto_scheduler = tvm.auto_scheduler
    usable, kept = keep_layout_where_needed(tasks)
    log = tmp_path / "log.json"
    for task in usable:
        program = auto_scheduler.MeasureInput(task, sample_states(task, 16)[0])
        result = auto_scheduler.MeasureResult([0.1], 0, "", 0.1, 1)
        auto_scheduler.save_records(str(log), [program], [result])
    tracing = auto_scheduler.relay_integration

    def found(task: Any) -> bool:
        context = best_records(log, kept)
        context._old_ctx = auto_scheduler.dispatcher.DispatchContext.current
        return context.query(task.target, task.workload_key, True, task.compute_dag, "") is not None

    assert all(found(task) for task in usable)
    with tracing.TracingEnvironment(tracing.TracingMode.PREPARE_LAYOUT_REWRITE):
        assert {str(task.workload_key) for task in usable if not found(task)} == kept


def test_a_product_of_a_tensor_with_itself_keeps_its_layout() -> None:
    """What TVM would lay out is a copy inside the task there, and TVM crashes."""
    relay = load_tvm().relay
    x = relay.var("x", shape=(2, 16, 8))
    module = load_tvm().IRModule.from_expr(relay.Function([x], relay.nn.batch_matmul(x, x)))

    tasks = extract_tasks((module, {}), TARGET)[0]

    assert len(tasks) == 1
    assert keep_layout_where_needed(tasks)[1] == {str(tasks[0].workload_key)}
