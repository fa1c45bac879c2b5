"""Networks are run operator by operator, and every operator counts."""

from __future__ import annotations

import collections
import tempfile
from typing import Any

import numpy as np
import pytest

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks import profile as profile_module
from tlp_tvm.ansor.networks.end_to_end import random_inputs
from tlp_tvm.ansor.networks.profile import profile

TARGET = "llvm -num-cores=1"


@pytest.fixture(scope="module")
def module() -> Any:
    """Two equal products, a reshape that changes no data, and a softmax."""
    relay = load_tvm().relay
    weights = relay.const(np.eye(8, dtype="float32"))
    x = relay.var("x", shape=(4, 8))
    twice = relay.nn.relu(relay.nn.dense(relay.nn.relu(relay.nn.dense(x, weights)), weights))
    flat = relay.reshape(twice, (1, 32))
    return load_tvm().IRModule.from_expr(relay.Function([x], relay.nn.softmax(flat)))


@pytest.fixture(scope="module")
def built(module: Any) -> Any:
    with load_tvm().transform.PassContext(opt_level=3):
        return load_tvm().relay.build(module, target=TARGET)


def test_operators_are_those_that_tvms_own_profile_has(
    module: Any, built: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tvm.contrib.debugger import debug_executor

    tvm = load_tvm()
    inputs, target = random_inputs(module, {}), tvm.target.Target(TARGET)
    device = tvm.cpu()
    with tempfile.TemporaryDirectory() as folder:
        create = built["debug_create"]("default", device)
        executor = debug_executor.GraphModuleDebug(create, [device], built.get_graph_json(), folder)
        executor.set_input(**inputs)
        own = collections.Counter(str(call["Name"]) for call in executor.profile(collectors=[]).calls)
    monkeypatch.setattr(profile_module, "RUNS", 3)

    first, second = profile([built, built], inputs, target, 1)

    assert {each.name: each.count for each in first} == {
        name: n for name, n in own.items() if name != "__nop"
    }
    assert max(each.count for each in first) == 2
    assert [each.name for each in first] == [each.name for each in second]
    assert all(each.seconds >= 0 for each in first)


def test_a_slow_network_is_run_once(module: Any, built: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(profile_module, "LIMIT_S", 1e-9)

    [found] = profile([built], random_inputs(module, {}), load_tvm().target.Target(TARGET), 1)

    assert len(found) == 2
    assert all(each.seconds >= 0 for each in found)


def test_every_run_begins_anew_and_the_first_does_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    executed: list[int] = []
    graph = (
        '{"nodes": [{"op": "null"}, {"attrs": {"func_name": "f"}}, {"attrs": {"func_name": "__nop"}}, '
        '{"attrs": {"func_name": "g"}}]}'
    )
    now = 0.0

    def execute(node: int) -> None:
        """A call takes one second, what is not executed again nothing more, and the first run is slow."""
        nonlocal now
        now += 1 + (0 if executed and executed[-1] == node else 10 * node * (2 if len(executed) < 4 else 1))
        executed.append(node)

    monkeypatch.setattr(profile_module.time, "perf_counter", lambda: now)
    network = profile_module._Profiled(execute, graph, lambda: None)
    network.run()
    assert [(each.name, each.seconds) for each in network.runs.operators()] == [("f", 20), ("g", 60)]
    network.run()
    network.run()

    assert executed == [0, 1, 3, 3] * 3
    assert [(each.name, each.count) for each in network.runs.operators()] == [("f", 1), ("g", 1)]
    assert [each.seconds for each in network.runs.operators()] == [10, 30], "the first run counts"
    assert network.spent == 4 * 3 + 80 + 2 * 40
