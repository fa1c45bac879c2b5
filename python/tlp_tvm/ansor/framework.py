"""Ansor, as everything else sees it (`framework.Framework`). Light: a method imports what it needs."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.program_source import Prior, ProgramSource
from tlp_tvm.errors import TvmNotFoundError
from tlp_tvm.framework import Contender, OnErrors, Pool, Tell
from tlp_tvm.machine.checks import Check
from tlp_tvm.measuring.child import COLD, Outcome
from tlp_tvm.measuring.code_kinds import FOLDED
from tlp_tvm.measuring.fleet import Fleet
from tlp_tvm.measuring.pool import FAILED_COST, MeasureSettings, MeasuringPool
from tlp_tvm.planned_task import PlannedTask
from tlp_tvm.record_batch import RecordBatch


class _Ansor:
    """Stateless; the docstrings are those of `Framework`."""

    name = "ansor"
    title = "Ansor, the auto-scheduler of TVM 0.8 to 0.19"
    population = 512
    choice_population = 2560
    default_model = "x86"
    log = "log.json"
    layouts = ("paper-cpu", "ansor")
    caches = COLD
    exported = ".pt"

    def is_here(self) -> bool:
        from tlp_tvm.ansor.loading.candidates import find_tvm

        try:
            find_tvm()
        except TvmNotFoundError:
            return False
        return True

    def checks(self) -> list[Check]:
        from tlp_tvm.ansor.loading.diagnosis import diagnose

        return diagnose()

    def code(self) -> str:
        from tlp_tvm.ansor.compiling.newer_llvm import newer_llvm
        from tlp_tvm.ansor.loading.locate import load_tvm

        return newer_llvm(load_tvm()) or FOLDED

    def tvm_version(self) -> str:
        from tlp_tvm.ansor.loading.locate import tvm_info

        return tvm_info().version

    def target(self, text: str, *, here: bool) -> Any:
        from tlp_tvm.ansor.loading.targets import target_of

        return target_of(text, here=here)

    def cores(self, target: Any) -> int:
        from tlp_tvm.ansor.loading.targets import cores_of

        return cores_of(target)

    def flags_of(self, target: Any) -> str:
        return str(target)

    def platform_name(self, target: Any) -> str:
        """For example "llvm-core-avx2-2c"."""
        words = [
            str(target.kind.name),
            *(str(target.attrs[name]) for name in ("mcpu", "arch") if name in target.attrs),
        ]
        if target.kind.name == "llvm":
            words.append(f"{self.cores(target)}c")
        return re.sub(r"[^\w.]+", "-", "-".join(words))

    def wrote(self, begin: bytes) -> bool:
        return begin.startswith(b"{")

    def read(self, files: Sequence[str], errors: OnErrors, threads: int) -> RecordBatch:
        from tlp_tvm.ansor.reading.records import read_records

        return read_records(files, errors=errors, threads=threads)

    def batches(
        self, files: Sequence[str], errors: OnErrors, threads: int, batch_size: int
    ) -> Iterator[RecordBatch]:
        from tlp_tvm.ansor.reading.records import iter_records

        return iter_records(files, errors=errors, threads=threads, batch_size=batch_size)

    def programs(self, text: bytes, threads: int) -> RecordBatch:
        from tlp_tvm.ansor.reading.records import programs_of

        return programs_of(text, threads)

    def record(self, task: PlannedTask, program: Any, outcome: Outcome, compiled_s: float) -> str:
        from tlp_tvm.ansor.loading.locate import load_tvm

        auto_scheduler = load_tvm().auto_scheduler
        costs = [FAILED_COST] if outcome.error else list(outcome.costs)
        seconds = compiled_s + (outcome.seconds if outcome.costs else 0.0)
        result = auto_scheduler.MeasureResult(costs, outcome.error, "", seconds, int(time.time()))
        return str(auto_scheduler.measure_record.dump_record_to_string(program, result))

    def program_text(self, batch: RecordBatch, i: int) -> str:
        return batch.line(i)

    def store_rows(
        self,
        tasks: Mapping[str, Mapping[str, int]],
        targets: Sequence[str],
        records: Mapping[str, Sequence[str]],
        tell: Tell,
    ) -> Iterator[tuple[str, NDArray[np.float32], NDArray[np.int32]]]:
        from tlp_tvm.ansor.reading.store_rows import rebuilt_tasks, rows_of

        for task in rebuilt_tasks(tasks, targets, tell):
            key = str(task.workload_key)
            yield key, *rows_of(task, records[key])

    def plan(self, networks: Sequence[str], target: Any, tell: Tell, split_for: Any) -> Sequence[PlannedTask]:
        from tlp_tvm.ansor.networks.planning import plan_tasks

        return plan_tasks(networks, target, tell, split_for)

    def split_for(self, noted: str | None, files: Sequence[Path]) -> Any:
        from tlp_tvm.ansor.loading.locate import load_tvm
        from tlp_tvm.ansor.reading.records import iter_records

        if noted is None:
            noted = next(iter_records([str(files[0])])).tasks[0].target
        return load_tvm().target.Target(noted)

    def source(self, task: PlannedTask, seed: int, prior: Prior | None = None) -> ProgramSource:
        from tlp_tvm.ansor.search.programs import StateSource

        return StateSource(task, seed, prior)

    def pool(
        self, how: MeasureSettings, output: IO[Any], check: Callable[[], None], fleet: Fleet | None
    ) -> Pool:
        from tlp_tvm.ansor.measuring.pools import StatePool
        from tlp_tvm.ansor.measuring.remote import RemotePool

        if fleet is None:
            return StatePool(how, output, check=check, for_tvm=False)
        return RemotePool(how, fleet, output, check)

    def tracker(self, host: str, port: int) -> Any:
        from tlp_tvm.ansor.loading.locate import load_tvm

        load_tvm()
        from tvm.rpc.tracker import Tracker

        return Tracker(host, port=port, port_end=port + 1)

    def server(self, host: str, port: int, key: str, tracker: tuple[str, int]) -> Any:
        from tlp_tvm.ansor.loading.locate import load_tvm

        load_tvm()
        from tvm import rpc

        return rpc.Server(host, port, port + 1000, key=key, tracker_addr=tracker)

    @property
    def contenders(self) -> Mapping[str, tuple[int, int]]:
        from tlp_tvm.tuning.tune_settings import MOST_PER_ROUND

        tunes_own, tvms_own = (MOST_PER_ROUND, self.population), (64, 2048)
        ours = dict.fromkeys(("tlp", "tlp-online", "tlp-top"), tunes_own)
        return ours | dict.fromkeys(("xgb", "random"), tvms_own)

    def measuring(
        self,
        how: MeasureSettings,
        output: IO[Any],
        note: Callable[[float, Any], None],
        check: Callable[[], None],
    ) -> AbstractContextManager[MeasuringPool]:
        from tlp_tvm.ansor.search.contenders import noting_pool

        return noting_pool(how, output, note, check)

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
        from tlp_tvm.ansor.search.contenders import search_of

        return search_of(contender, task, seed, scorer, spent)

    def tuner(self, settings: Any, model: Any, observer: Any) -> Any:
        from tlp_tvm.ansor.search.tuner import RelayTuner

        return RelayTuner(settings, model, observer)

    def load_tuned(self, folder: Path) -> Any:
        from tlp_tvm.ansor.networks.library import load_tuned

        return load_tuned(folder)

    def parse_shapes(self, texts: Sequence[str]) -> Mapping[str, tuple[int, ...]]:
        from tlp_tvm.ansor.networks.network_files import parse_shapes

        return parse_shapes(list(texts))

    def bench_extract(self, task: str, states: int, fresh: int, seconds: float, tell: Tell) -> Sequence[Any]:
        from tlp_tvm.ansor.benching.extract import CPU_TARGET, CUDA_TARGET, bench_extract

        return [
            bench_extract(task, target, states=states, fresh=fresh, seconds=seconds, progress=tell)
            for target in (CPU_TARGET, CUDA_TARGET)
        ]

    def bench_score(
        self, task: str, counts: tuple[int, int], how: Mapping[str, Any], tell: Tell
    ) -> Sequence[Any]:
        from tlp_tvm.ansor.benching.score import CPU_TARGET, CUDA_TARGET, bench_score

        return [
            bench_score(task, target, count=count, progress=tell, **how)
            for target, count in zip((CPU_TARGET, CUDA_TARGET), counts, strict=True)
            if count
        ]

    def bench_breed(
        self, task: str, count: int, gpu: bool, how: Mapping[str, Any], tell: Tell
    ) -> Sequence[Any]:
        from tlp_tvm.ansor.benching.breed import CPU_TARGET, CUDA_TARGET, bench_breed

        targets = (CPU_TARGET, CUDA_TARGET) if gpu else (CPU_TARGET,)
        return [bench_breed(task, target, count=count, progress=tell, **how) for target in targets]


FRAMEWORK = _Ansor()
