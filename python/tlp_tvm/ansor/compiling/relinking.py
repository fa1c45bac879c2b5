"""A network that was linked from programs, linked anew with other ones: TVM need not build it again.

The graph stays as it is, but for the weights that the other programs have lie otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import numpy as np

from tlp_tvm.ansor.compiling.kept_code import Code, KeptCode
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
        dags: Mapping[str, Any],
    ) -> None:
        """Prepare.

        Args:
            usual: the network.
            functions: name of each of its functions to the workload key of its task.
            lines: workload key to the record of its program.
            kept: code of programs.
            dags: workload key to `auto_scheduler.ComputeDAG`; of the tasks whose weights may lie otherwise.
        """
        self._usual, self._functions, self._lines = usual, functions, lines
        self._kept, self._dags = kept, dags
        self._known: dict[str, dict[int, Places]] = {}

    def takes(self, key: str, line: str) -> bool:
        """Whether a task can have another program.

        Args:
            key: of the task.
            line: record of the program.
        """
        return (
            line == self._lines.get(key)
            or self._put(_Graph(self._usual), key, line, try_only=True) is not None
        )

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
        for key in lines:
            if lines[key] == self._lines[key]:
                continue
            if (put := self._put(graph, key, lines[key])) is None:
                return None
            linked |= put
        return self._usual.with_programs(graph.text, graph.parameters, linked)

    def _put(self, graph: _Graph, key: str, line: str, try_only: bool = False) -> dict[str, Linked] | None:
        """A task's functions with another program, and its weights as it reads them; None where not."""
        code, found = self._kept.of(line), {}
        for name in (each for each, of in self._functions.items() if of == key and graph.has(each)):
            before = self._usual.linked.get(name)
            if before is None or code is None:
                return None
            try:
                for place, (lay, lie, shape) in self._weights(key, line, before, code).items():
                    nodes = graph.parameters_at(name, place)
                    if not try_only:
                        graph.lay_out(nodes, lay, lie, shape)
            except ValueError:
                return None
            found[name] = Linked(code, before.places)
        return found

    def _weights(
        self, key: str, line: str, before: Linked, code: Code
    ) -> dict[int, tuple[Places, Places, tuple[int, ...]]]:
        """Of the arguments that lie otherwise: how they lay, how they lie, and their shape now."""
        lay, lie = (self._places(key, each) for each in (self._lines[key], line))
        arguments = zip(before.code.arguments, code.arguments, strict=True)
        others = [i for i, (one, other) in enumerate(arguments) if one != other]
        if not set(others) <= lie.keys():
            raise ValueError(f"expected other weights alone, found arguments {others}")
        return {
            before.places[i]: (lay[i], lie[i], code.arguments[i][0])
            for i in lie
            if i in others or not np.array_equal(lay[i], lie[i])
        }

    def _places(self, key: str, line: str) -> dict[int, Places]:
        if key not in self._dags:
            return {}
        if line not in self._known:
            load = load_tvm().auto_scheduler.measure_record.load_record_from_string
            self._known[line] = packed_places(self._dags[key], load(line)[0].state)
        return self._known[line]


class _Graph:
    """A network's graph, and its parameters."""

    def __init__(self, network: NewerNetwork) -> None:
        self._content = json.loads(network.get_graph_json())
        self._nodes = self._content["nodes"]
        self.parameters = dict(network.parameters)

    @property
    def text(self) -> str:
        return json.dumps(self._content)

    def has(self, name: str) -> bool:
        return any(self._function(node) == name for node in self._nodes)

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

    def lay_out(self, nodes: Mapping[int, str], lay: Places, lie: Places, shape: tuple[int, ...]) -> None:
        """Have parameters lie otherwise."""
        for i, parameter in nodes.items():
            packed = self.parameters[parameter].numpy()
            plain = np.empty(packed.size, packed.dtype)
            plain[lay] = packed.ravel()
            self.parameters[parameter] = load_tvm().nd.array(plain[lie].reshape(shape))
            self._content["attrs"]["shape"][1][self._content["node_row_ptr"][i]] = list(shape)

    @staticmethod
    def _function(node: Any) -> str:
        return str(node.get("attrs", {}).get("func_name", ""))
