"""TVM's own evolution, step by step: programs drawn as a search begins, and bred by what a model expects."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlp_tvm.adapting.program_source import Prior
from tlp_tvm.adapting.search_scores import as_weights
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.metaschedule.reading.traces import extract_traces

LAYOUT = "metaschedule"

_ENDLESS = 1 << 30
"""Programs that a search may measure: its end is the caller's."""


def ready_search(
    task: TraceTask,
    seed: int,
    *,
    population: int,
    least: int,
    generations: int,
    expected: Prior | None = None,
    threads: int = 1,
) -> Any:
    """A search of TVM's that is ready to draw and breed.

    Args:
        task: whose programs.
        seed: of its decisions.
        population: programs that breed.
        least: programs that are drawn at a time.
        generations: how many a call of `bred` makes.
        expected: scores of embeddings, by which it breeds; None for none.
        threads: that apply traces.

    Returns:
        `ms.TuneContext`.
    """
    load_tvm()
    from tvm.s_tir import meta_schedule as ms

    context = ms.TuneContext(
        mod=task.module,
        target=task.target,
        space_generator="post-order-apply",
        search_strategy=ms.search_strategy.EvolutionarySearch(
            population_size=population, init_min_unmeasured=least, genetic_num_iters=generations
        ),
        task_name=task.id,
        rand_state=seed,
        num_threads=threads,
    )
    designs = context.generate_design_space()
    model = ms.cost_model.RandomModel() if expected is None else _guide(expected)
    context.pre_tuning(_ENDLESS, 64, designs, ms.database.MemoryDatabase(), model)
    return context


def drawn(context: Any, count: int) -> list[Any]:
    """Programs as a search begins with, postprocessed, those that fail left out.

    Args:
        context: that `ready_search` gave.
        count: how many.

    Returns:
        `tvm.s_tir.Schedule`s.
    """
    from tvm_ffi import get_global_func

    sample = get_global_func("s_tir.meta_schedule.SearchStrategyEvolutionarySearchSampleInitPopulation")
    return list(sample(context.search_strategy, count))


def bred(context: Any, start: list[Any], count: int) -> list[Any]:
    """Programs that TVM's evolution finds, the most promising first.

    Args:
        context: that `ready_search` gave.
        start: schedules to begin with.
        count: how many.

    Returns:
        `tvm.s_tir.Schedule`s; fewer where there are no more.
    """
    from tvm_ffi import get_global_func

    evolve = get_global_func("s_tir.meta_schedule.SearchStrategyEvolutionarySearchEvolveWithCostModel")
    return list(evolve(context.search_strategy, start, count))


def _guide(expected: Prior) -> Any:
    """A cost model of TVM that says what is expected of programs."""
    load_tvm()
    from tvm.ir.utils import derived_object
    from tvm.s_tir.meta_schedule.cost_model import PyCostModel

    @derived_object
    class Guide(PyCostModel):  # type: ignore[misc]
        def predict(self, _context: Any, candidates: Any) -> Any:
            embeddings = extract_traces(candidates, FeatureLayout.preset(LAYOUT))
            return np.asarray(as_weights(expected(embeddings)), np.float64)

        def load(self, _path: str) -> None:
            """Nothing to load."""

        def save(self, _path: str) -> None:
            """Nothing to save."""

        def update(self, _context: Any, _candidates: Any, _results: Any) -> None:
            """Progress is reported elsewhere."""

    return Guide()
