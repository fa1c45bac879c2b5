"""What a choice without measuring loses where less is drawn, bred or lowered for it.

Question: how much speed does the chosen program lose, as network and trees see it, with fewer random programs
of TVM's, smaller generations, or fewer programs that TVM lowers for the trees?
Set-up: up to seven tasks of each network, two seeds; each way chooses a program with the shipped model.
Nothing is measured, so a busy machine changes the seconds alone.
Baseline: 256 random programs, generations of 2,560, 128 programs lowered.
Takeaway: the difference of the logarithm of speed that both say together, mean, standard error and worst, and
seconds of drawing, breeding and lowering.

    python benchmarks/choice_budgets.py NET...
"""

from __future__ import annotations

import argparse
import functools
import time
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.adaptation import UNIT
from tlp_tvm.adapting.informed import both
from tlp_tvm.adapting.process import SLOPE
from tlp_tvm.ansor.breeding.task_stock import TaskStock
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.loops import share_loops_of
from tlp_tvm.ansor.loading.targets import target_of
from tlp_tvm.ansor.networks.planning import plan_tasks
from tlp_tvm.ansor.reading.store_rows import rows_of_states
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.zero_shot import FAVOURITES
from tlp_tvm.bench.timing import machine
from tlp_tvm.breeding.evolution import evolve
from tlp_tvm.breeding.herd_scores import embedded, model_scores
from tlp_tvm.breeding.second_opinion import SecondOpinion
from tlp_tvm.framework import framework_named
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.checkpoint import load_model
from tlp_tvm.model.trees.tile_sizes import tile_sizes

TASKS, SEEDS = 7, (0, 1)


class Budget(NamedTuple):
    """What a choice may spend: random programs, children of a generation, programs lowered."""

    drawn: int
    population: int
    lowered: int


BASELINE = Budget(256, 2560, 128)
BUDGETS = [
    BASELINE,
    *(Budget(drawn, 2560, 128) for drawn in (128, 64, 32)),
    *(Budget(256, 2560, lowered) for lowered in (64, 48, 32)),
    Budget(256, 1280, 128),
    Budget(64, 2560, 48),
]


def tasks_of(network: str) -> list[Any]:
    """Some of a network's tasks, evenly spread."""
    target = target_of("", here=True)
    share_loops_of(load_tvm())
    planned = plan_tasks([network], target, print)
    places = np.unique(np.linspace(0, len(planned) - 1, TASKS).astype(int))
    return [planned[i].task for i in places]


def chosen(task: Any, cost_model: TLPCostModel, seed: int, budget: Budget) -> tuple[float, list[float]]:
    """The logarithm of a choice's speed, as network and trees see it; and seconds of its three steps."""
    platform, rows_of = cost_model.platform_for(str(task.target)), functools.partial(rows_of_states, task)
    opinion = SecondOpinion.by(cost_model.model, platform, rows_of)
    assert opinion is not None, "expected a model with trees"
    moments = [time.perf_counter()]
    stock = TaskStock(task, seed, budget.drawn)
    start = stock.sample
    moments.append(time.perf_counter())
    scores = model_scores(cost_model, str(task.workload_key), str(task.target))
    how = {"population": budget.population, "count": FAVOURITES, "seed": seed}
    found = evolve(stock, start, scores, **how)
    moments.append(time.perf_counter())
    as_bred = functools.partial(stock.replayer.all_as_bred, found.herd)
    place, program = opinion.best(found, range(len(found.herd)), as_bred, budget.lowered)[0]
    moments.append(time.perf_counter())
    layout = FeatureLayout.preset("ansor")
    tiles = tile_sizes(embedded(found.herd.take(np.array([place])), layout), layout)
    speeds = cost_model.model.trees.speeds(*rows_of([program]), tiles, platform)
    value = float(both(found.scores[[place]], speeds)[0]) * SLOPE * UNIT
    return value, np.diff(moments).tolist()


def row(budget: Budget, found: NDArray[np.float64], seconds: NDArray[np.float64]) -> str:
    """A way's row of the table, by its differences from the baseline."""
    error = found.std(ddof=1) / np.sqrt(len(found)) if len(found) > 1 else 0.0
    words = f"{found.mean():+.3f} ± {error:.3f} | {found.min():+.2f}"
    spent = " | ".join(f"{each:.1f}" for each in seconds.mean(0))
    return f"| {' | '.join(map(str, budget))} | {words} | {spent} |"


def main() -> None:
    """Choose and print."""
    parser = argparse.ArgumentParser(description="Choices without measuring, by what they may spend.")
    parser.add_argument("networks", nargs="+", metavar="NET")
    asked = parser.parse_args()
    cost_model = TLPCostModel(load_model(framework_named("ansor").default_model), online=False)
    tasks = [task for network in asked.networks for task in tasks_of(network)]
    values = np.empty((len(BUDGETS), len(tasks) * len(SEEDS)))
    seconds = np.empty((*values.shape, 3))
    for i, (task, seed) in enumerate((task, seed) for task in tasks for seed in SEEDS):
        for j, budget in enumerate(BUDGETS):
            values[j, i], seconds[j, i] = chosen(task, cost_model, seed, budget)
        print(f"{i + 1} of {values.shape[1]} choices", flush=True)
    heads = ["drawn", "generation", "lowered", "logarithm of speed", "worst", "drawing, s", "breeding, s"]
    print(f"{machine()}\n\n| {' | '.join([*heads, 'lowering, s'])} |\n{'|---' * 8}|")
    for budget, each, spent in zip(BUDGETS, values - values[0], seconds, strict=True):
        print(row(budget, each, spent))


if __name__ == "__main__":
    main()
