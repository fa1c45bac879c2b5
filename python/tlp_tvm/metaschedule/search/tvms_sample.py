"""Programs as TVM's own search begins with, drawn at random and postprocessed."""

from __future__ import annotations

from typing import Any

from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.networks.planning import TraceTask

LAYOUT = "metaschedule"

_ENDLESS = 1 << 30
"""Programs that a search may measure: its end is the caller's."""


def ready_search(
    task: TraceTask, seed: int, count: int, threads: int = 1, *, model: Any = None, generations: int = 1
) -> Any:
    """A search of TVM's that is ready to draw.

    Args:
        task: whose programs.
        seed: of its decisions.
        count: programs that are drawn at a time.
        threads: that apply traces.
        model: `ms.CostModel` by which it breeds; None for none.
        generations: that it breeds.

    Returns:
        `ms.TuneContext`.
    """
    load_tvm()
    from tvm.s_tir import meta_schedule as ms

    strategy = ms.search_strategy.EvolutionarySearch(
        population_size=count, init_min_unmeasured=count, genetic_num_iters=generations
    )
    context = ms.TuneContext(
        mod=task.module,
        target=task.target,
        space_generator="post-order-apply",
        search_strategy=strategy,
        task_name=task.id,
        rand_state=seed,
        num_threads=threads,
    )
    designs = context.generate_design_space()
    model = model or ms.cost_model.RandomModel()
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
