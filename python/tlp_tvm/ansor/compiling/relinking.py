"""A network that was linked from programs, linked anew with other ones: TVM need not build it again.

The graph stays as it is, but for the weights that the other programs have lie otherwise.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from tlp_tvm.ansor.compiling.kept_code import KeptCode
from tlp_tvm.ansor.compiling.linking import Linked
from tlp_tvm.ansor.compiling.newer_network import NewerNetwork
from tlp_tvm.ansor.compiling.weight_places import Places, packed_places
from tlp_tvm.ansor.loading.locate import load_tvm


class Relinker:
    """Makes networks of other programs from one that was built."""

    def __init__(
        self,
        usual: NewerNetwork,
        functions: Mapping[str, str],
        lines: Mapping[str, str],
        kept: KeptCode,
        tasks: Sequence[Any],
    ) -> None:
        """Prepare.

        Args:
            usual: the network.
            functions: name of each of its functions to the workload key of its task.
            lines: workload key to the record of its program.
            kept: code of programs.
            tasks: `auto_scheduler.SearchTask`s.
        """
        plain = load_tvm().auto_scheduler.LayoutRewriteOption.NO_REWRITE
        laid_out = [task for task in tasks if task.layout_rewrite_option != plain]
        self._usual, self._lines, self._kept = usual, lines, kept
        self._dags = {str(task.workload_key): task.compute_dag for task in laid_out}
        self._graph = _Graph(usual)
        self._names: dict[str, list[str]] = defaultdict(list)
        for name in self._graph.functions & functions.keys():
            self._names[functions[name]].append(name)
        self._lay: dict[str, dict[int, Places]] = {}

    def takes(self, key: str, line: str) -> bool:
        """Whether a task can have another program; how its weights lie is left to `network`.

        Args:
            key: of the task.
            line: record of the program.
        """
        if line == self._lines.get(key):
            return True
        try:
            if self._kept.of(line) is None or not self._has_parameters(key):
                self._changes(key, line)
        except ValueError:
            return False
        return True

    def network(self, lines: Mapping[str, str]) -> NewerNetwork | None:
        """The network with these programs, as TVM would build it.

        Args:
            lines: workload key to record.

        Returns:
            None where only TVM can: where it has other tasks with programs, code is missing, or what lies
            otherwise is computed by the network.
        """
        if lines.keys() != self._lines.keys():
            return None
        graph, linked = _Graph(self._usual), dict(self._usual.linked)
        try:
            for key in lines:
                if lines[key] != self._lines[key]:
                    for name, (call, weights) in self._changes(key, lines[key]).items():
                        linked[name] = call
                        for each in weights:
                            graph.lay_out(each)
        except ValueError:
            return None
        return self._usual.with_programs(graph.text, graph.parameters, linked)

    def _has_parameters(self, key: str) -> bool:
        """Whether whatever a task's programs have lie otherwise is a parameter of its own."""
        try:
            for name in self._names[key]:
                for i in self._lay_of(key):
                    self._graph.parameters_at(name, self._linked(name).places[i])
        except ValueError:
            return False
        return True

    def _changes(self, key: str, line: str) -> dict[str, tuple[Linked, list[_Weights]]]:
        """What another program is for a task's functions: how each calls it, and what it reads otherwise.

        Raises:
            ValueError: only TVM can have them call it.
        """
        if (code := self._kept.of(line)) is None:
            raise ValueError("expected code of the program")
        lay, lie, found = self._lay_of(key), self._places(key, line), {}
        for name in self._names[key]:
            before = self._linked(name)
            pairs = enumerate(zip(before.code.arguments, code.arguments, strict=True))
            others = {i for i, (one, other) in pairs if one != other}
            if not others <= lie.keys():
                raise ValueError(f"{name}: expected weights alone to lie otherwise, found arguments {others}")
            moved = [i for i in lie if i in others or not np.array_equal(lay[i], lie[i])]
            weights = [
                _Weights(
                    self._graph.parameters_at(name, before.places[i]), lay[i], lie[i], code.arguments[i][0]
                )
                for i in moved
            ]
            found[name] = (Linked(code, before.places), weights)
        return found

    def _linked(self, name: str) -> Linked:
        if name not in self._usual.linked:
            raise ValueError(f"{name}: expected a function that is linked")
        return self._usual.linked[name]

    def _lay_of(self, key: str) -> dict[int, Places]:
        """Those of other programs are as large as the weights, and not kept."""
        if key not in self._lay:
            self._lay[key] = self._places(key, self._lines[key])
        return self._lay[key]

    def _places(self, key: str, line: str) -> dict[int, Places]:
        if key not in self._dags:
            return {}
        load = load_tvm().auto_scheduler.measure_record.load_record_from_string
        return packed_places(self._dags[key], load(line)[0].state)


class _Weights(NamedTuple):
    """Parameters that lie otherwise: nodes and their names, how they lay and lie, and their shape now."""

    nodes: dict[int, str]
    lay: Places
    lie: Places
    shape: tuple[int, ...]


class _Graph:
    """A network's graph, and its parameters."""

    def __init__(self, network: NewerNetwork) -> None:
        self._content = json.loads(network.get_graph_json())
        self._nodes = self._content["nodes"]
        self.parameters = dict(network.parameters)

    @property
    def text(self) -> str:
        return json.dumps(self._content)

    @property
    def functions(self) -> set[str]:
        return set(map(self._function, self._nodes)) - {""}

    def parameters_at(self, name: str, place: int) -> dict[int, str]:
        """What a function reads there: nodes, and the names of their parameters.

        Raises:
            ValueError: it is no parameter, or read by another function too.
        """
        read = {node["inputs"][place][0] for node in self._nodes if self._function(node) == name}
        for node in self._nodes:
            others = {each[0] for each in node["inputs"]} & read
            if others and self._function(node) != name:
                raise ValueError(f"expected weights of one function, found {self._function(node)} too")
        names = {i: str(self._nodes[i]["name"]) for i in read}
        for parameter in names.values():
            if parameter not in self.parameters:
                raise ValueError(f"expected weights that are a parameter, found {parameter}")
        return names

    def lay_out(self, weights: _Weights) -> None:
        """Have parameters lie otherwise."""
        for i, parameter in weights.nodes.items():
            packed = self.parameters[parameter].numpy()
            plain = np.empty(packed.size, packed.dtype)
            plain[weights.lay] = packed.ravel()
            self.parameters[parameter] = load_tvm().nd.array(plain[weights.lie].reshape(weights.shape))
            self._content["attrs"]["shape"][1][self._content["node_row_ptr"][i]] = list(weights.shape)

    @staticmethod
    def _function(node: Any) -> str:
        return str(node.get("attrs", {}).get("func_name", ""))
