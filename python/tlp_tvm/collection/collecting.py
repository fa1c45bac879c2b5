"""Collecting: while one batch compiles, the next is chosen; then the batch is timed undisturbed."""

from __future__ import annotations

import collections
import dataclasses
import platform as machine
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tlp_tvm._core import __version__
from tlp_tvm.adapting.program_source import Prior, Program, ProgramSource, prior_of
from tlp_tvm.collection.collect_observer import CollectObserver
from tlp_tvm.collection.collect_settings import CollectResult, CollectSettings
from tlp_tvm.collection.collecting_model import asked_model, choice_of, model_name
from tlp_tvm.collection.folder import CollectionFolder, code_of_folder, split_target
from tlp_tvm.errors import CollectionError
from tlp_tvm.framework import Pool, framework_named
from tlp_tvm.latency import latency_of_costs
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.machine.other_work import OtherWork
from tlp_tvm.measuring.child import Outcome, realtime_allowed
from tlp_tvm.measuring.code_kinds import by_tvm
from tlp_tvm.measuring.native_messages import native_messages_to
from tlp_tvm.measuring.pool import MeasureSettings, reason_of
from tlp_tvm.measuring.stopping import StopOnInterrupt, Stopped
from tlp_tvm.planned_task import PlannedTask
from tlp_tvm.records.source import find_source

HOPELESS = 16
"""Failures in a row, after which no more programs of a task are tried."""

_ROUND = 16
"""Programs of one task in a batch; all tasks have some before one has many."""

_POLL_S = 1.0
"""Between looks at what other processes do."""

Built = list[tuple[int, Outcome]]


def collect(settings: CollectSettings, observer: CollectObserver | None = None) -> CollectResult:
    """Measure programs of networks, or resume a stopped collection.

    Args:
        settings: what to collect and how.
        observer: receives the progress.

    Returns:
        What was done; the folder `settings.out` holds the records.

    Raises:
        CollectionError: it cannot start.
        ModelFileError: the model that is to lead the evolution cannot be read.
        NetworkError: no such network.
        TuningError: no such target.
        RecordError: records of the folder are damaged.
        OSError: a record could not be written; the folder holds all earlier ones.
    """
    return _Collection(settings, observer or CollectObserver()).run()


