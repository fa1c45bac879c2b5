"""Choosing without measuring: the model alone takes a program of each task, out of those that are bred.

The choices become records of a database. Their cost is made up, and marked as that: a billion seconds
(`MADE_UP_COST`), so any program that was really measured beats them.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from tlp_tvm.adapting.program_source import ModelPrior, Prior
from tlp_tvm.breeding.evolution import Found, evolve
from tlp_tvm.breeding.herd_scores import scores_by
from tlp_tvm.breeding.second_opinion import SecondOpinion
from tlp_tvm.files import write_whole
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metaschedule.breeding.trace_stock import SAMPLED, TraceStock
from tlp_tvm.metaschedule.graph.fusing import is_cpu
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.metaschedule.reading.store_rows import rows_of_schedules
from tlp_tvm.metaschedule.reading.traces import applied, texts_of
from tlp_tvm.metaschedule.search.block_names import block_names, renamed
from tlp_tvm.metaschedule.search.trace_search import guessed
from tlp_tvm.metaschedule.search.tvms_sample import LAYOUT

MADE_UP_COST = 1e9
"""Seconds; far above what anything takes."""

POPULATION, GENERATIONS = 2048, 2
"""Programs that are bred in a generation, and generations."""

ASKED = 64
"""Programs with the best scores that a model's trees judge, where it has some: 10 to 15 ms each. 256 make
another network faster by a fifth, in four times the time, and a ViT no faster than 32."""

CANDIDATES = 128
"""Programs with the best scores that are tried, one after the other, until one can be taken."""

LIGHT_S, LIGHT = 3e-5, 4
"""A task that takes less than so many seconds, as its operations and bytes let guess, gets a fourth of the
programs: such tasks are many, and take little of a network's time."""

SHARES = ((0.02, 1), (0.005, 2), (0.0, LIGHT))
"""From which share of a network's time, guessed alike, a task gets all of the programs, half, a fourth."""

WAY = (
    f"bred natively, {GENERATIONS} generations of {POPULATION}, weights laid out, {ASKED} judged by trees, "
    f"1/{LIGHT} below {LIGHT_S} s, by shares {SHARES}"
)
"""What choices, and graphs of them, depend on beside model, target and seed: caches are keyed by it."""

MOST_WORK = 1.5
"""Times the operations of the task, more of which no chosen program has. A sequence does not say what is
computed over and over: of a softmax the model likes one that finds the sum anew for each of 1,000 results."""


def choose_programs(
    tasks: Sequence[TraceTask],
    expected: Prior,
    folder: Path,
    *,
    seed: int,
    threads: int,
    on_task: Callable[[TraceTask], None],
) -> dict[str, str]:
    """Choose a program of each task; each is kept in a file as it is chosen, and not chosen again.

    Args:
        tasks: of a network.
        expected: scores of embeddings; the trees of a model's, where it has some, judge the best.
        folder: of the files; one model, one target and one seed only.
        seed: of the search.
        threads: that replay programs.
        on_task: called with each task before its program is chosen; may raise to stop.

    Returns:
        Workload key to trace, as the JSON of a record; without tasks of which TVM draws no valid program.
    """
    folder.mkdir(parents=True, exist_ok=True)
    chosen: dict[str, str] = {}
    for task, part in zip(tasks, parts_of(tasks), strict=True):
        files = {each: folder / f"{task.workload_key}-{each}.json" for _, each in SHARES if each <= part}
        trace = next((found for file in files.values() if (found := _read(file, task)) is not None), None)
        if trace is None:
            on_task(task)
            trace = choose_program(task, expected, seed, threads, part)
            kept = {"blocks": block_names(task.module), "trace": json.loads(trace)} if trace else None
            write_whole(files[part], json.dumps(kept, separators=(",", ":")))
        if trace:
            chosen[task.workload_key] = trace
    return chosen


def parts_of(tasks: Sequence[TraceTask]) -> list[int]:
    """Which part of the programs each task of a network gets: 1 for all, 2 for half, 4 for a fourth.

    Args:
        tasks: of the network.
    """
    seconds = [guessed(task) for task in tasks]
    weighted = [each * int(task.task.weight) for each, task in zip(seconds, tasks, strict=True)]
    whole = sum(weighted) or 1.0
    by_share = (next(part for share, part in SHARES if each >= share * whole) for each in weighted)
    return [LIGHT if each < LIGHT_S else part for each, part in zip(seconds, by_share, strict=True)]


