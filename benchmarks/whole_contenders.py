"""How `whole_searches.py` has a network's tasks searched, and by which cost models."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch
from own_command import MAIN, ROOT

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.reading.store_rows import rows_of_states
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.scheduler import SearchSettings, search
from tlp_tvm.breeding.rounds import BATCH
from tlp_tvm.cli.parts.common import files_of_networks
from tlp_tvm.evaluation.baselines.baseline_settings import PUBLISHED_EPOCHS, BaselineSettings
from tlp_tvm.evaluation.baselines.operator_kinds import kinds_of, marked
from tlp_tvm.evaluation.baselines.tenset_mlp import StoreMLP, TenSetMLP
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.framework import framework_named
from tlp_tvm.latency import latency_of
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.measuring.stopping import StopOnInterrupt
from tlp_tvm.model.checkpoint import load_model
from tlp_tvm.tuning.history import History
from tlp_tvm.tuning.tune_settings import measures_per_round

load_tvm()
from tvm.auto_scheduler.cost_model.cost_model import PythonBasedModel  # noqa: E402
from tvm.auto_scheduler.task_scheduler import TaskSchedulerCallback  # noqa: E402

PER_ROUND, POPULATION = 64, 2048
"""TVM's own."""

CONTENDERS = {
    "xgb": "TVM's XGBModel, which learns from nothing but the search",
    "tenset-mlp": "TenSet's MLP on TVM's per-store features, trained on as its search measures",
    "tlp": "TLP as published, trained on this platform's programs",
    "mtl-tlp": "MTL-TLP as published, trained on those of all platforms",
    "ours": "the search of `tlp-tvm tune`, with its shipped model",
}
OURS = "x86"

Begin = Callable[[], None]
"""Called before each round."""


def prepare_models(dataset: Path, networks: Sequence[Path], platform: str, folder: Path) -> None:
    """Train those of `CONTENDERS` that are to be trained, where they are not there yet."""
    for name, heads in (("tlp", ["--platform", platform]), ("mtl-tlp", [])):
        if not (folder / name / "config.json").exists():
            options = ["--faithful", "--layout", "paper-cpu", "--loss", "lambdarank", "--members", "1"]
            options += ["--epochs", str(PUBLISHED_EPOCHS), *heads, "--out", str(folder / name)]
            subprocess.run(
                [sys.executable, "-c", MAIN, "train", str(dataset), *options], cwd=ROOT, check=True
            )
    if not (folder / "tenset-mlp.pt").exists():
        trees = load_model(OURS).trees
        assert trees is not None
        if platform not in trees.platforms:
            raise SystemExit(f"expected one of {', '.join(trees.platforms)} to be at hand, found {platform}")
        # Those of the trees, whose per-store features `make pretrained` has left in the cache.
        corpus = Corpus(dataset, FeatureLayout.preset("ansor"), platforms=trees.platforms)
        trained = TenSetMLP(BaselineSettings(network_files=files_of_networks(networks)))
        trained.fit(corpus, 0, print)
        network = trained.networks[trees.platforms.index(platform)]
        torch.save(network.state_dict(), folder / "tenset-mlp.pt")


class StoreModel(PythonBasedModel):  # type: ignore[misc]
    """TenSet's MLP as TVM asks its cost models."""

    def __init__(self, weights: Path) -> None:
        super().__init__()
        self._trained = StoreMLP()
        self._trained.load_state_dict(torch.load(weights, weights_only=True))
        self._taught: dict[str, StoreMLP] = {}
        self._known: dict[str, list[tuple[Any, float]]] = {}

    def predict(self, task: Any, states: Any) -> Any:
        """Scores; those that cannot be lowered are not bred from."""
        model = self._taught.get(str(task.workload_key), self._trained)
        return model.scores(*_rows(task, states)).astype(np.float32)

    def update(self, inputs: Sequence[Any], results: Sequence[Any]) -> None:
        """Train on, from what it was, with all that was measured of a task."""
        if len(inputs) == 0:
            return
        task = inputs[0].task
        known = self._known.setdefault(str(task.workload_key), [])
        known += [(each.state, latency_of(result)) for each, result in zip(inputs, results, strict=True)]
        rows, counts = _rows(task, [state for state, _ in known])
        latencies = np.array([latency for _, latency in known])
        if np.isfinite(latencies).any():
            self._taught[str(task.workload_key)] = self._trained.taught(rows, counts, latencies)


def _rows(task: Any, states: Any) -> tuple[Any, Any]:
    rows, counts = rows_of_states(task, states)
    return marked(rows, kinds_of(str(task.workload_key), str(task.desc))), counts


class _Rounds(TaskSchedulerCallback):  # type: ignore[misc]
    def __init__(self, begin: Begin) -> None:
        self._begin = begin

    def pre_tune(self, task_scheduler: Any, task_id: int) -> None:
        """TVM's scheduler has chosen a task."""
        self._begin()


def search_by(
    name: str,
    tasks: Sequence[Any],
    weights: Sequence[int],
    trials: int,
    seed: int,
    models: Path,
    platform: str,
    begin: Begin,
) -> None:
    """Search a network's tasks; the caller has opened the pool that measures.

    Args:
        name: of `CONTENDERS`.
        tasks: `auto_scheduler.SearchTask`s.
        weights: how often each appears.
        trials: programs to measure.
        seed: of the search.
        models: folder of `prepare_models`.
        platform: this machine's.
        begin: called before each round.
    """
    if name == "ours":
        rounds, population = measures_per_round(trials, len(tasks)), framework_named("ansor").population
        how = SearchSettings(trials, rounds, population, seed, diverse=True)
        empty = History(np.empty(0, np.int64), np.empty(0), len(tasks))
        model, stop = TLPCostModel(load_model(OURS), platform, online=True), StopOnInterrupt()
        search(tasks, weights, model, Path(), empty, how, stop=stop, on_round=lambda _: begin())
        return
    auto_scheduler = load_tvm().auto_scheduler
    per_round = min(PER_ROUND, trials // len(tasks))
    if name == "xgb":
        model = auto_scheduler.XGBModel(num_warmup_sample=per_round, seed=seed, verbose_eval=0)
    elif name == "tenset-mlp":
        model = StoreModel(models / "tenset-mlp.pt")
    else:
        model = TLPCostModel(load_model(str(models / name)), platform, online=False)
    params = {"evolutionary_search_population": POPULATION}
    policies = [
        auto_scheduler.SketchPolicy(task, model, params=params, seed=seed * 1009 + i + 1, verbose=0)
        for i, task in enumerate(tasks)
    ]
    options = auto_scheduler.TuningOptions(
        num_measure_trials=trials,
        num_measures_per_round=PER_ROUND,
        builder=auto_scheduler.LocalBuilder(n_parallel=BATCH // 2),  # TVM measures twice as many at a time
        runner=auto_scheduler.LocalRunner(),
        verbose=0,
    )
    scheduler = auto_scheduler.TaskScheduler(tasks, list(weights), callbacks=[_Rounds(begin)])
    scheduler.tune(options, search_policy=policies)
