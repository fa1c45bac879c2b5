"""The part of a tuning that measures: what earlier calls and logs teach, the search, and what is kept."""

from __future__ import annotations

import collections
import dataclasses
import time
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm.adapting.savings import load_adapted, save_adapted
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.scheduler import SearchSettings, measures_per_round, search
from tlp_tvm.ansor.search.similar import similar_programs
from tlp_tvm.errors import TuningError
from tlp_tvm.logs import mend_log
from tlp_tvm.measuring.native_messages import native_messages_to
from tlp_tvm.measuring.pool import MeasuringPool
from tlp_tvm.measuring.stopping import StopOnInterrupt, Stopped
from tlp_tvm.tuning.history import History, best_programs, read_history
from tlp_tvm.tuning.network_plan import NetworkPlan
from tlp_tvm.tuning.run_folder import RunFolder
from tlp_tvm.tuning.tune_observer import TuneObserver
from tlp_tvm.tuning.tune_progress import Progress
from tlp_tvm.tuning.tune_settings import TuneSettings
from tlp_tvm.tuning.warm_start import gather, sources_of

SAVE_EVERY_S = 10.0
"""What was learned is saved at the end of a round, but not more often than this."""


class TuneSearch:
    """One search, once.

    Attributes:
        seconds: spent on "measure" and "search".
        failures: reason to how many programs failed for it.
    """

    def __init__(
        self,
        settings: TuneSettings,
        plan: NetworkPlan,
        cost_model: TLPCostModel,
        folder: RunFolder,
        observer: TuneObserver,
    ) -> None:
        """Prepare nothing yet.

        Args:
            settings: of the tuning.
            plan: tasks to search.
            cost_model: of TVM; learns if it is online.
            folder: of the run.
            observer: is told.
        """
        self.settings = settings
        self.plan = plan
        self.cost_model = cost_model
        self.folder = folder
        self.observer = observer
        self.seconds = {"measure": 0.0, "search": 0.0}
        self.failures: collections.Counter[str] = collections.Counter()
        self._saved = time.monotonic()

    def run(self) -> int:
        """Measure what is left to measure.

        Returns:
            How many programs the log had before.

        Raises:
            Stopped: it was asked to.
            TuningError: a source of a warm start is missing.
            RecordError: a log is damaged.
        """
        settings, folder, plan = self.settings, self.folder, self.plan
        mend_log(folder.log)
        before = read_history(folder.log, plan.keys)
        self.observer.planned(len(plan.tasks), settings.trials, len(before))
        if len(before) >= settings.trials:
            return len(before)
        per_round = settings.measures_per_round or measures_per_round(settings.trials, len(plan.tasks))
        warm = self._warm_start()
        if settings.online:
            self._learn()
        starts = self._starts(before, per_round)
        known = best_programs([folder.log, folder.warm], plan.keys)
        best = [known.get(key, (np.inf, ""))[0] for key in plan.keys]
        progress = Progress(
            folder.log, plan.keys, plan.weights, len(before), best, self.failures, self.observer
        )
        how = dataclasses.replace(settings.measure, threads=plan.threads)
        stop = StopOnInterrupt()
        began = time.time()
        try:
            with (
                folder.tvm_log.open("ab") as output,
                native_messages_to(output) if settings.hide_messages else nullcontext(),
                stop,
                MeasuringPool(how, output, progress, stop.check) as pool,
            ):
                pool.best.update({key: latency for key, (latency, _) in known.items()})
                search(
                    plan.tasks,
                    plan.weights,
                    self.cost_model,
                    folder.log,
                    before,
                    SearchSettings(
                        settings.trials,
                        per_round,
                        settings.population,
                        settings.seed,
                        diverse=settings.choose == "diverse",
                        headroom=settings.scheduler == "headroom",
                        patience=settings.patience,
                    ),
                    stop=stop,
                    on_round=lambda i: self.observer.round(str(plan.tasks[i].desc)),
                    after_round=self._save,
                    warm=warm,
                    starts=starts,
                )
        except Exception as error:
            if stop.requested or isinstance(self.cost_model.error, KeyboardInterrupt):
                raise Stopped(
                    f"stopped after {progress.trials} of {settings.trials} programs; {folder.log} holds "
                    "them, and the same command resumes from there"
                ) from error
            # Older TVMs turn an error inside a callback into one of their own.
            raise (self.cost_model.error or error) from None
        self._save(at_once=True)
        self.seconds["measure"] += pool.seconds
        self.seconds["search"] += time.time() - began - pool.seconds
        return len(before)

    def _warm_start(self) -> Path | None:
        """Import the tasks' programs of earlier logs; a resumed run keeps what it had."""
        folder, sources = self.folder, self.settings.warm_start
        if sources:
            self.observer.step("reading earlier logs")
            start = gather(sources, self.plan.tasks, folder.warm)
            self.observer.warmed(start.used, start.passed_over)
            folder.adapted.unlink(missing_ok=True)  # it learned from another start
        return folder.warm if folder.warm.exists() and folder.warm.stat().st_size else None

    def _starts(self, before: History, per_round: int) -> dict[str, list[Any]]:
        """Programs of similar tasks, for the tasks of which nothing was measured yet."""
        settings, plan = self.settings, self.plan
        fresh = [task for task, count in zip(plan.tasks, before.counts, strict=True) if not count]
        if not (settings.similar and settings.warm_start and fresh):
            return {}
        self.observer.step("making programs of similar tasks fit")
        each = max(1, per_round // 2)
        return similar_programs(sources_of(settings.warm_start), fresh, each, settings.seed)

    def _learn(self) -> None:
        """Go on from what an earlier call had learned, and teach the rest of what the logs hold."""
        known: dict[str, int] = {}
        if self.folder.adapted.exists():
            try:
                adapted = load_adapted(self.folder.adapted)
                self.cost_model.adopt(adapted, str(self.plan.tasks[0].target))
                known = {key: measured.learned for key, measured in adapted.tasks.items()}
            except TuningError:  # damaged, or of another layout: the logs teach the same
                self.folder.adapted.unlink()
        for log in (self.folder.warm, self.folder.log):
            if not log.exists() or not log.stat().st_size:
                continue
            batch = read_records(log)
            embeddings = batch.encode(self.cost_model.model.layout)
            for i, task in enumerate(batch.tasks):
                rows = np.flatnonzero(batch.task_ids == i)
                skipped = min(known.get(task.workload_key, 0), len(rows))
                known[task.workload_key] = known.get(task.workload_key, 0) - skipped
                if len(rows := rows[skipped:]):
                    self.cost_model.learn(
                        task.workload_key, task.target, embeddings[rows], batch.latencies[rows]
                    )

    def _save(self, at_once: bool = False) -> None:
        if not self.settings.online or (not at_once and time.monotonic() - self._saved < SAVE_EVERY_S):
            return
        save_adapted(self.folder.adapted, self.cost_model.adapted())
        self._saved = time.monotonic()


def most_common(failures: collections.Counter[str]) -> str:
    """Why programs failed, as a clause.

    Args:
        failures: reason to how many programs failed for it.
    """
    reasons: Sequence[tuple[str, int]] = failures.most_common(1)
    return f"most often a program {reasons[0][0]}" if reasons else "start anew in another --out"
