"""MetaSchedule's part of a tuning (`tuning.tuner_protocol.Tuner`): Relax networks.

The run's folder is a working folder of MetaSchedule too: its database is all that says what was measured.
"""

from __future__ import annotations

import dataclasses
import shutil
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import IO, Any

from tlp_tvm.adapting.program_source import ModelPrior
from tlp_tvm.adapting.search_scores import Scorer, load_scorer, model_name, model_source
from tlp_tvm.errors import TuningError
from tlp_tvm.measuring.stopping import StopOnInterrupt
from tlp_tvm.metaschedule.graph.fusing import fused
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.loops import share_loops_of
from tlp_tvm.metaschedule.loading.targets import cores_of, flags_of, target_of
from tlp_tvm.metaschedule.measuring.pools import TracePool
from tlp_tvm.metaschedule.networks import end_to_end
from tlp_tvm.metaschedule.networks.builtin import canonical_name, is_file, network_from, tasks_of
from tlp_tvm.metaschedule.networks.library import save_tuned
from tlp_tvm.metaschedule.networks.number_types import refuse_unlearned
from tlp_tvm.metaschedule.networks.operator_profile import functions_of, profile
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.metaschedule.reading.records import RECORDS
from tlp_tvm.metaschedule.search.tvms_search import TvmsSearch, tvms_model
from tlp_tvm.metaschedule.search.zero_shot import add_chosen, choose_programs
from tlp_tvm.model.scoring import platform_or_mean
from tlp_tvm.records.source import WORKLOADS
from tlp_tvm.tuning.history import History, teach
from tlp_tvm.tuning.network.operator_times import OperatorTime, operator_times
from tlp_tvm.tuning.network.same_outputs import check_outputs
from tlp_tvm.tuning.network.turns import EndToEnd
from tlp_tvm.tuning.run_folder import RunFolder
from tlp_tvm.tuning.tune_observer import TuneObserver
from tlp_tvm.tuning.tune_progress import Progress
from tlp_tvm.tuning.tune_settings import TuneSettings

CHOICES = "chosen"
"""Folder, in a run's, of what the model chose without measuring."""

TVMS_MODELS = ("random", "xgb", "mlp")
"""Cost models of MetaSchedule's own, by name."""

_ANSORS = {
    "shapes": {},
    "warm_start": (),
    "similar": False,
}
"""Settings that it does not have -> what they must be."""


