"""Weights lie as programs read them, and are out of the caches when a program is timed."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from tlp_tvm.measuring import child
from tlp_tvm.measuring.child import COLD, WARM, Timing
from tlp_tvm.metaschedule.graph.fusing import fused, weights_of, with_programs, without_weights
from tlp_tvm.metaschedule.graph.prepared import prepared
from tlp_tvm.metaschedule.loading.targets import target_of
from tlp_tvm.metaschedule.measuring import work
from tlp_tvm.metaschedule.measuring.pools import Measurable
from tlp_tvm.metaschedule.networks import end_to_end
from tlp_tvm.metaschedule.networks.builtin import relax_of, tasks_of
from tlp_tvm.metaschedule.networks.operator_profile import functions_of, profile
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.metaschedule.reading.records import RECORDS
from tlp_tvm.metaschedule.search.sampling import sample_traces
from tlp_tvm.metaschedule.search.tvms_sample import drawn, ready_search
from tlp_tvm.metaschedule.search.zero_shot import add_chosen, choose_program
from tlp_tvm.metaschedule.torch_compile.compile_graph import _take_measured
from tlp_tvm.records.source import WORKLOADS

pytestmark = pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")  # torch's own
TARGET = "llvm -num-cores=2"


class Network(torch.nn.Module):
    """A convolution, a dense layer, and a product of two activations."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.dense = torch.nn.Conv2d(4, 16, 3, padding=1), torch.nn.Linear(16, 32)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.relu(self.conv(x)).permute(0, 2, 3, 1).reshape(1, 64, 16)
        z = torch.relu(self.dense(y))
        return z @ z.transpose(1, 2)


@pytest.fixture(scope="module")
def network() -> tuple[Any, Any, torch.Tensor, torch.Tensor]:
    """A network in Relax, its target, an input and what PyTorch computes of it."""
    torch.manual_seed(0)
    module, x = Network().eval(), torch.randn(1, 4, 8, 8)
    relax = prepared(*relax_of(torch.export.export(module, (x,))))
    return relax, target_of(TARGET), x, module(x).detach()


def task_of(network: Any, name: str) -> TraceTask:
    """The task of a fused function whose name begins so."""
    module, target, _, _ = network
    (task,) = [task for task in tasks_of(module, target) if str(task.task_name).startswith(name)]
    return TraceTask(task)


def by_first(embeddings: np.ndarray) -> np.ndarray:
    """Scores of nothing in particular."""
    return embeddings.reshape(len(embeddings), -1).sum(1)


def test_functions_for_a_cpu_say_which_arguments_are_weights(network: Any) -> None:
    module, target, _, _ = network
    tasks = [TraceTask(task) for task in tasks_of(module, target)]
    found = {task.desc: weights_of(task.module) for task in tasks}
    assert [places for name, places in found.items() if "conv2d" in name] == [(1,)]
    assert sorted(places for name, places in found.items() if "matmul" in name) == [(), (1,)]
    assert {weights_of(without_weights(task.module)) for task in tasks} == {()}
    for_gpu = target_of("cuda -arch=sm_80", here=False)
    assert {weights_of(TraceTask(task).module) for task in tasks_of(module, for_gpu)} == {()}


def test_a_network_has_its_weights_as_its_programs_read_them(network: Any) -> None:
    from tvm.s_tir import meta_schedule as ms

    module, target, x, expected = network
    tasks = [TraceTask(task) for task in tasks_of(module, target)]
    chosen = {task.workload_key: choose_program(task, by_first, 0, 1) for task in tasks}
    database = ms.database.MemoryDatabase()
    add_chosen(database, tasks, {key: trace for key, trace in chosen.items() if trace})

    known = with_programs(fused(module, target), target, database)

    text = known["main"].script()
    assert text.count("_prepacked, (") == 2
    assert "_prepack, (" not in text  # what lays weights out is folded into them
    assert text.count("R.call_tir(") == fused(module, target)["main"].script().count("R.call_tir(")
    library = end_to_end.compiled(module, {}, target, database)
    (name,) = end_to_end.random_inputs(module)
    (found,) = end_to_end.run_once(library, {name: x.numpy()}, target)
    np.testing.assert_allclose(found, expected.numpy(), rtol=1e-4, atol=1e-5)

    ran = profile(library, {name: x.numpy()}, target, 1)
    functions = functions_of(fused(module, target))
    ran_keys = {functions[each.name] for each in ran}
    assert {task.workload_key for task in tasks if weights_of(task.module)} <= ran_keys  # reshapes never run
    assert ran_keys <= {task.workload_key for task in tasks}
    assert all(each.count == 1 and each.seconds > 0 for each in ran)


def test_weights_are_laid_out_anew_in_programs_too(network: Any) -> None:
    dense = task_of(network, "fused_matmul_add")
    programs = drawn(ready_search(dense, 1, 16), 16)
    sent = [Measurable("dense", each.mod, dense.target).serialized() for each in programs]
    assert {each.weights for each in sent} == {(1,)}
    assert any(len(each.arguments[1][0]) > 2 for each in sent)


def test_programs_that_were_tuned_with_weights_as_they_come_are_taken(network: Any, tmp_path: Path) -> None:
    from tvm.s_tir import meta_schedule as ms

    task = task_of(network, "fused_matmul_add")
    plain = without_weights(task.module)
    files = (str(tmp_path / WORKLOADS), str(tmp_path / RECORDS))
    theirs, ours = ms.database.JSONDatabase(*files), ms.database.MemoryDatabase()
    assert not _take_measured(ours, task, [tmp_path])
    (program,) = sample_traces(plain, task.target, 1)
    found = (program.trace, theirs.commit_workload(plain), [1e-3], task.target)
    theirs.commit_tuning_record(ms.database.TuningRecord(*found))

    assert _take_measured(ours, task, [tmp_path])
    assert ours.has_workload(task.module)


@pytest.mark.parametrize(("caches", "cooled"), [(COLD, True), (WARM, False)])
def test_weights_are_cold_when_a_program_is_timed(
    network: Any, caches: str, cooled: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    task = task_of(network, "fused_conv2d_add")
    (program,) = drawn(ready_search(task, 1, 1), 1)
    assert not work.build(7, Measurable("conv", program.mod, task.target).serialized()).error
    asked: list[str] = []
    timed = child.timed

    def spy(*given: Any) -> tuple[float, ...]:
        asked.append(given[-1])
        return timed(*given)

    monkeypatch.setattr(work, "timed", spy)
    outcome = work.run(7, Timing(repeat=1, min_repeat_ms=1, caches=caches), "conv", again=False)
    assert outcome is not None
    assert not outcome.error, outcome.message
    assert [bool(cool) for cool in asked] == [cooled] * len(asked)
    assert asked
