"""Ansor's part of a tuning (`tuning.tuner_protocol.Tuner`): Relay networks, searched natively."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import IO, Any

import numpy as np

from tlp_tvm.adapting.search_scores import Scorer, load_scorer, model_name, model_source
from tlp_tvm.ansor.compiling.kept_code import CodeOf, KeptCode
from tlp_tvm.ansor.compiling.newer_llvm import is_newer
from tlp_tvm.ansor.compiling.newer_network import NewerNetwork
from tlp_tvm.ansor.compiling.relinking import Relinker
from tlp_tvm.ansor.graph.pipeline import left_out_of, prepare
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.loops import share_loops_of
from tlp_tvm.ansor.loading.targets import cores_of, hardware_of, quiet_builds, runs_here, target_of
from tlp_tvm.ansor.measuring.pools import StatePool
from tlp_tvm.ansor.networks.builtin import canonical_name, network_from
from tlp_tvm.ansor.networks.end_to_end import (
    build_tuned,
    build_untuned,
    build_variant,
    compare,
    random_inputs,
    run_once,
)
from tlp_tvm.ansor.networks.inside import BUILT, CANDIDATES, MOST_BYTES, Built, choose_inside
from tlp_tvm.ansor.networks.layout_rewrite import keep_layout_where_needed
from tlp_tvm.ansor.networks.library import save_tuned
from tlp_tvm.ansor.networks.network_files import is_network_file
from tlp_tvm.ansor.networks.profile import profile
from tlp_tvm.ansor.networks.tasks import extract_tasks
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.scheduler import SearchSettings, search
from tlp_tvm.ansor.search.similar import similar_programs
from tlp_tvm.ansor.search.zero_shot import MADE_UP_COST, choose_programs
from tlp_tvm.errors import TuningError, last_line_of
from tlp_tvm.files import write_whole
from tlp_tvm.latency import latency_of
from tlp_tvm.measuring.code_kinds import by_tvm
from tlp_tvm.measuring.stopping import StopOnInterrupt
from tlp_tvm.model.scoring import platform_or_mean
from tlp_tvm.tuning.history import History, best_programs, fastest_programs, teach
from tlp_tvm.tuning.network.operator_times import OperatorTime, operator_times
from tlp_tvm.tuning.network.same_outputs import check_outputs
from tlp_tvm.tuning.network.turns import EndToEnd
from tlp_tvm.tuning.run_folder import RunFolder, read_run
from tlp_tvm.tuning.tune_observer import TuneObserver
from tlp_tvm.tuning.tune_progress import Progress
from tlp_tvm.tuning.tune_settings import TuneSettings, measures_per_round
from tlp_tvm.tuning.warm_start import gather, sources_of

_HEAVY = ("conv2d", "dense", "matmul")
"""In the names of what TVM has no good schedule of, with channels last, or with two axes: of 39 convolutions
of MobileNet and ResNet-34 its own took 0.85 to 45 times as long as programs that were chosen without
measuring; of the products of ten networks one kept it, of 2 us."""


class RelayTuner:
    """One network in Relay; the attributes and methods are those of `tuning.tuner_protocol.Tuner`."""

    choice_s = 0.5
    tables: tuple[str, ...] = ()

    def __init__(self, settings: TuneSettings, model: str | Scorer, observer: TuneObserver) -> None:
        """Load the network and the model, and refuse what cannot be; nothing is written."""
        self._settings = settings
        self._observer = observer
        self._target = target_of(settings.target, here=settings.trials > 0)
        share_loops_of(load_tvm())
        self.network = canonical_name(settings.network)
        self._module, self._parameters, self._inputs = network_from(settings.network, settings.shapes)
        left_out = left_out_of(read_run(settings.out))
        self._prepared = prepare(self._module, self._parameters, self._target, left_out)
        self.graph = self._prepared.to_dict()
        scorer = load_scorer(model)
        head = settings.platform or platform_or_mean(scorer, str(self._target))
        self._cost_model = TLPCostModel(scorer, head, online=settings.online)
        self.model, self.model_source = model_name(scorer), model_source(model)
        self.target = str(self._target)
        self.platform = self._cost_model.platform_for(self.target)
        self.runs_here = runs_here(self._target)
        if settings.warm_start and not settings.trials:
            raise TuningError(
                "`warm_start`: expected programs to measure, found `trials` 0; choose `trials` 1 or more, "
                "or leave it out"
            )
        sources_of(settings.warm_start)
        self._kept_code = KeptCode()
        self._tuned: Any = None
        self._lines: dict[str, str] = {}
        self._unmeasured: dict[str, str] = {}

    @property
    def error(self) -> BaseException | None:
        return self._cost_model.error

    @property
    def _code(self) -> CodeOf:
        """How the network's functions are compiled; the newer LLVM is for this machine alone."""
        code = self._settings.measure.code
        return CodeOf(code if self.runs_here else by_tvm(code), self._kept_code)

    @property
    def _threads(self) -> int:
        return self._settings.measure.threads or cores_of(self._target)

    def split(self) -> list[dict[str, Any]]:
        with quiet_builds(), self._prepared.operators():
            network = (self._prepared.module, self._prepared.parameters)
            extracted, self._weights = extract_tasks(network, self.target, hardware_of(self._target))
            self._tasks, self._kept = keep_layout_where_needed(extracted)
        self._keys = [str(task.workload_key) for task in self._tasks]
        trials, count = self._settings.trials, len(self._tasks)
        if 0 < trials < count:
            raise TuningError(
                f"`trials` {trials}: expected at least one program for each of the {count} "
                f"tasks of {self.network}; choose `trials` {count} or more, better {count * 16}"
            )
        return [
            {
                "name": str(task.desc),
                "workload_key": str(task.workload_key),
                "weight": int(weight),
                "flops": float(task.compute_dag.flop_ct),
            }
            for task, weight in zip(self._tasks, self._weights, strict=True)
        ]

    def build_untuned(self) -> None:
        with quiet_builds():
            self._untuned = build_untuned(self._module, self._parameters, self._target)
        if is_network_file(self._settings.network):
            values = random_inputs(self._module, self._parameters)
            outputs = run_once(self._untuned, values, self._target)
            check_outputs(Path(self._settings.network), values, outputs)

    def known(self, folder: RunFolder, history: History) -> list[float]:
        found = best_programs([folder.log, folder.warm], self._keys) if self._settings.trials else {}
        return [found.get(key, (np.inf, ""))[0] for key in self._keys]

    def prepare(self, folder: RunFolder, history: History) -> None:
        settings = self._settings
        trials, count = settings.trials, len(self._tasks)
        self._per_round = settings.measures_per_round or measures_per_round(trials, count)
        if settings.warm_start:
            self._observer.step("reading earlier logs")
            wanted = {(str(task.workload_key), str(task.target)) for task in self._tasks}
            target = load_tvm().target.Target
            sources = settings.warm_start
            start = gather(sources, wanted, lambda text: str(target(text)), folder.warm)
            self._observer.warmed(start.used, start.passed_over)
        if settings.online:
            teach(self._cost_model, [folder.warm, folder.log])
        self._starts = self._similar(history)

    def _similar(self, history: History) -> dict[str, list[Any]]:
        """Programs of similar tasks, for the tasks of which nothing was measured yet."""
        settings = self._settings
        fresh = [task for task, count in zip(self._tasks, history.counts, strict=True) if not count]
        if not (settings.similar and settings.warm_start and fresh):
            return {}
        self._observer.step("making programs of similar tasks fit")
        each = max(1, self._per_round // 2)
        return similar_programs(sources_of(settings.warm_start), fresh, each, settings.seed)

    def pool(self, output: IO[Any], progress: Progress, check: Callable[[], None]) -> StatePool:
        dump = load_tvm().auto_scheduler.measure_record.dump_record_to_string
        place = {key: i for i, key in enumerate(self._keys)}

        def on_result(program: Any, result: Any, reason: str) -> None:
            progress.write(str(dump(program, result)))
            if not reason:
                progress.ran(place[str(program.task.workload_key)], latency_of(result))
            progress.measured(reason)

        how = dataclasses.replace(self._settings.measure, threads=self._threads)
        return StatePool(how, output, on_result, check, kept=self._kept_code)

    def search(
        self, folder: RunFolder, history: History, pool: Any, stop: StopOnInterrupt, progress: Progress
    ) -> None:
        settings = self._settings
        known = zip(self._keys, self.known(folder, history), strict=True)
        pool.best.update({key: latency for key, latency in known if np.isfinite(latency)})
        search(
            self._tasks,
            self._weights,
            self._cost_model,
            folder.log,
            history,
            SearchSettings(
                settings.trials,
                self._per_round,
                settings.population,
                settings.seed,
                diverse=settings.choose == "diverse",
                by_time=settings.minutes > 0,
            ),
            stop=stop,
            on_round=lambda i: self._observer.round(str(self._tasks[i].desc)),
            warm=folder.warm if folder.warm.exists() and folder.warm.stat().st_size else None,
            starts=self._starts,
        )

    def choose(self, folder: RunFolder, chosen_before: bool, stop: StopOnInterrupt) -> None:
        found = best_programs([folder.best], self._keys) if chosen_before else {}

        def on_task(task: Any) -> None:
            stop.check()
            self._observer.round(str(task.desc))

        self._lines = choose_programs(
            self._tasks,
            self._cost_model,
            folder.best,
            {key: line for key, (_, line) in found.items()},
            population=self._settings.population,
            seed=self._settings.seed,
            on_task=on_task,
        )

    @property
    def builds_after(self) -> int:
        """The tuned one, those that `choose_inside` tries, and what it chose."""
        return 1 + (CANDIDATES if self.relinks else BUILT) + 1

    @property
    def relinks(self) -> bool:
        return is_newer(self._code.kind)

    def compiled_again(self, best: Iterable[float]) -> int | None:
        if not self.relinks:
            return None
        fastest = map(self._kept_code.fastest, self._keys)
        return sum(not kept <= known < np.inf for kept, known in zip(fastest, best, strict=True))

    def take(self, folder: RunFolder, history: History) -> set[str]:
        if self._settings.trials:
            best = best_programs([folder.log, folder.warm], self._keys)
            self._lines = {key: line for key, (_, line) in best.items()}
            if self._lines and self._settings.whole:  # TVM's own schedules are much slower
                self._unmeasured = self._choices(folder)
        self._note(folder)
        return self._lines.keys() | self._unmeasured.keys()

    def _choices(self, folder: RunFolder) -> dict[str, str]:
        """What the model chooses of the tasks that have no program that was measured."""
        return choose_programs(
            [task for task, key in zip(self._tasks, self._keys, strict=True) if key not in self._lines],
            self._cost_model,
            folder.best,
            {},
            population=self._settings.population,
            seed=self._settings.seed,
            on_task=lambda task: self._observer.round(str(task.desc)),
            by_trees=False,
        )

    def _note(self, folder: RunFolder) -> None:
        """Write the programs taken."""
        if lines := {**self._unmeasured, **self._lines}:
            write_whole(folder.best, "".join(lines.values()))

    def build_tuned(self, folder: RunFolder) -> tuple[Path | None, str]:
        prepared = self._prepared
        try:
            with quiet_builds(), prepared.operators():
                keys = set(self._keys)
                self._tuned, self._functions = build_tuned(
                    prepared, self._target, folder.best, self._kept, keys, self._code
                )
                return self._save(self._tuned, prepared.module, folder), ""
        except (TuningError, RuntimeError, OSError) as failure:
            if self.runs_here and self._tuned is None:  # of a target elsewhere the records are worth having
                raise
            return None, last_line_of(failure)

    def choose_inside(self, folder: RunFolder, turns: int, tries: int) -> tuple[int, set[str]]:
        size = sum(int(np.prod(each.shape)) * 4 for each in self._prepared.parameters.values())
        most = min(CANDIDATES, int(MOST_BYTES // max(1, size)), tries)
        if self._tuned is None or most < 1:
            return 0, set()
        programs = fastest_programs([folder.log, folder.warm], self._keys, most)
        relinker = self._relinker(line for found in programs.values() for _, line in found)
        for key, found in programs.items():
            if relinker is None or not all(relinker.takes(key, line) for _, line in found):
                programs[key] = found[:BUILT]
        values = random_inputs(self._module, self._parameters)
        usual = self._tuned, self._functions
        heavy = {str(each.workload_key) for each in self._tasks if any(op in str(each.desc) for op in _HEAVY)}
        ways = (self._target, self._threads, turns, heavy)

        def build(lines: Mapping[str, str]) -> Built | None:
            """The network with these programs; None where TVM cannot."""
            relinked = relinker.network(lines) if relinker is not None else None
            return self._build(lines) if relinked is None else (relinked, self._functions)

        chosen = choose_inside(usual, programs, build, values, *ways)
        if chosen is None:
            return 0, set()
        (self._tuned, self._functions), lines = chosen
        changed = sum(lines.get(key) != line for key, line in self._lines.items())
        self._lines = lines
        self._note(folder)
        self._save(self._tuned, self._prepared.module, folder)
        return changed, programs.keys() - lines.keys()

    def _relinker(self, lines: Iterable[str]) -> Relinker | None:
        """Puts these programs into the tuned network; None where it is not linked, or lacks code of one."""
        if not isinstance(self._tuned, NewerNetwork) or None in map(self._kept_code.of, lines):
            return None
        return Relinker(self._tuned, self._functions, self._lines, self._kept_code, self._tasks)

    def _build(self, lines: Mapping[str, str]) -> Built | None:
        prepared = self._prepared
        with tempfile.TemporaryDirectory() as folder, quiet_builds(), prepared.operators():
            log = Path(folder) / "chosen.json"
            log.write_text("".join({**self._unmeasured, **lines}.values()))
            return build_variant(prepared, self._target, log, self._kept, self._code)

    def best_file(self, folder: RunFolder) -> Path:
        return folder.best

    def compare(self, turns: int) -> EndToEnd | None:
        if self._tuned is None:
            return None
        values = random_inputs(self._module, self._parameters)
        return compare(self._untuned, self._tuned, values, self._target, turns, self._threads)

    def operators(self, folder: RunFolder) -> list[OperatorTime]:
        if self._tuned is None:
            return []
        values = random_inputs(self._module, self._parameters)
        [ran] = profile([self._tuned], values, self._target, self._threads)
        taken = best_programs([folder.best], self._keys) if self._settings.trials else {}
        labels = {key: latency for key, (latency, _) in taken.items() if latency < MADE_UP_COST}
        return operator_times(ran, self._functions, labels)

    def keep_untuned(self, folder: RunFolder) -> Path:
        return self._save(self._untuned, self._module, folder)

    def _save(self, built: Any, module: Any, folder: RunFolder) -> Path:
        """Write a network that was built from a module as the run's library."""
        names = (folder.path, self.network, self.runs_here)
        return save_tuned(built, module, self._inputs, self._target, *names)
