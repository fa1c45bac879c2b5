"""A network that is linked anew with other programs is the one that TVM would build of them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from small_network import FLOAT, network, record_of

from tlp_tvm.ansor.compiling.kept_code import CodeOf, KeptCode
from tlp_tvm.ansor.compiling.newer_llvm import newer_llvm
from tlp_tvm.ansor.compiling.newer_network import NewerNetwork
from tlp_tvm.ansor.compiling.relinking import Relinker
from tlp_tvm.ansor.compiling.weight_places import packed_places
from tlp_tvm.ansor.graph.pipeline import prepare
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.end_to_end import build_tuned, random_inputs, run_once
from tlp_tvm.ansor.networks.layout_rewrite import keep_layout_where_needed
from tlp_tvm.ansor.networks.tasks import extract_tasks
from tlp_tvm.ansor.search.sampling import sample_states

TARGET = "llvm -mcpu=core-avx2 -num-cores=2"


def graph_of(network: NewerNetwork) -> Any:
    """Without the hashes of its functions, which have the layout of their weights in them."""
    graph = json.loads(network.get_graph_json())
    for node in graph["nodes"]:
        node.get("attrs", {}).pop("hash", "")
    return graph


def test_other_programs_have_their_weights_lie_as_tvm_lays_them(tmp_path: Path) -> None:
    tvm = load_tvm()
    target, kept, module = tvm.target.Target(TARGET), KeptCode(), network()
    prepared = prepare(module, {}, target)
    with prepared.operators():
        tasks, plain = keep_layout_where_needed(extract_tasks((prepared.module, {}), TARGET)[0])
        lines: list[dict[str, str]] = [{}, {}, {}]
        for task in tasks:
            for chosen, state in zip(lines, sample_states(task, 32)[:32:11], strict=True):
                chosen[str(task.workload_key)], code = record_of(task, state)
                kept.add(code)

        def by_tvm(lines: dict[str, str]) -> tuple[NewerNetwork, dict[str, str]]:
            log = tmp_path / "log.json"
            log.write_text("".join(lines.values()))
            code = CodeOf(newer_llvm(tvm), kept)
            return build_tuned(prepared, target, log, plain, set(lines), code)

        usual, functions = by_tvm(lines[0])
        relinker = Relinker(usual, functions, lines[0], kept, tasks)
        shapes = [{name: each.shape for name, each in usual.parameters.items()}]
        for other in (*lines[1:], lines[0]):
            expected, _ = by_tvm(other)
            found = relinker.network(other)
            assert found is not None
            assert graph_of(found) == graph_of(expected)
            for name, value in expected.parameters.items():
                assert np.array_equal(found.parameters[name].numpy(), value.numpy()), name
            shapes.append({name: each.shape for name, each in found.parameters.items()})
            inputs = random_inputs(module, {})
            outputs = [run_once(each, inputs, target)[0] for each in (found, expected)]
            assert np.array_equal(*outputs)
    assert shapes[0] != shapes[1], "no weights lie otherwise"
    assert shapes[0] == shapes[3]

    key = next(iter(lines[0]))
    missing = {each: line for each, line in lines[0].items() if each != key}
    assert relinker.network(missing) is None, "TVM's own schedule of a task"
    unknown = {**lines[0], key: lines[1][key]}
    assert Relinker(usual, functions, lines[0], KeptCode(), tasks).network(unknown) is None


def test_what_the_network_computes_lies_as_it_did(tmp_path: Path) -> None:
    """Ansor has the second operand of a product lie otherwise, too, and what computes it writes it so."""
    tvm = load_tvm()
    relay, target, kept = tvm.relay, tvm.target.Target(TARGET), KeptCode()
    x, y = (relay.var(name, shape=(2, 16, 24)) for name in "xy")
    product = relay.nn.batch_matmul(relay.nn.relu(x), relay.nn.relu(y))
    prepared = prepare(tvm.IRModule.from_expr(relay.Function([x, y], product)), {}, target)
    with prepared.operators():
        tasks, plain = keep_layout_where_needed(extract_tasks((prepared.module, {}), TARGET)[0])
        [task] = [each for each in tasks if "batch_matmul" in str(each.desc)]
        key = str(task.workload_key)
        records = [record_of(task, state) for state in sample_states(task, 16)[:5]]
        for _, code in records:
            kept.add(code)
        log = tmp_path / "log.json"
        log.write_text(records[0][0])
        usual, functions = build_tuned(prepared, target, log, plain, {key}, CodeOf(newer_llvm(tvm), kept))
        relinker = Relinker(usual, functions, {key: records[0][0]}, kept, tasks)
        shapes = [code.arguments for _, code in records]
        taken = [relinker.takes(key, line) for line, _ in records]

        assert len(usual.linked) == 1
        assert taken[0]
        assert not any(yes for yes, shape in zip(taken, shapes, strict=True) if shape != shapes[0])
        assert len(set(shapes)) > 1, "all programs read the same"
        for yes, (line, _) in zip(taken, records, strict=True):
            assert (relinker.network({key: line}) is not None) == yes


def test_weights_that_two_operations_read_are_not_laid_out() -> None:
    tvm = load_tvm()
    te, reads = tvm.te, "layout_free_placeholders"
    x, w = te.placeholder((4, 8), name="x", dtype=FLOAT), te.placeholder((16, 8), name="w", dtype=FLOAT)

    def product(name: str) -> Any:
        k = te.reduce_axis((0, 8), name="k")
        body = lambda i, j: te.sum(x[i, k] * w[j, k], axis=k)  # noqa: E731
        return te.compute((4, 16), body, name=name, attrs={reads: [w]})

    one, two = product("one"), product("two")
    both = te.compute((4, 16), lambda i, j: one[i, j] + two[i, j], name="both")
    for tensors, said in (([x, w, one], ""), ([x, w, both], "is false")):
        dag = tvm.auto_scheduler.ComputeDAG(tensors)
        if not said:
            assert np.array_equal(packed_places(dag, dag.get_init_state())[1], np.arange(16 * 8))
            continue
        with pytest.raises(ValueError, match=said):
            packed_places(dag, dag.get_init_state())