def choose_program(task: TraceTask, expected: Prior, seed: int, threads: int, part: int = 1) -> str:
    """Breed programs of a task by the model's scores, and take the best that TVM replays.

    Args:
        task: whose program.
        expected: scores of embeddings; the trees of a model's, where it has some, judge the best.
        seed: of the search.
        threads: that replay programs.
        part: of the programs that are drawn, bred and judged, 2 for half.

    Returns:
        Its trace, as the JSON of a record; empty where TVM draws no valid program.
    """
    stock = TraceStock(task, seed, sampled=SAMPLED // part, threads=threads)
    if not len(stock.sample):
        return ""
    found = evolve(
        stock,
        stock.sample,
        scores_by(FeatureLayout.preset(LAYOUT), expected),
        population=POPULATION // part,
        count=CANDIDATES // part,
        seed=seed,
        generations=GENERATIONS,
    )
    taken, least = None, float("inf")
    for schedule in _best_first(stock, found, opinion_of(task, expected), ASKED // part):
        if (work := operations(schedule.mod)) < least:
            taken, least = schedule, work
        if least <= MOST_WORK * task.flop:
            break
    return "" if taken is None else texts_of([taken])[0]


def opinion_of(task: TraceTask, prior: Prior | None) -> SecondOpinion | None:
    """What a model's trees say of a task's programs for a CPU; of an unknown one, as of their first.

    Args:
        task: whose programs.
        prior: that leads the breeding.
    """
    if not isinstance(prior, ModelPrior) or not is_cpu(task.target):
        return None
    trees = getattr(prior.model, "trees", None)
    if trees is None:
        return None
    platform = prior.platform if prior.platform in trees.platforms else trees.platforms[0]
    rows_of = functools.partial(rows_of_schedules, task.module, task.target)
    return SecondOpinion.by(prior.model, platform, rows_of)


def _best_first(stock: TraceStock, found: Found, opinion: SecondOpinion | None, judged: int) -> Iterator[Any]:
    """Schedules of what was bred, those that TVM refuses left out."""
    places = range(len(found.herd))
    if opinion is not None:
        places, asked = places[judged:], places[:judged]
        programs_of = functools.partial(stock.replayer.all_programs, found.herd)
        yield from (schedule for _, schedule in opinion.best(found, asked, programs_of, len(asked)))
    for i in places:
        if (schedule := stock.replayer.program(found.herd, i)) is not None:
            yield schedule


def operations(module: Any) -> float:
    """Floating-point operations of a program, those that it repeats included; 0 where TVM cannot count them.

    Args:
        module: the scheduled IRModule.
    """
    load_tvm()
    from tvm.s_tir.analysis import estimate_tir_flops

    try:
        return float(estimate_tir_flops(module))
    except (RuntimeError, ValueError, TypeError):
        return 0.0


def add_chosen(database: Any, tasks: Sequence[TraceTask], chosen: Mapping[str, str]) -> None:
    """Put choices into a database, as records that nobody has measured.

    Args:
        database: `ms.Database`.
        tasks: of a network.
        chosen: workload key to trace.
    """
    load_tvm()
    from tvm.s_tir import meta_schedule as ms

    for task in tasks:
        if task.workload_key in chosen:
            schedule = applied(task.module, chosen[task.workload_key])
            workload = database.commit_workload(task.module)
            record = ms.database.TuningRecord(schedule.trace, workload, [MADE_UP_COST], task.target)
            database.commit_tuning_record(record)


def _read(file: Path, task: TraceTask) -> str | None:
    """A choice of before for a task: None where there is none, or where the file is damaged."""
    try:
        kept = json.loads(file.read_text(encoding="utf-8"))
        return renamed(json.dumps(kept["trace"]), kept["blocks"], block_names(task.module)) if kept else ""
    except (OSError, ValueError, TypeError, KeyError):
        return None
