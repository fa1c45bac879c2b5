"""The search: TVM's task scheduler over policies that breed natively, steered from its callbacks."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.headroom import spend
from tlp_tvm.ansor.search.policy import BATCH, ChoosingPolicy, measure
from tlp_tvm.measuring.stopping import StopOnInterrupt
from tlp_tvm.tuning.history import History
from tlp_tvm.tuning.tune_settings import MOST_PER_ROUND

_NEVER = 2**31 - 1


class _TrialsDone(Exception):
    """No error: how to leave TVM's scheduler early."""


def measures_per_round(trials: int, tasks: int) -> int:
    """Programs of a round that give every task two rounds, but not more than are worth an evolution.

    Args:
        trials: programs to measure in all.
        tasks: of the network.
    """
    return max(1, min(MOST_PER_ROUND, trials // (2 * tasks)))


@dataclass(frozen=True)
class SearchSettings:
    """How to search.

    Attributes:
        trials: programs measured at the end, earlier ones included, if the search spaces hold as many.
        per_round: programs of one task that are measured before the next task is chosen.
        population: programs that are bred in a generation.
        seed: of the search; a resumed run continues with another.
        diverse: whether programs are chosen by what they may teach too (`policy`); if not, the best scores.
        headroom: whether the next task is that with the largest predicted gain (`headroom`); if not, TVM's.
        patience: programs without a gain after which a task is left; 0 for never.
    """

    trials: int
    per_round: int
    population: int
    seed: int
    diverse: bool = False
    headroom: bool = False
    patience: int = 0


def search(
    tasks: Sequence[Any],
    weights: Sequence[int],
    cost_model: TLPCostModel,
    log: Path,
    before: History,
    settings: SearchSettings,
    *,
    stop: StopOnInterrupt,
    on_round: Callable[[int], None],
    warm: Path | None = None,
    starts: Mapping[str, Sequence[Any]] | None = None,
) -> None:
    """Measure programs; the caller has opened a `MeasuringPool` that writes the log.

    Args:
        tasks: `auto_scheduler.SearchTask`s.
        weights: how often each appears.
        cost_model: of TVM.
        log: TVM's record file; what it holds now is not measured again.
        before: the same, read.
        settings: how to search.
        stop: asked between rounds and programs.
        on_round: called with the task's index as its round begins.
        warm: record file of programs that breed with the others, are not measured again, and do not count.
        starts: workload key to states that are measured before anything is searched.

    Raises:
        Stopped: `stop` was asked to.
    """
    auto_scheduler = load_tvm().auto_scheduler
    options = auto_scheduler.TuningOptions(
        num_measure_trials=settings.trials,
        num_measures_per_round=settings.per_round,
        builder=auto_scheduler.LocalBuilder(n_parallel=BATCH // 2),  # TVM measures twice as many at a time
        runner=auto_scheduler.LocalRunner(),
        verbose=0,
    )
    seeds = [
        # TVM replaces a seed of 0 by a random one
        (settings.seed * 1009 + len(before) * 31 + i) % (2**30) + 1
        for i in range(len(tasks))
    ]

    def begin(task: int) -> None:
        stop.check()
        on_round(task)

    done = len(before)
    for i, task in enumerate(tasks):
        states = list((starts or {}).get(str(task.workload_key), ()))[: settings.trials - done - len(tasks)]
        if states:
            begin(i)
            cost_model.update(*measure(task, states, options))
            done += len(states)
    known = [log] if done else []
    known += [warm] if warm is not None else []
    left = settings.trials - done
    policies = [
        ChoosingPolicy(
            task,
            cost_model,
            options,
            population=settings.population,
            seed=seed,
            diverse=settings.diverse,
            logs=known,
        )
        for task, seed in zip(tasks, seeds, strict=True)
    ]
    if settings.headroom:
        spend(policies, weights, left, settings.per_round, settings.patience, begin)
        return
    # TVM takes no policies but its own when it starts; none of these searches.
    stand_ins = [auto_scheduler.SketchPolicy(task, cost_model, verbose=0) for task in tasks]
    steering = _steering(policies, options, left, settings.per_round, begin)
    scheduler = auto_scheduler.TaskScheduler(
        list(tasks), list(weights), load_log_file=str(log) if done else None, callbacks=[steering]
    )
    with contextlib.suppress(_TrialsDone):
        scheduler.tune(options, search_policy=stand_ins, per_task_early_stopping=settings.patience or None)


def _steering(
    policies: list[ChoosingPolicy], options: Any, left: int, per_round: int, begin: Callable[[int], None]
) -> Any:
    """A callback that sizes TVM's rounds, puts our policies in, and ends after the last program."""
    auto_scheduler = load_tvm().auto_scheduler
    # TVM gives up after 150 failures in a row; a task of which nothing runs may have more.
    measurer = auto_scheduler.measure.ProgramMeasurer(
        options.builder, options.runner, [], 0, max_continuous_error=_NEVER
    )
    callback = auto_scheduler.task_scheduler.TaskSchedulerCallback

    class Steering(callback):  # type: ignore[misc, valid-type]
        def pre_tune(self, scheduler: Any, task_id: int) -> None:
            if left - scheduler.ct <= 0:
                raise _TrialsDone
            scheduler.measurer = measurer
            scheduler.search_policies = policies
            scheduler.num_measures_per_round = min(per_round, left - scheduler.ct)
            begin(task_id)

    return Steering()