class _Collection:
    """One call of `collect`."""

    def __init__(self, settings: CollectSettings, observer: CollectObserver) -> None:
        self.settings = settings
        self.observer = observer
        self.framework = framework_named(settings.framework)
        self.seconds: dict[str, float] = collections.defaultdict(float)
        self.failures: collections.Counter[str] = collections.Counter()
        self.measured = 0
        self.done = 0
        self.ends = float("inf") if settings.budget_s is None else time.monotonic() + settings.budget_s
        self.stop = StopOnInterrupt()
        self.others = OtherWork()

    def run(self) -> CollectResult:
        settings = self.settings
        target = self.framework.target(settings.target, here=settings.fleet is None)
        platform = settings.platform or self._platform(target)
        how, model = self._how(target, platform), asked_model(settings, self.framework.name)
        flags = self.framework.flags_of(target)
        prior = prior_of(model, flags) if model is not None and not settings.labels else None
        choose = choice_of(model, settings) if model is not None and settings.labels else None
        with CollectionFolder(settings.out, platform) as folder:
            with self._spent("plan"):
                others = self._programs_from()
                split_for = self._split_for(others)
                tasks = self.framework.plan(settings.networks, target, self.observer.step, split_for)
                for task in tasks:
                    task.held_out = settings.held_out
                folder.begin(self._description(target, how, split_for or target), tasks)
                sources = self._sources(tasks, folder, others, prior)
                if choose is not None:
                    choose(sources)
            self.known = sum(len(source.known) for source in sources)
            self.observer.planned(len(tasks), self._wanted(sources), self.known)
            finished = self._measure(sources, folder, how)
        return CollectResult(
            platform=platform,
            tasks=len(tasks),
            programs=self.known + self.measured,
            measured=self.measured,
            failures=dict(self.failures.most_common()),
            seconds=dict(self.seconds),
            finished=finished,
        )

    def _platform(self, target: Any) -> str:
        """By the processor, where it is this one; a folder that is there keeps its name by the target."""
        named = self.framework.platform_name(target)
        if self.settings.fleet is not None or (self.settings.out / named).is_dir():
            return named
        return this_cpu().platform(str(target)) or named

    def _how(self, target: Any, platform: str) -> MeasureSettings:
        settings, best = self.settings, self.framework.code()
        if settings.fleet is not None:
            best = by_tvm(best)  # devices link what TVM exports
        code = code_of_folder(settings.out, platform, best)
        how = settings.measure.at_best(self.framework.caches, code)
        if how.timing.realtime and not realtime_allowed():
            raise CollectionError(
                "`realtime`: expected the right to a real-time priority, found none; run as root or with "
                "CAP_SYS_NICE, or leave out the option"
            )
        return dataclasses.replace(how, threads=how.threads or self.framework.cores(target))

    def _sources(
        self,
        tasks: Sequence[PlannedTask],
        folder: CollectionFolder,
        others: dict[str, list[Path]] | None,
        prior: Prior | None,
    ) -> list[ProgramSource]:
        sources = []
        for task in tasks:
            source = self.framework.source(task, self.settings.seed, prior)
            source.remember(folder.files(task))
            if others is not None:
                source.expect(others.get(task.id, []))
            sources.append(source)
        return sources

    def _programs_from(self) -> dict[str, list[Path]] | None:
        """Record files of another platform by the id of their task."""
        folder = self.settings.programs_from
        if folder is None:
            return None
        files = [Path(file) for group in find_source(folder).groups for file in group.files]
        by_task: dict[str, list[Path]] = collections.defaultdict(list)
        for file in files:
            by_task[file.name.partition(".")[0].rpartition("__")[2]].append(file)
        return by_task

    def _split_for(self, others: dict[str, list[Path]] | None) -> Any:
        """The target that the networks of another platform's programs were split for."""
        if not others or self.settings.programs_from is None:
            return None
        place = self.settings.programs_from
        noted = split_target(place) or split_target(place.parent, place.name)
        return self.framework.split_for(noted, [file for files in others.values() for file in files])

    def _wanted(self, sources: Sequence[ProgramSource]) -> int:
        if self.settings.programs_from is None:
            return sum(max(self.settings.programs, len(source.known)) for source in sources)
        return sum(len(source.known | {p.hash for p in source.waiting or ()}) for source in sources)

    def _measure(
        self, sources: Sequence[ProgramSource], folder: CollectionFolder, how: MeasureSettings
    ) -> bool:
        with ExitStack() as stack:
            output = stack.enter_context(folder.log.open("ab"))
            stack.enter_context(native_messages_to(output))
            stack.enter_context(self.stop)
            pool = self.framework.pool(how, output, self._check, self.settings.fleet)
            stack.enter_context(pool)
            thread = stack.enter_context(ThreadPoolExecutor(1))
            try:
                self._measure_batches(sources, folder, pool, thread)
            except Stopped:
                return False
        return True

    def _measure_batches(
        self,
        sources: Sequence[ProgramSource],
        folder: CollectionFolder,
        pool: Pool,
        thread: ThreadPoolExecutor,
    ) -> None:
        batch: list[Program] = []
        building: Future[Built] | None = None
        while True:
            coming = self._next_batch(sources)  # while `batch` compiles
            if building is not None:
                with self._spent("build"):
                    built = building.result()
                with self._spent("wait"):
                    self._wait_for_others()
                with self._spent("run"):
                    self._time(batch, built, sources, folder, pool)
            if not coming:
                coming = self._next_batch(sources)
            if not coming:
                return
            batch = coming
            building = thread.submit(pool.build, [program.input for program in batch])

    def _next_batch(self, sources: Sequence[ProgramSource]) -> list[Program]:
        """Programs of the tasks that have the fewest; of these, of those with the most operations."""
        batch: list[Program] = []
        for source in sorted(sources, key=lambda source: (len(source.known), -source.task.flop)):
            self._check()
            room = min(self.settings.batch - len(batch), _ROUND, self._lacks(source))
            random = round(self.settings.programs * (1 - self.settings.evolved)) - len(source.known)
            if room > 0:
                batch += source.take(min(room, random) if random > 0 else room, evolved=random <= 0)
            if len(batch) >= self.settings.batch:
                break
        return batch

    def _lacks(self, source: ProgramSource) -> int:
        if source.exhausted or source.failures_in_a_row >= HOPELESS:
            return 0
        if source.waiting is not None:
            return sum(program.hash not in source.known for program in source.waiting)
        return max(0, self.settings.programs - len(source.known))

    def _time(
        self,
        batch: Sequence[Program],
        built: Built,
        sources: Sequence[ProgramSource],
        folder: CollectionFolder,
        pool: Pool,
    ) -> None:
        results: dict[int, list[tuple[Program, float]]] = collections.defaultdict(list)
        done = sum(self._lacks(source) == 0 for source in sources)  # a batch counts as done with its choice
        for i, outcome in pool.run_all(built, [program.input for program in batch]):
            program = batch[i]
            task, compiled_s = program.of.task, built[i][1].seconds
            folder.append(task, self.framework.record(task, program.input, outcome, compiled_s))
            self.measured += 1
            if reason := reason_of(outcome):
                self.failures[reason] += 1
            latency = float("inf") if outcome.error else latency_of_costs(outcome.costs)
            results[id(program.of)].append((program, latency))
            self.observer.measured(self.known + self.measured, done, self.failures)
        for measured in results.values():
            measured[0][0].of.learn(
                [program for program, _ in measured], [latency for _, latency in measured]
            )

    def _wait_for_others(self) -> None:
        """While they keep the machine busy; what they did since the last batch counts."""
        busy = self.settings.busy if self.settings.fleet is None else 0.0
        while busy and (cores := self.others.cores()) > busy:
            self.observer.waits(cores)
            time.sleep(_POLL_S)
            self._check()

    def _check(self) -> None:
        self.stop.check()
        if time.monotonic() > self.ends:
            raise Stopped("the time is up")

    def _description(self, target: Any, how: MeasureSettings, split_for: Any) -> dict[str, Any]:
        settings = self.settings
        return {
            "framework": self.framework.name,
            "target": str(target),
            "split_for": str(split_for),
            "threads": how.threads,
            "networks": list(settings.networks),
            "programs": settings.programs,
            "evolved": settings.evolved,
            "model": model_name(settings, self.framework.name) or None,
            "labels": settings.labels or None,
            "seed": settings.seed,
            "measure": dataclasses.asdict(how),
            "caches": how.timing.caches,
            "code": how.code,
            "cpu": this_cpu().model if settings.fleet is None else None,
            "versions": {
                "tlp_tvm": __version__,
                "tvm": self.framework.tvm_version(),
                "python": machine.python_version(),
            },
        }

    @contextmanager
    def _spent(self, name: str) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.seconds[name] += time.monotonic() - began
