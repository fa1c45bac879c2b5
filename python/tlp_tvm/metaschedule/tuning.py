"""Tuning a network with MetaSchedule: tasks, TVM's own search, and the network before and after.

The run's folder is a working folder of MetaSchedule: its database is the only memory of what was measured.
"""

from __future__ import annotations

import collections
import dataclasses
import json
import logging
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm.ansor.history import mend_log
from tlp_tvm.ansor.measure import MeasureSettings
from tlp_tvm.ansor.native_messages import native_messages_to
from tlp_tvm.ansor.stopping import StopOnInterrupt, Stopped
from tlp_tvm.ansor.tune_observer import TuneObserver
from tlp_tvm.ansor.tune_settings import MOST_PER_ROUND
from tlp_tvm.errors import TuningError
from tlp_tvm.files import write_whole
from tlp_tvm.latency import latency_of_costs
from tlp_tvm.metaschedule.locate import load_tvm
from tlp_tvm.metaschedule.measure import TracePool
from tlp_tvm.metaschedule.networks import canonical_name, network_from, tasks_of
from tlp_tvm.metaschedule.targets import cores_of, device_of, target_of

RUN = "run.json"
LIBRARY = "network.so"
RECORDS = ("database_tuning_record.json", "database_workload.json")
TVMS_MODELS = ("random", "xgb", "mlp")
"""Cost models of MetaSchedule's own, by name."""


@dataclass(frozen=True)
class TraceTuneSettings:
    """What to tune and how.

    Attributes:
        network: as `networks.network_from` takes it.
        out: folder of the run; one that exists is gone on with.
        model: what `tlp_tvm.load_model` takes, or one of `TVMS_MODELS`.
        target: TVM's target; empty for this machine's CPU.
        trials: programs to measure in all.
        platform: of the model; None for the one that the target names.
        seed: of the search.
        measures_per_round: programs of one task measured in a row; 0 chooses.
        measure: how to compile and time; `threads` 0 takes the cores that the target names.
    """

    network: str
    out: Path
    model: str
    target: str = ""
    trials: int = 200
    platform: str | None = None
    seed: int = 0
    measures_per_round: int = 0
    measure: MeasureSettings = field(default_factory=lambda: MeasureSettings(threads=0))


@dataclass(frozen=True)
class TraceTuneResult:
    """What came of a tuning.

    Attributes:
        network: its name.
        target: TVM's target.
        model: that chose.
        trials: programs measured, those of earlier calls included.
        tasks: name, weight and best latency in seconds (None where no program ran) of each.
        failures: why programs of this call failed, in words, and how many.
        untuned_latency: seconds of the network as TVM compiles it without records.
        tuned_latency: with the best records.
        difference: largest difference of the outputs, relative to the largest output.
        library: of the tuned network, for `tvm.runtime.load_module` and `relax.VirtualMachine`.
    """

    network: str
    target: str
    model: str
    trials: int
    tasks: list[dict[str, Any]]
    failures: dict[str, int]
    untuned_latency: float
    tuned_latency: float
    difference: float
    library: str


def tune_network(settings: TraceTuneSettings, observer: TuneObserver | None = None) -> TraceTuneResult:
    """Tune a network, or go on with a tuning that was stopped.

    Args:
        settings: what to tune and how.
        observer: is told how it goes.

    Raises:
        TuningError: no such target, the folder holds another run, or it was stopped.
        NetworkError: no such network.
        ModelFileError: the model cannot be read, or is of another framework.
    """
    observer = observer or TuneObserver()
    target = target_of(settings.target)
    name = canonical_name(settings.network)
    observer.step(f"splitting {name} into tasks")
    module, parameters = network_from(settings.network)
    _claim(settings, name, str(target))
    for file in RECORDS:
        mend_log(settings.out / file)
    tasks = tasks_of(_bound(module, parameters), target)
    failures = _search(settings, tasks, target, observer)
    observer.step("timing the network")
    database = _database(settings.out)
    times = _before_and_after(module, parameters, target, database, settings.out / LIBRARY)
    best = [_best(database, task) for task in tasks]
    result = TraceTuneResult(
        network=name,
        target=str(target),
        model=settings.model,
        trials=len(database),
        tasks=[
            {"name": str(task.task_name), "weight": int(task.weight), "best": latency}
            for task, latency in zip(tasks, best, strict=True)
        ],
        failures=failures,
        untuned_latency=times[0],
        tuned_latency=times[1],
        difference=times[2],
        library=str(settings.out / LIBRARY),
    )
    write_whole(settings.out / "tuned.json", json.dumps(dataclasses.asdict(result), indent=1) + "\n")
    return result


@contextmanager
def _without_nameless_handlers() -> Iterator[None]:
    """TVM asks every handler of its logger for its name, and stops at one that has none."""
    logger = logging.getLogger("tvm.s_tir.meta_schedule")
    nameless = [handler for handler in logger.handlers if handler.get_name() is None]
    for handler in nameless:
        logger.removeHandler(handler)
    try:
        yield
    finally:
        for handler in nameless:
            logger.addHandler(handler)


