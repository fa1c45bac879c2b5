"""Tuning without measuring: the model alone chooses a program of each task.

The choices are records that TVM's `ApplyHistoryBest` takes. Their cost is made up, and marked as that: a
billion seconds (`MADE_UP_COST`), no time spent, no date. So any program that was really measured beats them.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from tlp_tvm.ansor.breeding.task_stock import TaskStock
from tlp_tvm.ansor.compiling.pass_settings import of_a_program
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.tasks import NVIDIA_GPU
from tlp_tvm.ansor.reading.store_rows import rows_of_states
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.breeding.evolution import evolve
from tlp_tvm.breeding.herd_scores import model_scores
from tlp_tvm.breeding.second_opinion import SecondOpinion
from tlp_tvm.files import write_whole
from tlp_tvm.measuring.code_kinds import PLAIN

MADE_UP_COST = 1e9
"""Seconds; below what TVM writes for a failure, far above what anything takes."""

CANDIDATES = 32
"""Programs with the best scores that are tried, one after the other, until one can be lowered."""

FAVOURITES, JUDGED = 1024, 48
"""Programs with the best scores, and how many of them a model's trees judge, where it has some. Of 128 they
choose programs that both say are a hundredth faster, in twice the time."""


def choose_programs(
    tasks: Sequence[Any],
    cost_model: TLPCostModel,
    log: Path,
    chosen: dict[str, str],
    *,
    population: int,
    seed: int,
    on_task: Callable[[Any], None],
    by_trees: bool = True,
) -> dict[str, str]:
    """Choose a program of each task, and write each as it is chosen.

    Args:
        tasks: `auto_scheduler.SearchTask`s.
        cost_model: that scores.
        log: record file; replaced after every choice.
        chosen: workload key to record line of what was chosen before.
        population: programs that are bred in a generation.
        seed: of the search.
        on_task: called with each task before its program is chosen; may raise to stop.
        by_trees: whether the model's trees judge, which takes most of the time.

    Returns:
        Workload key to record line; without the tasks of which no program can be compiled.
    """
    lines = dict(chosen)
    for i, task in enumerate(tasks):
        key = str(task.workload_key)
        if key in lines:
            continue
        on_task(task)
        state = choose_program(task, cost_model, population, seed * 1009 + i, by_trees=by_trees)
        if state is not None:
            lines[key] = record_of(task, state)
            write_whole(log, "".join(lines.values()))
    return lines


def choose_program(
    task: Any, cost_model: TLPCostModel, population: int, seed: int, *, by_trees: bool = True
) -> Any | None:
    """Evolve programs of a task by the model's scores, and take the best that can be compiled.

    Args:
        task: `auto_scheduler.SearchTask`.
        cost_model: that scores.
        population: programs that are bred in a generation.
        seed: of the search; not negative.
        by_trees: whether the model's trees judge, where it has some.

    Returns:
        Its state, or None where none of the best can be compiled.
    """
    stock = TaskStock(task, seed)
    platform, rows_of = cost_model.platform_for(str(task.target)), functools.partial(rows_of_states, task)
    opinion = SecondOpinion.by(cost_model.model, platform, rows_of) if by_trees else None
    scores = model_scores(cost_model, str(task.workload_key), str(task.target))
    count = CANDIDATES if opinion is None else FAVOURITES
    found = evolve(stock, stock.sample, scores, population=population, count=count, seed=seed)
    places: Sequence[int] = range(len(found.herd))
    if opinion is not None:
        as_bred = functools.partial(stock.replayer.all_as_bred, found.herd)
        places = [i for i, _ in opinion.best(found, places, as_bred, JUDGED)]
    states = (stock.replayer.program(found.herd, i) for i in places)
    known = opinion is not None
    fit = (state for state in states if state is not None and can_be_compiled(task, state, lowered=known))
    return next(fit, None)


def record_of(task: Any, state: Any) -> str:
    """A line for TVM's log that names a program which nobody has measured.

    Args:
        task: `auto_scheduler.SearchTask`.
        state: the program.
    """
    auto_scheduler = load_tvm().auto_scheduler
    measured = auto_scheduler.MeasureInput(task, state)
    result = auto_scheduler.MeasureResult([MADE_UP_COST], 0, "", 0.0, 0)
    return str(auto_scheduler.measure_record.dump_record_to_string(measured, result)).rstrip("\n") + "\n"


def can_be_compiled(task: Any, state: Any, *, lowered: bool = False) -> bool:
    """Whether a program can be lowered, and for a GPU also keeps to its limits.

    Args:
        task: `auto_scheduler.SearchTask`.
        state: the program.
        lowered: whether TVM has lowered it before, with weights as they come: then it is lowered again for a
            GPU alone.
    """
    tvm, for_gpu = load_tvm(), "gpu" in task.target.keys
    try:
        schedule, arguments = task.compute_dag.apply_steps_from_state(
            state, layout_rewrite=task.layout_rewrite_option
        )
        if lowered and not for_gpu:
            return True
        settings = of_a_program(tvm, task.target, PLAIN)
        with (
            tvm.target.Target(task.target, task.target_host),
            tvm.transform.PassContext(opt_level=3, **settings),
        ):
            module = tvm.lower(schedule, arguments)
    except (tvm.TVMError, ValueError):
        return False
    if not for_gpu:
        return True
    hardware = task.hardware_params
    limits = {
        "max_shared_memory_per_block": int(hardware.max_shared_memory_per_block),
        "max_local_memory_per_block": int(hardware.max_local_memory_per_block),
        "max_threads_per_block": int(hardware.max_threads_per_block),
        "max_vthread": int(hardware.max_vthread_extent),
        "max_vector_bytes": int(hardware.vector_unit_bytes) or NVIDIA_GPU["vector_unit_bytes"],
    }
    return all(
        bool(tvm.tir.analysis.verify_gpu_code(function, limits)) for function in module.functions.values()
    )
