"""`TracePool` in place of TVM's builder and runner in MetaSchedule's own tuning."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tlp_tvm.latency import latency_of_costs
from tlp_tvm.measuring.child import Outcome
from tlp_tvm.measuring.pool import reason_of
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.measuring.on_disk import bring_to_disk
from tlp_tvm.metaschedule.measuring.pools import Measurable, TracePool, arguments_of
from tlp_tvm.tuning.tune_progress import Progress

load_tvm()

from tvm.ir.utils import derived_object  # noqa: E402 - which TVM is settled by load_tvm
from tvm.s_tir.meta_schedule.builder import BuilderResult, PyBuilder  # noqa: E402
from tvm.s_tir.meta_schedule.measure_callback import PyMeasureCallback  # noqa: E402
from tvm.s_tir.meta_schedule.runner import PyRunner, PyRunnerFuture, RunnerResult  # noqa: E402

Built = dict[int, tuple[Measurable, Outcome]]
"""Programs that wait to be timed, by the number that the pool gave."""

OnProgram = Callable[[str], None]
"""Told of each program why it failed; empty if it did not."""


def builder_and_runner(pool: TracePool, on_program: OnProgram) -> tuple[Any, Any]:
    """What `ms.tune_tasks` takes; an artifact is no file, but the number of a program in a child.

    Args:
        pool: open as long as the tuning goes.
        on_program: told of each program.
    """
    built: Built = {}
    return PoolBuilder(pool, built, on_program), PoolRunner(pool, built, on_program)


@derived_object
class PoolBuilder(PyBuilder):  # type: ignore[misc]
    """Compiles in the pool's children."""

    def __init__(self, pool: TracePool, built: Built, on_program: OnProgram) -> None:
        super().__init__()
        self.pool, self.built, self.on_program = pool, built, on_program

    def build(self, build_inputs: Any) -> list[Any]:
        """`ms.builder.BuilderInput`s -> `BuilderResult`s."""
        # TVM does not tell the task; programs with the same arguments are taken for one's.
        programs = [Measurable(str(arguments_of(each.mod)), each.mod, each.target) for each in build_inputs]
        results = []
        for program, (number, outcome) in zip(programs, self.pool.build(programs), strict=True):
            if outcome.error:
                self.on_program(reason_of(outcome))
                results.append(BuilderResult(None, reason_of(outcome)))
            else:
                self.built[number] = (program, outcome)
                results.append(BuilderResult(str(number), None))
        return results


@derived_object
class PoolRunner(PyRunner):  # type: ignore[misc]
    """Times in the pool's children, one program after the other."""

    def __init__(self, pool: TracePool, built: Built, on_program: OnProgram) -> None:
        super().__init__()
        self.pool, self.built, self.on_program = pool, built, on_program

    def run(self, runner_inputs: Any) -> list[Any]:
        """`ms.runner.RunnerInput`s -> futures that are done."""
        numbers = [int(str(each.artifact_path)) for each in runner_inputs]
        kept = [self.built.pop(number) for number in numbers]
        programs = [program for program, _ in kept]
        built = [(number, outcome) for number, (_, outcome) in zip(numbers, kept, strict=True)]
        futures: dict[int, Done] = {}
        for i, outcome in self.pool.run_all(built, programs):
            self.on_program(reason_of(outcome))
            costs = None if outcome.error else list(outcome.costs)
            futures[i] = Done(RunnerResult(costs, reason_of(outcome) or None))
        return [futures[i] for i in range(len(numbers))]


@derived_object
class Done(PyRunnerFuture):  # type: ignore[misc]
    """A result that is there."""

    def __init__(self, found: Any) -> None:
        super().__init__()
        self.found = found

    def done(self) -> bool:
        """Always."""
        return True

    def result(self) -> Any:
        """`RunnerResult`."""
        return self.found


@derived_object
class Synced(PyMeasureCallback):  # type: ignore[misc]
    """Brings what TVM wrote to its database to the disk, and stops the search where it wrote half a line."""

    def __init__(self, files: Sequence[Path], progress: Progress) -> None:
        super().__init__()
        self.files, self.progress = files, progress

    def apply(self, _scheduler: Any, _task: int, _candidates: Any, _built: Any, _results: Any) -> None:
        """After each round of a task, once TVM has written its records."""
        bring_to_disk(self.files, self.progress)


@derived_object
class OnRound(PyMeasureCallback):  # type: ignore[misc]
    """Tells of each task's results."""

    def __init__(self, tell: Callable[[int, list[float]], None]) -> None:
        super().__init__()
        self.tell = tell

    def apply(self, _scheduler: Any, task_id: int, _candidates: Any, _built: Any, results: Any) -> None:
        """After each round of a task."""
        costs = ([float(cost) for cost in each.run_secs or ()] for each in results)
        self.tell(int(task_id), [latency_of_costs(each) if each else float("inf") for each in costs])
