"""MetaSchedule, as everything else sees it (`framework.Framework`). Light: a method imports what it needs."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.program_source import Prior, ProgramSource
from tlp_tvm.errors import CollectionError, NetworkError
from tlp_tvm.framework import Contender, OnErrors, Pool, Tell
from tlp_tvm.machine.checks import Check
from tlp_tvm.measuring.child import COLD, Outcome
from tlp_tvm.measuring.fleet import Fleet
from tlp_tvm.measuring.pool import FAILED_COST, MeasureSettings, MeasuringPool
from tlp_tvm.planned_task import PlannedTask
from tlp_tvm.record_batch import RecordBatch

_RECORD = re.compile(rb"\[\s*\d+\s*,\s*\[")
"""[number of the workload, [trace, ..."""


class _MetaSchedule:
    """Stateless; the docstrings are those of `Framework`."""

    name = "metaschedule"
    title = "MetaSchedule, of TVM 0.25 to 0.27"
    population = 512
    default_model = "x86-metaschedule"
    log = "database_tuning_record.json"
    layouts = ("metaschedule",)
    caches = COLD
    exported = ".pt2"

    @property
    def choice_population(self) -> int:
        from tlp_tvm.metaschedule.search.zero_shot import POPULATION

        return POPULATION

    def is_here(self) -> bool:
        from tlp_tvm.metaschedule.loading.locate import has_metaschedule

        return has_metaschedule()

    def checks(self) -> list[Check]:
        from tlp_tvm.metaschedule.loading.diagnosis import diagnose

        return diagnose()

    def code(self) -> str:
        from tlp_tvm.metaschedule.compiling.building import CODE

        return CODE

    def tvm_version(self) -> str:
        from tlp_tvm.metaschedule.loading.locate import tvm_info

        return tvm_info().version

    def target(self, text: str, *, here: bool) -> Any:
        from tlp_tvm.metaschedule.loading.targets import target_of

        return target_of(text, here=here)

    def cores(self, target: Any) -> int:
        from tlp_tvm.metaschedule.loading.targets import cores_of

        return cores_of(target)

    def flags_of(self, target: Any) -> str:
        from tlp_tvm.metaschedule.loading.targets import flags_of

        return flags_of(target)

    def platform_name(self, target: Any) -> str:
        """For example "llvm-core-avx2-2c"."""
        from tlp_tvm.metaschedule.loading.targets import flags_of

        kind, *flags = flags_of(target).split()
        words = [value for name, _, value in (flag.partition("=") for flag in flags) if name != "-num-cores"]
        cores = [f"{self.cores(target)}c"] if kind == "llvm" else []
        return re.sub(r"[^\w.]+", "-", "-".join([kind, *words, *cores]))

    def wrote(self, begin: bytes) -> bool:
        return _RECORD.match(begin) is not None

    def read(self, files: Sequence[str], errors: OnErrors, threads: int) -> RecordBatch:
        from tlp_tvm.metaschedule.reading.records import iter_batches, joined

        return joined(list(iter_batches(files, errors=errors, threads=threads)))

    def batches(
        self, files: Sequence[str], errors: OnErrors, threads: int, batch_size: int
    ) -> Iterator[RecordBatch]:
        from tlp_tvm.metaschedule.reading.records import iter_batches

        return iter_batches(files, errors=errors, threads=threads)

    def programs(self, text: bytes, threads: int) -> RecordBatch:
        from tlp_tvm.metaschedule.reading.records import programs_of

        return programs_of(text)

    def record(self, task: PlannedTask, program: Any, outcome: Outcome, compiled_s: float) -> str:
        """A line of MetaSchedule's database, whose workload is line `task.workload` of its table."""
        from tlp_tvm.metaschedule.measuring.pools import arguments_of

        costs = [FAILED_COST] if outcome.error else list(outcome.costs)
        arguments = json.dumps(arguments_of(program.schedule.mod))
        return (
            f"[{task.workload}, [{program.trace}, {json.dumps(costs)}, {program.task.target}, {arguments}]]"
        )

    def program_text(self, batch: RecordBatch, i: int) -> str:
        return batch.step_texts(np.array([i]))[0]

    def store_rows(
        self,
        tasks: Mapping[str, Mapping[str, int]],
        targets: Sequence[str],
        records: Mapping[str, Sequence[str]],
        tell: Tell,
    ) -> Iterator[tuple[str, NDArray[np.float32], NDArray[np.int32]]]:
        from tlp_tvm.metaschedule.reading.store_rows import rebuilt_modules, rows_of

        target = self.target(targets[0], here=False)
        for key, module in rebuilt_modules(tasks, target, tell):
            yield key, *rows_of(module, target, records[key])

    def plan(self, networks: Sequence[str], target: Any, tell: Tell, split_for: Any) -> Sequence[PlannedTask]:
        from tlp_tvm.metaschedule.networks.planning import plan_tasks

        return plan_tasks(networks, target, tell)

    def split_for(self, noted: str | None, files: Sequence[Path]) -> Any:
        return None

    def source(self, task: PlannedTask, seed: int, prior: Prior | None = None) -> ProgramSource:
        from tlp_tvm.metaschedule.search.programs import TraceSource

        return TraceSource(task, seed, prior)

    def pool(
        self, how: MeasureSettings, output: IO[Any], check: Callable[[], None], fleet: Fleet | None
    ) -> Pool:
        from tlp_tvm.metaschedule.measuring.pools import TracePool

        if fleet is not None:
            raise CollectionError(
                "`fleet`: expected a collection of ansor, found one of metaschedule, whose programs are "
                "measured on this machine alone; leave it out"
            )
        return TracePool(how, output, check)

    def tracker(self, host: str, port: int) -> Any:
        raise CollectionError("tracker: expected ansor, found metaschedule, which measures here alone")

    def server(self, host: str, port: int, key: str, tracker: tuple[str, int]) -> Any:
        raise CollectionError("server: expected ansor, found metaschedule, which measures here alone")

    @property
    def contenders(self) -> Mapping[str, tuple[int, int]]:
        from tlp_tvm.tuning.tune_settings import MOST_PER_ROUND

        tunes_own, tvms_own = (MOST_PER_ROUND, self.population), (64, 512)
        return dict.fromkeys(("tlp", "tlp-online"), tunes_own) | dict.fromkeys(
            ("xgb", "mlp", "random"), tvms_own
        )

    def measuring(
        self,
        how: MeasureSettings,
        output: IO[Any],
        note: Callable[[float, Any], None],
        check: Callable[[], None],
    ) -> AbstractContextManager[MeasuringPool]:
        from tlp_tvm.metaschedule.search.contenders import NotingPool

        return NotingPool(how, output, note, check)

    def searcher(
        self,
        contender: Contender,
        task: Any,
        seed: int,
        trials: int,
        scorer: Any,
        pool: Any,
        spent: dict[str, float],
    ) -> Callable[[int], Any]:
        from tlp_tvm.metaschedule.search.contenders import search_of

        return search_of(contender, task, seed, trials, scorer, pool, spent)

    def tuner(self, settings: Any, model: Any, observer: Any) -> Any:
        from tlp_tvm.metaschedule.search.tuner import RelaxTuner

        return RelaxTuner(settings, model, observer)

    def load_tuned(self, folder: Path) -> Any:
        from tlp_tvm.metaschedule.networks.library import load_tuned

        return load_tuned(folder)

    def parse_shapes(self, texts: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
        if texts:
            raise NetworkError("`shapes`: expected none, as exported programs have their shapes, found one")
        return {}

    def bench_extract(self, task: str, states: int, fresh: int, seconds: float, tell: Tell) -> Sequence[Any]:
        from tlp_tvm.metaschedule.benching.extract import bench_extract_traces
        from tlp_tvm.metaschedule.benching.sampled import TARGET_KINDS

        return [
            bench_extract_traces(name, kind, count=states, seconds=seconds, progress=tell)
            for name in _workloads(task)
            for kind in TARGET_KINDS
        ]

    def bench_score(
        self, task: str, counts: tuple[int, int], how: Mapping[str, Any], tell: Tell
    ) -> Sequence[Any]:
        from tlp_tvm.metaschedule.benching.sampled import TARGET_KINDS
        from tlp_tvm.metaschedule.benching.score import bench_score_traces

        return [
            bench_score_traces(name, kind, count=count, progress=tell, **how)
            for name in _workloads(task)
            for kind, count in zip(TARGET_KINDS, counts, strict=True)
            if count
        ]

    def bench_breed(
        self, task: str, count: int, gpu: bool, how: Mapping[str, Any], tell: Tell
    ) -> Sequence[Any]:
        from tlp_tvm.metaschedule.benching.breed import bench_breed_traces

        kinds = ("llvm", "cuda") if gpu else ("llvm",)
        return [
            bench_breed_traces(name, kind, count=count, progress=tell, **how)
            for name in _workloads(task)
            for kind in kinds
        ]


def _workloads(task: str) -> list[str]:
    """One operator, or all. Raises TvmNotFoundError, with the cure, where the TVM is not installed."""
    from tlp_tvm.metaschedule.loading.locate import load_tvm
    from tlp_tvm.metaschedule.networks.workloads import WORKLOADS

    load_tvm()
    if task != "all" and task not in WORKLOADS:
        raise NetworkError(f'task: expected one of all, {", ".join(WORKLOADS)}, found "{task}"')
    return list(WORKLOADS) if task == "all" else [task]


FRAMEWORK = _MetaSchedule()
