"""The search: TVM's task scheduler and sketch policies with a cost model, steered from its callbacks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tlp_tvm.ansor.history import History
from tlp_tvm.ansor.locate import load_tvm
from tlp_tvm.ansor.stopping import StopOnInterrupt

_BATCH = 8
"""Programs that are compiled side by side before they are timed one by one."""

_ROUND = 16
"""Most programs of a round by default; a round's evolution takes about as long as measuring that many."""

_NEVER = 2**31 - 1


class _TrialsDone(Exception):
    """No error: how to leave TVM's scheduler early."""


def measures_per_round(trials: int, tasks: int) -> int:
    """Programs of a round that give every task two rounds, but not more than are worth an evolution.

    Args:
        trials: programs to measure in all.
        tasks: of the network.
    """
    return max(1, min(_ROUND, trials // (2 * tasks)))


def search(
    tasks: Sequence[Any],
    weights: Sequence[int],
    cost_model: Any,
    log: Path,
    before: History,
    *,
    trials: int,
    per_round: int,
    population: int,
    seed: int,
    stop: StopOnInterrupt,
    on_round: Callable[[int], None],
    after_round: Callable[[], None],
    warm: Path | None = None,
) -> None:
    """Measure programs until there are `trials`; the caller has opened a `MeasuringPool` that writes the log.

    Args:
        tasks: `auto_scheduler.SearchTask`s.
        weights: how often each appears.
        cost_model: of TVM.
        log: TVM's record file; what it holds now is not measured again.
        before: the same, read.
        trials: programs measured at the end, earlier ones included, if the search spaces hold as many.
        per_round: programs of one task that are measured before the next task is chosen.
        population: programs that breed in a round.
        seed: of the search; a run that is gone on with goes on with another.
        stop: asked between rounds and programs.
        on_round: called with the task's index as its round begins.
        after_round: called when it has ended.
        warm: record file of programs that breed with the others, are not measured again, and do not count.

    Raises:
        Stopped: `stop` was asked to.
    """
    auto_scheduler = load_tvm().auto_scheduler
    known = [log] if len(before) else []
    known += [warm] if warm is not None else []
    preloaded = [auto_scheduler.PreloadMeasuredStates(str(file)) for file in known] or None
    policies = [
        auto_scheduler.SketchPolicy(
            task,
            cost_model,
            params={"evolutionary_search_population": population},
            seed=(seed * 1009 + len(before) * 31 + i) % (2**30)
            + 1,  # TVM replaces a seed of 0 by a random one
            verbose=0,
            init_search_callbacks=preloaded,
        )
        for i, task in enumerate(tasks)
    ]
    options = auto_scheduler.TuningOptions(
        num_measure_trials=trials,
        num_measures_per_round=per_round,
        builder=auto_scheduler.LocalBuilder(n_parallel=_BATCH // 2),  # TVM measures twice as many at a time
        runner=auto_scheduler.LocalRunner(),
        verbose=0,
    )
    # TVM gives up after 150 failures in a row; a task of which nothing runs may have more.
    measurer = auto_scheduler.measure.ProgramMeasurer(
        options.builder, options.runner, [], 0, max_continuous_error=_NEVER
    )

    callback = auto_scheduler.task_scheduler.TaskSchedulerCallback

    class Steering(callback):  # type: ignore[misc, valid-type]
        def pre_tune(self, scheduler: Any, task_id: int) -> None:
            stop.check()
            left = trials - len(before) - scheduler.ct
            if left <= 0:
                raise _TrialsDone
            scheduler.measurer = measurer
            scheduler.num_measures_per_round = min(per_round, left)
            on_round(task_id)

        def post_tune(self, scheduler: Any, task_id: int) -> None:
            after_round()

    scheduler = auto_scheduler.TaskScheduler(
        list(tasks),
        list(weights),
        load_log_file=str(log) if len(before) else None,
        callbacks=[Steering()],
    )
    with contextlib.suppress(_TrialsDone):
        scheduler.tune(options, search_policy=policies)
