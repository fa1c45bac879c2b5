"""The search of a network: a policy for each task, and what to spend programs on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.policy import ChoosingPolicy, measure
from tlp_tvm.breeding.rounds import BATCH
from tlp_tvm.breeding.spending import spend
from tlp_tvm.measuring.stopping import StopOnInterrupt
from tlp_tvm.tuning.history import History


@dataclass(frozen=True)
class SearchSettings:
    """How to search.

    Attributes:
        trials: programs measured at the end, earlier ones included, if the search spaces hold as many.
        per_round: most programs of one task that are measured before the next task is chosen.
        population: programs that are bred in a generation.
        seed: of the search; a resumed run continues with another.
        by_time: whether the search ends by a clock, so that what counts is what a second gains.
        diverse: whether programs are chosen by what they may teach too (`policy`); if not, the best scores.
    """

    trials: int
    per_round: int
    population: int
    seed: int
    diverse: bool = False
    by_time: bool = False


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
    for policy in policies:
        policy.meet(policies)
    spend(policies, weights, left, settings.per_round, begin, settings.by_time)
