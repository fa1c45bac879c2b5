"""Programs of one task as programs of another that computes the same and ends differently."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from scorers import LinearScorer
from tlp_tvm.ansor.breeding.replay import StateReplayer
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.search import policy as policy_module
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.policy import ChoosingPolicy
from tlp_tvm.ansor.search.sampling import sample_states, written_steps
from tlp_tvm.ansor.search.siblings import Stages, steps_for_sibling
from tlp_tvm.breeding.spending import spend

TARGET = "llvm -mcpu=core-avx2 -num-cores=2"
SAMPLED = 12

Layer = Callable[[], list[Any]]


def task_of(tensors: Sequence[Any]) -> Any:
    auto_scheduler = load_tvm().auto_scheduler
    dag = auto_scheduler.ComputeDAG(list(tensors))
    key = auto_scheduler.workload_registry.register_workload_tensors(dag.workload_key(), list(tensors))
    return auto_scheduler.SearchTask(compute_dag=dag, workload_key=key, target=TARGET)


def ended(layer: Layer, *ends: str) -> Any:
    """The task of a layer, to whose result a bias or a residual is added, or which is rectified."""
    tvm = load_tvm()
    tensors = layer()
    result = tensors[-1]
    for end in ends:
        if end == "relu":
            result = tvm.topi.nn.relu(result)
            continue
        shape = result.shape if end == "residual" else [1] * (len(result.shape) - 1) + [result.shape[-1]]
        tensors.insert(-1, tvm.te.placeholder(shape, name=end))
        result = tvm.topi.add(result, tensors[-2])
    return task_of([*tensors[:-1], result])


def convolution(size: int = 8) -> list[Any]:
    tvm = load_tvm()
    data, weights = tvm.te.placeholder((1, size, size, 16)), tvm.te.placeholder((3, 3, 16, 32))
    return [data, weights, tvm.topi.nn.conv2d(data, weights, 1, 1, 1, "NHWC", "HWIO")]


def cached() -> list[Any]:
    """A product whose sums TVM keeps in a cache, as another sum reads them."""
    te = load_tvm().te
    left, right = te.placeholder((64, 32)), te.placeholder((32, 64))
    k, pair = te.reduce_axis((0, 32)), te.reduce_axis((0, 2))
    product = te.compute((64, 64), lambda i, j: te.sum(left[i, k] * right[k, j], axis=k), name="product")
    return [
        left,
        right,
        te.compute((32, 64), lambda i, j: te.sum(product[i * 2 + pair, j], axis=pair), name="pairs"),
    ]


def programs_of(task: Any) -> list[list[Any]]:
    return [written_steps(task, state) for state in sample_states(task, SAMPLED)]


LAYERS = pytest.mark.parametrize("layer", [convolution, cached])


@LAYERS
def test_a_program_of_a_task_is_one_of_its_siblings_and_back(layer: Layer) -> None:
    ours, theirs = ended(layer, "residual"), ended(layer, "bias", "relu")
    programs, (example, *_) = programs_of(ours), programs_of(theirs)
    replayer = StateReplayer(theirs)

    for steps in programs:
        moved = steps_for_sibling(steps, Stages(ours), Stages(theirs), example)
        assert moved is not None
        state = replayer.of_steps(json.dumps(moved))
        assert state is not None, replayer.counts.failed
        assert written_steps(theirs, state) == moved
        assert steps_for_sibling(moved, Stages(theirs), Stages(ours), steps) == steps


def result_of(task: Any, steps: list[Any]) -> NDArray[np.float32]:
    """What a program computes."""
    tvm, random = load_tvm(), np.random.default_rng(0)
    state = StateReplayer(task).of_steps(json.dumps(steps))
    schedule, tensors = task.compute_dag.apply_steps_from_state(state)
    built = tvm.build(schedule, tensors, target=task.target)
    arrays = [random.standard_normal([int(n) for n in each.shape]).astype("float32") for each in tensors]
    given = [tvm.nd.array(each) for each in arrays]
    built(*given)
    return np.asarray(given[-1].numpy())


def test_it_computes_what_the_sibling_does() -> None:
    ours, theirs = ended(convolution, "residual"), ended(convolution, "bias", "residual", "relu")
    (steps, *_), (example, *_) = programs_of(ours), programs_of(theirs)
    moved = steps_for_sibling(steps, Stages(ours), Stages(theirs), example)

    assert moved is not None
    np.testing.assert_allclose(result_of(theirs, moved), result_of(theirs, example), rtol=1e-4, atol=1e-4)


def softmax() -> list[Any]:
    tvm = load_tvm()
    data = tvm.te.placeholder((8, 32))
    return [data, tvm.topi.nn.softmax(data)]


def copied() -> list[Any]:
    tvm = load_tvm()
    data = tvm.te.placeholder((1, 8, 8, 32))
    return [data, tvm.topi.tanh(data)]


@pytest.mark.parametrize(
    "other",
    [
        lambda: ended(lambda: convolution(9), "bias"),
        lambda: ended(convolution),
        lambda: ended(cached, "bias"),
        lambda: ended(softmax),
        lambda: ended(copied, "bias"),
    ],
)
def test_other_tasks_are_no_siblings(other: Callable[[], Any]) -> None:
    ours, theirs = ended(convolution, "bias"), other()
    assert Stages(ours).shared_with(Stages(theirs)) == Stages(theirs).shared_with(Stages(ours)) == 0
    assert (
        steps_for_sibling(programs_of(ours)[0], Stages(ours), Stages(theirs), programs_of(theirs)[0]) is None
    )
    assert Stages(copied_task := ended(copied, "bias")).shared_with(Stages(copied_task)) == 0


def test_stages_of_one_task_alone_have_to_be_inlined() -> None:
    ours, theirs = ended(convolution, "residual"), ended(convolution, "bias", "relu")
    (steps, *_), (example, *_) = programs_of(ours), programs_of(theirs)

    assert steps_for_sibling(steps, Stages(ours), Stages(theirs), []) is None
    without = [step for step in example if step[0] != "CI"]
    assert steps_for_sibling(without, Stages(theirs), Stages(ours), steps) is None


@pytest.fixture
def family(monkeypatch: pytest.MonkeyPatch) -> list[ChoosingPolicy]:
    """Searches of three siblings and a stranger, of programs that take as long as they have steps."""

    def measure(task: Any, states: Sequence[Any], options: Any) -> tuple[list[Any], list[Any]]:
        auto_scheduler = load_tvm().auto_scheduler
        seconds = [1.0 / len(str(written_steps(task, state))) for state in states]
        inputs = [auto_scheduler.MeasureInput(task, state) for state in states]
        return inputs, [auto_scheduler.MeasureResult([each], 0, "", 1.0, 1) for each in seconds]

    monkeypatch.setattr(policy_module, "measure", measure)
    tasks = [ended(convolution, *ends) for ends in (["bias"], ["residual"], ["bias", "relu"])]
    model = TLPCostModel(LinearScorer(), online=False)
    searches = [
        ChoosingPolicy(task, model, None, population=32, seed=1, diverse=False)
        for task in [*tasks, ended(cached, "bias")]
    ]
    for each in searches:
        each.meet(searches)
    return searches


def test_the_fastest_program_of_a_sibling_is_measured_first_and_once(family: list[ChoosingPolicy]) -> None:
    one, other, third, stranger = family
    assert [len(each.siblings) for each in family] == [2, 2, 2, 0]
    assert other.promised == np.inf

    one.one_round(6)
    assert other.promised == third.promised == one.best
    assert stranger.promised == np.inf
    other.one_round(1)

    [(_, text)] = other.fastest(1)
    [(_, origin)] = one.fastest(1)
    moved = steps_for_sibling(
        json.loads(origin), one._stages, other._stages, json.loads(other.breeder.sample.text(0))
    )
    assert json.loads(text) == moved
    assert one.promised == other.promised == np.inf  # it is not given back
    third.one_round(1)
    assert third.promised == np.inf  # nor tried as that of both


def test_what_siblings_measured_counts_and_what_they_find_is_tried(family: list[ChoosingPolicy]) -> None:
    rounds: list[int] = []

    spend(family, [1, 1, 4, 1], 40, 8, rounds.append)

    fastest = [json.loads(each.fastest(1)[0][1]) for each in family[:3]]
    splits = [[step[4] for step in steps if step[0] == "SP"] for steps in fastest]
    assert splits[0] == splits[1] == splits[2]
    assert sum(each.measured for each in family) == 40
    assert min(each.measured for each in family) == 1