def _search(
    settings: TraceTuneSettings, tasks: Sequence[Any], target: Any, observer: TuneObserver
) -> dict[str, int]:
    """TVM's own tuning of all tasks; returns why programs failed."""
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule.relax_integration import extracted_tasks_to_tune_contexts

    from tlp_tvm.metaschedule.measure_for_tvm import OnRound, builder_and_runner

    database = _database(settings.out)
    known = len(database)
    observer.planned(len(tasks), settings.trials, known)
    model = _cost_model(settings)
    failures: collections.Counter[str] = collections.Counter()
    if known >= settings.trials:
        return {}
    with _without_nameless_handlers():
        contexts, weights = extracted_tasks_to_tune_contexts(
            list(tasks), str(settings.out), num_threads=cores_of(target), seed=settings.seed
        )
    best = [_best(database, task) or float("inf") for task in tasks]
    measured = known

    def on_program(reason: str) -> None:
        nonlocal measured
        measured += 1
        if reason:
            failures[reason] += 1
        estimate = sum(w * b for w, b in zip(weights, best, strict=True))
        observer.measured(measured, float(estimate), failures)

    def on_round(task: int, latencies: list[float]) -> None:
        best[task] = min([best[task], *latencies])

    stop = StopOnInterrupt()
    how = dataclasses.replace(settings.measure, threads=settings.measure.threads or cores_of(target))
    with ExitStack() as stack:
        output = stack.enter_context((settings.out / "tvm.log").open("ab"))
        stack.enter_context(native_messages_to(output))
        stack.enter_context(stop)
        pool = stack.enter_context(TracePool(how, output, stop.check))
        builder, runner = builder_and_runner(pool, on_program)
        callbacks = ms.measure_callback
        try:
            ms.tune_tasks(
                tasks=contexts,
                task_weights=weights,
                work_dir=str(settings.out),
                max_trials_global=settings.trials - known,
                num_trials_per_iter=settings.measures_per_round or MOST_PER_ROUND,
                builder=builder,
                runner=runner,
                database=database,
                cost_model=model,
                measure_callbacks=[callbacks.AddToDatabase(), callbacks.UpdateCostModel(), OnRound(on_round)],
            )
        except Exception as error:
            if stop.requested:
                raise Stopped(
                    f"stopped; {settings.out} holds what was measured, and the same command goes on"
                ) from error
            raise
    return dict(failures.most_common())


def _cost_model(settings: TraceTuneSettings) -> Any:
    from tvm.s_tir import meta_schedule as ms

    if not settings.model:
        raise TuningError(
            "--model: expected one for metaschedule, found none, and none is shipped; train one with "
            f"`tlp-tvm train`, or choose {', '.join(TVMS_MODELS)}"
        )
    if settings.model in TVMS_MODELS:
        return ms.cost_model.CostModel.create(settings.model)
    from tlp_tvm.metaschedule.cost_model import TLPCostModel

    return TLPCostModel(settings.model, settings.platform, online=True)


def _claim(settings: TraceTuneSettings, network: str, target: str) -> None:
    """Note whose run the folder is, or see that it is the same as before."""
    about = {"framework": "metaschedule", "network": network, "target": target}
    path = settings.out / RUN
    settings.out.mkdir(parents=True, exist_ok=True)
    before = json.loads(path.read_text()) if path.exists() else about
    for entry, value in about.items():
        if before.get(entry) != value:
            raise TuningError(
                f"{path}: expected {entry} {before.get(entry, 'none, as of ansor')}, as before, found "
                f"{value}; choose another --out"
            )
    write_whole(path, json.dumps({**about, "model": settings.model, "seed": settings.seed}, indent=1) + "\n")


def _database(out: Path) -> Any:
    load_tvm()
    from tvm.s_tir import meta_schedule as ms

    return ms.database.JSONDatabase(*(str(out / file) for file in reversed(RECORDS)))


def _best(database: Any, task: Any) -> float | None:
    module = task.dispatched[0]
    if not database.has_workload(module):
        return None
    top = database.get_top_k(database.commit_workload(module), 1)
    return latency_of_costs([float(seconds) for seconds in top[0].run_secs]) if top else None


def _bound(module: Any, parameters: dict[str, Any]) -> Any:
    from tvm.relax.transform import BindParams

    return BindParams("main", parameters)(module)


def _before_and_after(
    module: Any, parameters: dict[str, Any], target: Any, database: Any, library: Path
) -> tuple[float, float, float]:
    """Seconds untuned and tuned, and how far their outputs differ; writes the tuned library."""
    from tvm import relax
    from tvm.s_tir import meta_schedule as ms
    from tvm.s_tir.meta_schedule.relax_integration import compile_relax

    tvm = load_tvm()
    device = device_of(str(target.kind.name))
    random = np.random.default_rng(0)
    inputs = []
    for variable in _bound(module, parameters)["main"].params:
        shape = [int(extent) for extent in variable.ty.shape]
        inputs.append(
            tvm.runtime.tensor(random.standard_normal(shape).astype(_numpy_type(variable.ty.dtype)), device)
        )
    seconds, outputs = [], []
    for records in (ms.database.MemoryDatabase(), database):
        compiled = compile_relax(records, module, target, parameters)
        machine = relax.VirtualMachine(compiled, device)
        outputs.append(_arrays(machine["main"](*inputs)))
        timer = machine.time_evaluator("main", device, number=1, repeat=5, min_repeat_ms=50)
        seconds.append(float(np.median(timer(*inputs).results)))
    compiled.export_library(str(library))
    scale = max(float(np.abs(output).max(initial=1e-30)) for output in outputs[0])
    pairs = zip(*outputs, strict=True)
    difference = max(float(np.abs(after - before).max(initial=0)) for before, after in pairs) / scale
    return seconds[0], seconds[1], difference


def _numpy_type(dtype: Any) -> str:
    return str(getattr(dtype, "dtype", dtype))


def _arrays(output: Any) -> list[Any]:
    return [output.numpy()] if hasattr(output, "numpy") else [each.numpy() for each in output]