class RelaxTuner:
    """One network in Relax; the attributes and methods are those of `tuning.tuner_protocol.Tuner`."""

    builds_after = 1
    relinks = False
    tables = (WORKLOADS,)
    error: BaseException | None = None
    runs_here = True

    graph: dict[str, Any] | None = None

    def __init__(self, settings: TuneSettings, model: str | Scorer, observer: TuneObserver) -> None:
        """Load the network and the model, and refuse what cannot be; nothing is written."""
        _check(settings)
        self._settings = settings
        self._observer = observer
        self._target = target_of(settings.target)
        self.target = flags_of(self._target)
        self.network = canonical_name(settings.network)
        self._labels: dict[str, float] = {}
        self._chosen: dict[str, str] = {}
        self._module, self._parameters = network_from(settings.network)
        share_loops_of(load_tvm())
        from tvm.relax.transform import BindParams

        self._bound = BindParams("main", self._parameters)(self._module)
        self._learns = not (isinstance(model, str) and model in TVMS_MODELS)
        if not self._learns:
            self._cost_model, self.platform = tvms_model(str(model)), ""
            self.model = self.model_source = str(model)
            return
        from tlp_tvm.metaschedule.search.cost_model import TLPCostModel

        scorer = load_scorer(model)
        self.platform = settings.platform or platform_or_mean(scorer, self.target)
        self._cost_model = TLPCostModel(scorer, self.platform, online=settings.online)
        self.model, self.model_source = model_name(scorer), model_source(model)

    @property
    def choice_s(self) -> float:
        return 1.0 if self._learns else 0.0

    @property
    def _threads(self) -> int:
        return self._settings.measure.threads or cores_of(self._target)

    def split(self) -> list[dict[str, Any]]:
        self._tasks = [TraceTask(task) for task in tasks_of(self._bound, self._target)]
        if self._learns:
            refuse_unlearned(self._tasks, self.model_source)
        return [
            {
                "name": task.desc,
                "workload_key": task.workload_key,
                "weight": int(task.task.weight),
                "flops": task.flop,
            }
            for task in self._tasks
        ]

    def build_untuned(self) -> None:
        self._untuned = self._compiled()
        if is_file(self._settings.network):
            inputs = end_to_end.random_inputs(self._bound)
            outputs = end_to_end.run_once(self._untuned, inputs, self._target)
            check_outputs(Path(self._settings.network), inputs, outputs)

    def known(self, folder: RunFolder, history: History) -> list[float]:
        return [float(latency) for latency in history.best]

    def prepare(self, folder: RunFolder, history: History) -> None:
        if self._learns and self._settings.online:
            teach(self._cost_model, [folder.log])

    def pool(self, output: IO[Any], progress: Progress, check: Callable[[], None]) -> TracePool:
        how = dataclasses.replace(self._settings.measure, threads=self._threads)
        return TracePool(how, output, check)

    def search(
        self, folder: RunFolder, history: History, pool: Any, stop: StopOnInterrupt, progress: Progress
    ) -> None:
        database, files = _database(folder.path), [folder.log, folder.path / WORKLOADS]
        if not self._learns:
            left = self._settings.trials - len(history)
            how = TvmsSearch(self._settings, self._target, left, self._observer)
            how.run(self._tasks, self._cost_model, pool, database, files, progress)
            return
        from tlp_tvm.metaschedule.search.network_search import Recorder, search

        search(
            self._tasks,
            self._cost_model,
            Recorder(pool, database, files, progress),
            folder.log,
            history,
            self._settings,
            stop=stop,
            on_round=lambda i: self._observer.round(self._tasks[i].desc),
        )

    def choose(self, folder: RunFolder, chosen_before: bool, stop: StopOnInterrupt) -> None:
        if not self._learns:
            raise TuningError(
                f"`trials` 0: expected a model that knows programs, found {self.model}; choose a shipped one"
            )
        if not chosen_before:
            shutil.rmtree(folder.path / CHOICES, ignore_errors=True)

        def on_task(task: TraceTask) -> None:
            stop.check()
            self._observer.round(task.desc)

        self._chosen = self._choices(self._tasks, folder, on_task)

    def _choices(
        self, tasks: list[TraceTask], folder: RunFolder, on_task: Callable[[TraceTask], None]
    ) -> dict[str, str]:
        return choose_programs(
            tasks,
            ModelPrior(self._cost_model.model, self.platform),
            folder.path / CHOICES,
            seed=self._settings.seed,
            threads=cores_of(self._target),
            on_task=on_task,
        )

    def compiled_again(self, best: Iterable[float]) -> int | None:
        return None

    def take(self, folder: RunFolder, history: History) -> set[str]:
        if not self._settings.trials:
            return set(self._chosen)
        pairs = zip(self._tasks, history.best, strict=True)
        self._labels = {task.workload_key: float(best) for task, best in pairs if best < float("inf")}
        if self._learns and self._labels and self._settings.whole:  # TVM's own schedules are much slower
            left = [task for task in self._tasks if task.workload_key not in self._labels]
            self._chosen = self._choices(left, folder, lambda task: self._observer.round(task.desc))
        return self._labels.keys() | self._chosen.keys()

    def build_tuned(self, folder: RunFolder) -> tuple[Path | None, str]:
        from tvm.s_tir import meta_schedule as ms

        records = ms.database.MemoryDatabase()
        add_chosen(records, self._tasks, self._chosen)
        if self._settings.trials:
            records = ms.database.UnionDatabase(_database(folder.path), records)
        self._tuned = self._compiled(records)
        inputs = end_to_end.random_inputs(self._bound)
        outputs = end_to_end.run_once(self._tuned, inputs, self._target)
        return save_tuned(self._tuned, self._target, folder.path, self.network, inputs, outputs), ""

    def _compiled(self, records: Any = None) -> Any:
        code = self._settings.measure.code
        return end_to_end.compiled(self._module, self._parameters, self._target, records, code)

    def choose_inside(self, folder: RunFolder, turns: int, tries: int) -> tuple[int, set[str]]:
        return 0, set()  # the programs of the lowest labels stay

    def best_file(self, folder: RunFolder) -> Path:
        return folder.log if self._settings.trials else folder.path / CHOICES

    def operators(self, folder: RunFolder) -> list[OperatorTime]:
        inputs = end_to_end.random_inputs(self._bound)
        ran = profile(self._tuned, inputs, self._target, self._threads)
        return operator_times(ran, functions_of(fused(self._bound, self._target)), self._labels)

    def keep_untuned(self, folder: RunFolder) -> Path:
        inputs = end_to_end.random_inputs(self._bound)
        outputs = end_to_end.run_once(self._untuned, inputs, self._target)
        return save_tuned(self._untuned, self._target, folder.path, self.network, inputs, outputs)

    def compare(self, turns: int) -> EndToEnd | None:
        inputs = end_to_end.random_inputs(self._bound)
        return end_to_end.compare(self._untuned, self._tuned, inputs, self._target, turns, self._threads)


def _check(settings: TuneSettings) -> None:
    """Refuse what it lacks."""
    given = [f"`{name}`" for name, usual in _ANSORS.items() if getattr(settings, name) != usual]
    given += ["`hopeless`"] if settings.measure.hopeless else []
    if given:
        raise TuningError(
            f"{given[0]}: expected options that metaschedule has, found one of ansor's; leave it out"
        )


def _database(out: Path) -> Any:
    load_tvm()
    from tvm.s_tir import meta_schedule as ms

    return ms.database.JSONDatabase(str(out / WORKLOADS), str(out / RECORDS))
