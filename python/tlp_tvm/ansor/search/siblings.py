"""Programs of one task for its siblings: tasks that compute the same, and do other things to the result.

A network has the same convolution with a bias and an activation, with a residual, and with both. Each is a
task of its own, and what is fast for one is for the others. Their programs differ in the numbers of the
stages, and in which stages are inlined.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

Step = list[Any]

_INLINE, _CACHE_READ, _CACHE_WRITE, _FACTOR, _COMPUTE_AT = "CI", "CHR", "CHW", "RF", "CA"
_SPLIT_AS = ("FSP", "FFSP")
"""TVM's words for steps; the last two split a loop as earlier steps split another."""

_RESULT = -1
"""The stage of what a task returns, whatever its number."""


class Stages:
    """The stages of a task, before any step.

    Attributes:
        lines: what each computes, as TVM writes it.
        shape: of the result.
    """

    def __init__(self, task: Any) -> None:
        """Read a task.

        Args:
            task: `auto_scheduler.SearchTask`.
        """
        dag = task.compute_dag
        self.lines = str(dag).strip().splitlines()
        self.shape = [int(extent) for extent in dag.tensors[-1].shape]
        reduced = [i for i, op in enumerate(dag.ops) if len(getattr(op, "reduce_axis", ()))]
        one_line_each = len(self.lines) == len(dag.ops)
        self.core = reduced[-1] + 1 if reduced and one_line_each else 0
        """Stages up to the last one that sums something up; 0 where none does."""

    def shared_with(self, other: Stages) -> int:
        """How many stages, from the first, are the same.

        Args:
            other: another task's.

        Returns:
            0 if the tasks are no siblings.
        """
        most = min(len(self.lines), len(other.lines)) - 1
        pairs = zip(self.lines[:most], other.lines[:most], strict=True)
        shared = next((i for i, (ours, theirs) in enumerate(pairs) if ours != theirs), most)
        least, most = sorted((self.core, other.core))
        return shared if self.shape == other.shape and least > 0 and most <= shared else 0


def steps_for_sibling(
    steps: Sequence[Step], ours: Stages, theirs: Stages, example: Sequence[Step]
) -> list[Step] | None:
    """What a program is for a sibling.

    Args:
        steps: of a program, as TVM writes them.
        ours: stages of its task.
        theirs: stages of the sibling.
        example: any program of the sibling; it shows which stages TVM inlines.

    Returns:
        The sibling's program, which TVM may still refuse; None where they are no siblings, or differ in more
        than inlined stages.
    """
    shared = ours.shared_with(theirs)
    before, names = _names(ours, shared, "ours"), _names(theirs, shared, "theirs")
    dropped, added = _inlined(steps, ours, before), _inlined(example, theirs, names)
    if not shared or dropped is None or added is None:
        return None
    moved: list[Step] = [[_INLINE, names.index(name)] for name in reversed(names) if name in added]
    places: list[int] = []
    for step, named in _walk(steps, before):
        places.append(len(moved))
        if named[step[1]] not in dropped:
            moved.append(_moved(step, named, names, places))
            names = _after(moved[-1], names)
    return moved


def _names(stages: Stages, shared: int, whose: str) -> list[Any]:
    """What each stage is called in both tasks; those of one alone have its name."""
    own = [(whose, i) for i in range(shared, len(stages.lines) - 1)]
    return [*range(shared), *own, _RESULT]


def _inlined(steps: Sequence[Step], stages: Stages, names: Sequence[Any]) -> set[Any] | None:
    """The stages of one task alone that are inlined; None if another of them computes something."""
    found = {named[step[1]] for step, named in _walk(steps, names) if step[0] == _INLINE}
    computing = zip(names, stages.lines, strict=True)
    alone = {name for name, line in computing if isinstance(name, tuple) and "= PLACEHOLDER [" not in line}
    return alone if alone <= found else None


def _walk(steps: Sequence[Step], names: Sequence[Any]) -> Iterator[tuple[Step, list[Any]]]:
    """Each step, and the stages that it finds."""
    named = list(names)
    for step in steps:
        yield step, named
        named = _after(step, named)


def _after(step: Step, names: Sequence[Any]) -> list[Any]:
    """The stages after a step."""
    kind, stage, *_ = step
    if kind not in (_CACHE_WRITE, _CACHE_READ, _FACTOR):
        return list(names)
    place = stage + (kind == _CACHE_READ)
    return [*names[:place], (kind, names[stage]), *names[place:]]


def _moved(step: Step, before: Sequence[Any], names: Sequence[Any], places: Sequence[int]) -> Step:
    """A step on the stages of the sibling, which are called the same."""

    def there(stage: int) -> int:
        return names.index(before[stage])

    kind, stage, *rest = step
    if kind == _COMPUTE_AT:
        rest[0] = there(rest[0])
    elif kind == _CACHE_READ:
        rest[1] = [there(each) for each in rest[1]]
    elif kind == _SPLIT_AS[0]:
        rest[1] = places[rest[1]]
    elif kind == _SPLIT_AS[1]:
        rest[1] = [places[each] for each in rest[1]]
    return [kind, there(stage), *rest]
