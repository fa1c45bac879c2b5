"""Traces name the blocks of a task, and equal tasks of two networks may name theirs otherwise.

To TVM two tasks are the same whatever their blocks are called: names come from variables of the network. Its
traces find blocks by name, so one of a task that was found in another network is rewritten first.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from tlp_tvm.metaschedule.loading.locate import load_tvm

_ROOT = "root"


def block_names(module: Any) -> list[str]:
    """Names of a task's blocks, in the order of the program, the root left out.

    Args:
        module: of the task.
    """
    load_tvm()
    from tvm.s_tir import Schedule

    schedule = Schedule(module)
    names: list[str] = []

    def inside(block: Any) -> None:
        for child in schedule.get_child_blocks(block):
            names.append(str(schedule.get(child).name_hint))
            inside(child)

    inside(schedule.get_sblock(_ROOT))
    return names


def renamed(trace: str, before: Sequence[str], after: Sequence[str]) -> str:
    """A trace of one task as one of another that is the same but for the names of its blocks.

    Args:
        trace: as the JSON of a record.
        before: `block_names` of the task that it is of.
        after: those of the other.
    """
    if list(before) == list(after):
        return trace
    names = dict(zip(before, after, strict=True))
    content = json.loads(trace)
    for name, _, attributes, _ in content[0]:
        if name == "GetSBlock":
            attributes[0] = _renamed(attributes[0], names)
    return json.dumps(content, separators=(",", ":"))


def _renamed(name: str, names: dict[str, str]) -> str:
    """Blocks that a schedule makes have a name of the task's with something behind it."""
    begins = [known for known in names if name == known or name.startswith(f"{known}_")]
    longest = max(begins, key=len, default="")
    return names[longest] + name[len(longest) :] if longest else name
