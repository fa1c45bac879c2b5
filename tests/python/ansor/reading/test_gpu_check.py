"""Programs that a GPU cannot run: the native check against TVM's own verdict, which lowers each of them."""

from __future__ import annotations

import functools
import threading
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from scorers import LinearScorer
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.tasks import NVIDIA_GPU, hardware_without_driver, operator_task
from tlp_tvm.ansor.reading import gpu_check
from tlp_tvm.ansor.reading.gpu_check import FAULTS, GpuCheck
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.sampling import sample_states
from tlp_tvm.errors import AbiMismatchError

CUDA = "cuda -arch=sm_70"
N = 32

THREADS, APART, SHARED, VTHREADS, VECTOR = range(1, len(FAULTS))


def task_of(tensors: list[Any], **limits: int) -> Any:
    auto_scheduler = load_tvm().auto_scheduler
    dag = auto_scheduler.ComputeDAG(tensors)
    key = auto_scheduler.workload_registry.register_workload_tensors(dag.workload_key(), tensors)
    hardware = auto_scheduler.HardwareParams(**{**NVIDIA_GPU, **limits})
    return auto_scheduler.SearchTask(compute_dag=dag, workload_key=key, target=CUDA, hardware_params=hardware)


@functools.cache
def task(name: str) -> Any:
    """Tasks with odd extents too, whose copies to shared memory are masked."""
    te, topi = load_tvm().te, load_tvm().topi
    if name == "half":
        a, b = te.placeholder((64, 96), "float16", "a"), te.placeholder((250, 96), "float16", "b")
        return task_of([a, b, topi.nn.dense(a, b)])
    if name == "strided":
        data, kernel = te.placeholder((1, 49, 15, 15), name="data"), te.placeholder((35, 49, 3, 3), name="w")
        return task_of([data, kernel, topi.nn.conv2d_nchw(data, kernel, 2, 1, 1)])
    return operator_task(name, CUDA)


@functools.cache
def states(name: str) -> Any:
    """Sampled programs, and evolved ones, which keep to fewer limits, as one Array."""
    tvm = load_tvm()
    sampled = sample_states(task(name), N)[:N]
    model = type("Any", (tvm.auto_scheduler.cost_model.cost_model.PythonBasedModel,), {"predict": _random})()
    policy = tvm.auto_scheduler.SketchPolicy(
        task(name), model, params={"evolutionary_search_population": 64}, seed=3, verbose=0
    )
    evolved = policy.evolutionary_search(sampled, N)
    dag = task(name).compute_dag
    return tvm.runtime.convert(sampled + [dag.infer_bound_from_state(s).state_object for s in evolved])


def _random(_model: Any, _task: Any, states: Any) -> list[float]:
    return list(np.random.default_rng(len(states)).random(len(states)))


def accepted_by_tvm(of: Any, array: Any) -> NDArray[np.bool_]:
    """TVM extracts no features, one number alone, of a program that it cannot lower or verify."""
    extract = load_tvm().auto_scheduler.feature.get_per_store_features_from_states
    return np.array([len(features) > 1 for features in extract(list(array), of)])


@pytest.mark.parametrize("name", ["conv2d", "dense", "half", "strided", "softmax"])
def test_what_tvm_accepts_is_never_refused_and_most_of_the_rest_is_found(name: str) -> None:
    faults = GpuCheck(task(name)).faults(states(name))
    accepted = accepted_by_tvm(task(name), states(name))
    assert faults.dtype == np.uint8
    assert len(faults) == len(states(name))
    assert not (faults[accepted] > 0).any()
    assert (faults[~accepted] > 0).sum() >= 0.8 * (~accepted).sum()


