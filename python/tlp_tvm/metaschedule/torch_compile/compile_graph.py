"""From an exported graph of torch to a library; what takes long is kept on the disk."""

from __future__ import annotations

import hashlib
import io
import logging
from pathlib import Path
from typing import Any

import torch

from tlp_tvm.adapting.program_source import ModelPrior
from tlp_tvm.adapting.search_scores import load_scorer
from tlp_tvm.errors import TuningError
from tlp_tvm.files import write_whole
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.measuring.stopping import Stopped
from tlp_tvm.metaschedule.graph.fusing import without_weights
from tlp_tvm.metaschedule.graph.prepared import prepared
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.targets import flags_of, target_of
from tlp_tvm.metaschedule.networks import end_to_end
from tlp_tvm.metaschedule.networks.builtin import relax_of, tasks_of
from tlp_tvm.metaschedule.networks.number_types import refuse_unlearned
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.metaschedule.reading.records import RECORDS
from tlp_tvm.metaschedule.reading.traces import applied, json_of
from tlp_tvm.metaschedule.search import zero_shot
from tlp_tvm.metaschedule.search.block_names import block_names, renamed
from tlp_tvm.metaschedule.search.zero_shot import add_chosen, choose_programs
from tlp_tvm.metaschedule.torch_compile.backend_options import BackendOptions
from tlp_tvm.metaschedule.torch_compile.kept_graphs import cache
from tlp_tvm.metaschedule.torch_compile.torch_graph import NotTaken, first_line
from tlp_tvm.model.checkpoint import model_digest
from tlp_tvm.model.scoring import platform_or_mean
from tlp_tvm.records.source import WORKLOADS
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.tune_settings import UNBOUNDED_TRIALS, TuneSettings

SEED = 0

log = logging.getLogger("tlp_tvm")


def compile_graph(program: torch.export.ExportedProgram, options: BackendOptions, digest: str) -> Any:
    """Compile a graph with the best programs that are known: measured ones, or else the model's choice.

    Args:
        program: that torch exported.
        options: how.
        digest: of the graph; names the folder of its tuning.

    Returns:
        `relax.VMExecutable`.

    Raises:
        NotTaken: TVM lacks an operator of it.
        TuningError: what nobody measured is of a type of numbers that the model does not know.
    """
    load_tvm()
    from tvm.s_tir import meta_schedule as ms

    target = target_of(options.target)
    try:
        module = prepared(*relax_of(program))
        tasks = [TraceTask(task) for task in tasks_of(module, target)]
    except Exception as error:
        raise NotTaken(f"TVM: {first_line(error)}") from error
    database = ms.database.MemoryDatabase()
    folders = [options.database] if options.database else []
    if options.minutes and digest:
        folders.append(_tuned(program, options, cache() / "tunings" / digest))
    measured = {task.workload_key for task in tasks if _take_measured(database, task, folders)}
    left = [task for task in tasks if task.workload_key not in measured]
    refuse_unlearned(left, options.model)
    add_chosen(database, left, _chosen(left, options, flags_of(target)))
    try:
        return end_to_end.compiled(module, {}, target, database)
    except Exception as error:
        raise NotTaken(f"TVM: {first_line(error)}") from error


def _chosen(tasks: list[TraceTask], options: BackendOptions, flags: str) -> dict[str, str]:
    scorer = load_scorer(options.model)
    platform = platform_or_mean(scorer, flags)
    named = repr(
        (
            *(model_digest(options.model), scorer.layout.digest, platform, flags, SEED),
            zero_shot.WAY,
        )
    )
    folder = cache() / "choices" / hashlib.blake2b(named.encode(), digest_size=16).hexdigest()
    return choose_programs(
        tasks,
        ModelPrior(scorer, platform),
        folder,
        seed=SEED,
        threads=this_cpu().cores,
        on_task=lambda _: None,
    )


def _tuned(program: torch.export.ExportedProgram, options: BackendOptions, folder: Path) -> Path:
    """Tune a graph, or go on; the folder of the run, whose database has what was measured."""
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / "graph.pt2"
    if not file.exists():
        saved = io.BytesIO()
        torch.export.save(program, saved)
        write_whole(file, saved.getvalue())
    run = folder / "run"
    settings = TuneSettings(
        network=str(file),
        out=run,
        model=options.model,
        target=options.target,
        trials=UNBOUNDED_TRIALS,
        hide_messages=True,
        framework="metaschedule",
        minutes=options.minutes,
        whole=False,
    )
    try:
        tune_network(settings)
    except Stopped:
        raise KeyboardInterrupt from None
    except TuningError as error:  # what was measured counts, and the model chooses the rest
        log.warning("%s", error)
    return run


def _take_measured(database: Any, task: TraceTask, folders: list[Path]) -> bool:
    """Put a task's fastest measured program into a database; False where none was measured."""
    from tvm.s_tir import meta_schedule as ms

    for folder in folders:
        if not ((folder / WORKLOADS).exists() and (folder / RECORDS).exists()):
            continue  # TVM would make them
        known = ms.database.JSONDatabase(str(folder / WORKLOADS), str(folder / RECORDS))
        ways = [way for way in (task.module, without_weights(task.module)) if known.has_workload(way)]
        if not ways:
            continue
        theirs = known.commit_workload(ways[0])
        best = known.get_top_k(theirs, 1)
        if best and best[0].run_secs and float(best[0].run_secs[0]) < 1e9:
            trace = best[0].trace
            if (names := block_names(theirs.mod)) != (ours := block_names(task.module)):
                trace = applied(task.module, renamed(json_of(trace), names, ours)).trace
            workload, seconds = database.commit_workload(task.module), list(best[0].run_secs)
            database.commit_tuning_record(ms.database.TuningRecord(trace, workload, seconds, task.target))
            return True
    return False
