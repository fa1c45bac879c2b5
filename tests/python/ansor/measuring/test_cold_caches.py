"""Programs are timed as a network runs them: without their weights in the caches."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring import work
from tlp_tvm.ansor.measuring.pools import StatePool
from tlp_tvm.ansor.networks.builtin import load_network
from tlp_tvm.ansor.networks.tasks import extract_tasks, operator_task
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.measuring import cooling
from tlp_tvm.measuring.child import COLD, WARM, Timing, realtime_allowed, timed
from tlp_tvm.measuring.pool import MeasureSettings

TARGET = "llvm -num-cores=1"


def cooled(weights: tuple[int, ...]) -> str:
    """The function that cools these."""
    tvm = load_tvm()
    return cooling.cooling(weights, tvm.get_global_func, tvm.register_func)


@pytest.fixture(scope="module")
def convolution() -> Any:
    """A program of a convolution of a network."""
    tasks = extract_tasks(load_network("dqn")[:2], TARGET)[0]
    task = next(task for task in tasks if "conv2d" in task.desc)
    measure = load_tvm().auto_scheduler.measure
    return measure.MeasureInput(task, sample_states(task, 16)[0])


def test_weights_are_what_tvm_may_lay_out_anew(convolution: Any) -> None:
    assert work.weights_of(convolution.task.compute_dag) == (1,)
    assert work.weights_of(operator_task("batch_matmul", TARGET).compute_dag) == ()


def test_a_function_cools_before_each_run_and_gets_the_arguments(convolution: Any) -> None:
    tvm = load_tvm()
    program, _, message = work.compiled(work.Serialized(convolution.serialize()))
    assert program is not None, message
    arrays = [
        tvm.nd.array(np.ones([int(extent) for extent in tensor.shape], tensor.dtype))
        for tensor in program.tensors
    ]
    called: list[int] = []
    tvm.register_func("tlp_tvm_tests.cool", lambda *given: called.append(len(given)), override=True)

    costs = timed(program.module, tvm.cpu(), arrays, Timing(repeat=2, min_repeat_ms=1), "tlp_tvm_tests.cool")

    assert len(costs) == 2
    assert all(cost > 0 for cost in costs)
    assert len(called) >= 2 * 3
    assert set(called) == {len(arrays)}


def test_only_the_weights_are_taken_out(monkeypatch: pytest.MonkeyPatch) -> None:
    flushed: list[tuple[Any, ...]] = []
    functions: dict[str, Any] = {cooling.FLUSH: lambda *arrays: flushed.append(arrays)}

    def register(name: str, function: Any, *, override: bool) -> None:
        assert override
        functions[name] = function

    monkeypatch.setattr(cooling, "_registered", False)
    name = cooling.cooling((1,), functions.__getitem__, register)
    functions[name]("output", "weight", "input")
    cooling.cooling((1, 2), functions.__getitem__, register)
    functions[name]("output", "weight", "bias", "input")

    assert flushed == [("output", "weight"), ("output", "weight", "bias")]
    assert cooling.cooling((), functions.__getitem__, register) == ""


@pytest.mark.parametrize("caches", [COLD, WARM])
def test_children_time_either_way(convolution: Any, caches: str) -> None:
    how = MeasureSettings(children=1, timing=Timing(repeat=2, min_repeat_ms=1, caches=caches))
    with StatePool(how, for_tvm=False) as pool:
        [(_, outcome)] = pool.run_all(pool.build([convolution]), [convolution])

    assert outcome.error == 0, outcome.message
    assert len(outcome.costs) == 2


def test_cold_weights_or_not_a_slow_program_has_one_timing(convolution: Any) -> None:
    program, _, message = work.compiled(work.Serialized(convolution.serialize()))
    assert program is not None, message
    device = load_tvm().cpu()
    arrays = work._arrays_of(program, device, {})
    for cool in ("", cooled(program.weights)):
        for above, count in ((0.0, 3), (1e9, 3), (1e-9, 1)):
            how = Timing(repeat=3, min_repeat_ms=1, short_above_ms=above)
            assert len(timed(program.module, device, arrays, how, cool)) == count


@pytest.mark.skipif(not realtime_allowed(), reason="no right to a real-time priority here")
def test_nor_has_it_more_at_a_realtime_priority(convolution: Any) -> None:
    program, _, message = work.compiled(work.Serialized(convolution.serialize()))
    assert program is not None, message
    device = load_tvm().cpu()
    for above, count in ((0.0, 3), (1e9, 3), (1e-9, 1)):
        how = Timing(repeat=3, min_repeat_ms=0, short_above_ms=above, realtime=True)
        assert len(timed(program.module, device, work._arrays_of(program, device, {}), how)) == count