@pytest.mark.parametrize(
    ("limit", "value", "fault"),
    [
        ("max_threads_per_block", 16, THREADS),
        ("max_shared_memory_per_block", 8192, SHARED),
        ("max_vthread_extent", 16, VTHREADS),
        ("vector_unit_bytes", 8, VECTOR),
    ],
)
def test_each_limit_comes_from_the_hardware_of_the_task(limit: str, value: int, fault: int) -> None:
    everything = {
        "max_threads_per_block": 2**30,
        "max_shared_memory_per_block": 2**30,
        "max_vthread_extent": 2**30,
        "vector_unit_bytes": 2**20,
    }
    tensors = [operation.output(0) for operation in task("dense").compute_dag.ops]
    tensors = [tensor for tensor in tensors if tensor.op.name in {"data", "weight", "bias", "T_add"}]
    loose, strict = task_of(tensors, **everything), task_of(tensors, **{**everything, limit: value})
    array = states("dense")
    assert not GpuCheck(loose).faults(array).any()
    found = GpuCheck(strict).faults(array)
    accepted = accepted_by_tvm(strict, array)
    assert set(found.tolist()) == {0, fault}
    assert not (found[accepted] > 0).any()


def test_a_cpu_has_no_such_limits() -> None:
    cpu = operator_task("dense", "llvm -mcpu=core-avx2")
    assert not GpuCheck(cpu).faults(sample_states(cpu, 4)).any()


def test_states_whose_bounds_are_not_inferred_pass() -> None:
    bare = task("dense").compute_dag.get_init_state()
    assert GpuCheck(task("dense")).faults([bare]).tolist() == [0]


def test_the_cost_model_never_breeds_from_what_cannot_run() -> None:
    model = TLPCostModel(LinearScorer(), "mean")
    faults = GpuCheck(task("dense")).faults(states("dense")) > 0
    assert 0 < faults.sum() < len(faults)

    predictions = model.predict(task("dense"), states("dense"))

    assert predictions.dtype == np.float32
    np.testing.assert_array_equal(np.isneginf(predictions), faults)
    assert (predictions[~faults] > 0).all()
    packed = model.predict_stages(task("dense"), states("dense"))
    np.testing.assert_array_equal(packed, np.concatenate([predictions, np.zeros_like(predictions)]))
    policy = load_tvm().auto_scheduler.SketchPolicy(
        task("dense"),
        model,
        params={"evolutionary_search_population": 32, "sample_init_min_population": 16},
        seed=1,
        verbose=0,
    )
    found = policy.evolutionary_search(policy.sample_initial_population(), 8)
    inferred = [task("dense").compute_dag.infer_bound_from_state(state).state_object for state in found]
    assert not GpuCheck(task("dense")).faults(inferred).any()
    assert (
        accepted_by_tvm(task("dense"), inferred).mean()
        > accepted_by_tvm(task("dense"), states("dense")).mean()
    )


def test_threads_get_the_same_answer() -> None:
    expected = GpuCheck(task("conv2d")).faults(states("conv2d"))
    scores = TLPCostModel(LinearScorer(), "mean").predict(task("conv2d"), states("conv2d"))
    shared = TLPCostModel(LinearScorer(), "mean")
    answers: list[Any] = []

    def ask() -> None:
        answers.append((GpuCheck(task("conv2d")).faults(states("conv2d")), shared.predict(*both)))

    both = (task("conv2d"), states("conv2d"))
    threads = [threading.Thread(target=ask) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(answers) == 4
    for faults, predicted in answers:
        np.testing.assert_array_equal(faults, expected)
        np.testing.assert_array_equal(predicted, scores)


def test_loops_that_are_not_where_they_are_expected_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(gpu_check, "_loops_checked", False)
    monkeypatch.setattr(gpu_check, "_loop", lambda _iterator: (0, 0))
    with pytest.raises(AbiMismatchError, match=r"the loops of a state to be read as \[\[\], \[\(0"):
        GpuCheck(task("dense")).faults(states("dense"))


def test_without_a_driver_the_limits_of_nvidia_are_known() -> None:
    if load_tvm().cuda().exist:
        pytest.skip("this machine has a CUDA device")
    assert int(hardware_without_driver(CUDA).max_threads_per_block) == 1024
