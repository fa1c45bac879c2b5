"""How well a network, boosted trees, and both rank programs of families that they have not learned from.

Question: what chooses the faster program of a network of a new family: the network on the steps of programs,
trees on TVM's per-store features, or both? And trees that know no program of the processor?
Set-up: cross-validation over the families of the training networks, programs with cold weights of all
processors; in each fold one group of families is ranked by what learned from the others. Nothing of it sees a
test network.
Baseline: random choice.
Takeaway: mean top-1 by processor, over the tasks of all folds with at least eight programs there.

    python benchmarks/training_networks.py build/training
    python benchmarks/family_folds.py

Half an hour the first time, as per-store features need every program lowered; six minutes after that. With
--framework metaschedule, by the Python of .venv-metaschedule, of its programs.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from own_command import MAIN, ROOT
from scipy.stats import spearmanr

from tlp_tvm.adapting.informed import both
from tlp_tvm.evaluation.baselines.baseline_settings import BaselineSettings
from tlp_tvm.evaluation.baselines.pooled_trees import fit_trees, tiles_of
from tlp_tvm.evaluation.baselines.store_features import StoreFeatures, store_features
from tlp_tvm.evaluation.baselines.trained_tlp import TrainedTLP
from tlp_tvm.evaluation.baselines.xgboost_features import XGBoostFeatures
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.rankers import Ranker
from tlp_tvm.framework import framework_named
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metrics.topk import RankedTask, mean_top_k, top_k
from tlp_tvm.model.checkpoint import load_model
from tlp_tvm.model.scoring import platform_or_mean

FOLDS = {
    "text": ["bert", "electra"],
    "residual": ["resnet"],
    "mobile": ["mobilenet", "poolformer"],
    "images": ["vit", "deit", "swin", "mlp"],
}
SOURCES = {
    "ansor": (
        "datasets/cold",
        "datasets/cold-zen3",
        "datasets/cold-zen3-wide",
        "datasets/cold-zen5",
        "datasets/cold-zen5-224",
        "datasets/cold-zen5-chosen",
        "datasets/cold-zen4-224",
        "datasets/cold-zen4-chosen",
        "datasets/cold-zen1",
    ),
    "metaschedule": (
        "datasets/cold-zen5-metaschedule",
        "datasets/cold-zen5-wide-metaschedule",
        "datasets/cold-zen3-metaschedule",
        "datasets/cold-zen3-chosen-metaschedule",
        "datasets/cold-zen3-again-metaschedule",
        "datasets/cold-zen3-224-metaschedule",
    ),
}
"""By framework, whose preset layout has its name."""
FOLDERS = {"ansor": ROOT / "build" / "folds", "metaschedule": ROOT / "build" / "trace-folds"}
HEADS = ("platform", "tasks", "ranked by", "published top-1", "mean top-1", "mean top-5", "Spearman")
EPOCHS = 24
FEWEST = 8
"""Programs of a task on a platform, to count."""

Scores = dict[str, NDArray[np.float64]]
"""By what ranks: (N, P) of every program on every platform."""


def fold(
    name: str,
    folder: Path,
    framework: str = "ansor",
    platforms: Sequence[str] = (),
    sources: Sequence[str] = (),
) -> Corpus:
    """The dataset whose test split is a group of families; built where it is not there.

    Args:
        name: of the group.
        folder: of all folds.
        framework: whose programs.
        platforms: to read; empty for all.
        sources: datasets that it is built of; empty for all of the framework.
    """
    out = folder / name
    if not out.exists():
        tests = [word for family in FOLDS[name] for word in ("--test", family)]
        options = ["--split", "family", *tests, "--validation-share", "0", "--out", str(out)]
        command = [sys.executable, "-c", MAIN, "dataset", "build", *(sources or SOURCES[framework]), *options]
        subprocess.run(command, cwd=ROOT, check=True)
    corpus = Corpus(out, FeatureLayout.preset(framework), platforms=platforms or None)
    shared = folder / "cache" / "features"  # those of a task are the same in every fold
    own = folder / "cache" / "store-features" / str(corpus.whole.digest)
    for each in (shared, own.parent):
        each.mkdir(parents=True, exist_ok=True)
    if not own.exists():
        own.symlink_to(shared.resolve())
    return corpus


def scores_of(ranker: Ranker, corpus: Corpus, seed: int) -> NDArray[np.float64]:
    """What a baseline that learned from the training families says of the others."""
    ranker.fit(corpus, seed, print)
    found = np.full((len(corpus.whole), len(corpus.whole.platforms)), np.nan)
    for column in range(found.shape[1]):
        found[corpus.judged_programs, column] = ranker.scores(corpus.judged_programs, column)
    return found


def shipped(model: str, corpus: Corpus) -> NDArray[np.float64]:
    """(N, P) what a shipped network says, which may know the families; of another target, its mean."""
    loaded = load_model(model)
    found = np.full((len(corpus.whole), len(corpus.whole.platforms)), np.nan)
    for programs in np.array_split(corpus.judged_programs, 1 + len(corpus.judged_programs) // 1024):
        embedded = corpus.embeddings(loaded.layout, programs)
        for column, platform in enumerate(corpus.whole.platforms):
            head = platform_or_mean(loaded, platform.target)
            found[programs, column] = loaded.score(embedded, head)
    return found


def all_scores(corpus: Corpus, features: StoreFeatures, settings: BaselineSettings, seed: int) -> Scores:
    """Of everything that ranks."""
    network = scores_of(TrainedTLP(settings, "mtl-tlp-one"), corpus, seed)
    each = scores_of(XGBoostFeatures(settings), corpus, seed)
    trees, together = (np.full_like(network, np.nan) for _ in range(2))
    fitted, judged = fit_trees(corpus, settings, seed, print), corpus.judged_programs
    rows, _ = features.of(judged)
    tiles = tiles_of(corpus, judged)
    for column, platform in enumerate(corpus.whole.platforms):
        trees[judged, column] = fitted.speeds(rows, features.counts[judged], tiles, platform.name)
        together[judged, column] = both(network[judged, column], trees[judged, column])
    random = np.random.default_rng(seed).random(network.shape)
    names = ("random", "network", "trees, one model a platform", "trees, one for all", "network and trees")
    found = dict(zip(names, (random, network, each, trees, together), strict=True))
    return found | {"trees of the other processors": strangers(corpus, features, settings, seed)}


def strangers(
    corpus: Corpus, features: StoreFeatures, settings: BaselineSettings, seed: int
) -> NDArray[np.float64]:
    """(N, P) what trees say that learned from no program of the platform; of several others, their mean."""
    whole, judged = corpus.whole, corpus.judged_programs
    rows, _ = features.of(judged)
    tiles = tiles_of(corpus, judged)
    found = np.full((len(whole), len(whole.platforms)), np.nan)
    names = [platform.name for platform in whole.platforms]
    for column, name in enumerate(names):
        others = [each for each in names if each != name]
        places = [place for place in range(len(names)) if place != column]
        fitted = fit_trees(corpus.learning_from(whole.latencies, places), settings, seed, print)
        speeds = [fitted.speeds(rows, features.counts[judged], tiles, each) for each in others]
        found[judged, column] = np.mean(speeds, axis=0)
    return found


def ranked(
    corpus: Corpus, features: StoreFeatures, scores: Scores
) -> dict[tuple[str, str], list[RankedTask]]:
    """The tasks of a fold by platform and by what ranks them."""
    whole, found = corpus.whole, defaultdict(list)
    for task in np.unique(whole.task_index[corpus.judged_programs]):
        for column, platform in enumerate(whole.platforms):
            programs = whole.programs_of(task)
            programs = programs[np.isfinite(whole.latencies[programs, column])]
            if len(programs) < FEWEST or task in features.missing:
                continue
            weight = sum(whole.tasks[task].weights.values())
            for name, each in scores.items():
                known = np.nan_to_num(each[programs, column], neginf=-1e9)
                found[platform.name, name].append(
                    RankedTask(whole.latencies[programs, column], known, weight)
                )
    return found


def of_fold(
    name: str, folder: Path, framework: str, settings: BaselineSettings, seed: int, beside: Sequence[str]
) -> dict[tuple[str, str], list[RankedTask]]:
    """The tasks of a fold by platform and by what ranks them, for a process of its own."""
    corpus = fold(name, folder, framework)
    features = store_features(corpus, settings.cache, print, settings.network_files)
    scores = {f"network of {model}": shipped(model, corpus) for model in beside}
    return ranked(corpus, features, all_scores(corpus, features, settings, seed) | scores)


def over_folds(
    of_fold: Callable[..., Mapping[Any, list[RankedTask]]], *how: Any
) -> dict[Any, list[RankedTask]]:
    """The tasks of all folds together, each fold in a process on a core of its own.

    Args:
        of_fold: gives a fold's tasks by whatever ranks them, from the fold's name and `how`.
        *how: the rest of what it takes.
    """
    tasks: dict[Any, list[RankedTask]] = defaultdict(list)
    os.environ["OMP_NUM_THREADS"] = "1"  # of the processes below; more of them wait for each other on a core
    spawn = get_context("spawn")
    cores = spawn.SimpleQueue()
    for core in os.sched_getaffinity(0):
        cores.put(core)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), spawn, _stay, (cores,)) as pool:
        for part in pool.map(of_fold, *zip(*[(name, *how) for name in FOLDS], strict=True)):
            for key, found in part.items():
                tasks[key] += found
    return tasks


def _stay(cores: Any) -> None:
    """Keep a process on one core, so that what it starts takes one thread."""
    os.sched_setaffinity(0, {cores.get()})


def files_in(folder: Path, ending: str) -> dict[str, str]:
    """The files of networks in a folder, by their names and by their paths."""
    return {name: str(path) for path in folder.glob(f"*{ending}") for name in (path.stem, str(path))}


def agreement(found: Sequence[RankedTask]) -> float:
    """Mean rank correlation of scores and speeds over tasks."""
    return float(np.nanmean([spearmanr(-each.latencies, each.scores)[0] for each in found]))


def main() -> None:
    """Fit, rank and print."""
    parser = argparse.ArgumentParser(description="Cross-validation over the families of training networks.")
    parser.add_argument("--framework", choices=list(SOURCES), default="ansor")
    parser.add_argument("--networks", type=Path, default=ROOT / "build" / "training")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--beside", action="append", default=[], help="shipped model beside, by its network")
    options = parser.parse_args()
    folder, ending = FOLDERS[options.framework], framework_named(options.framework).exported
    files = files_in(options.networks, ending)
    settings = BaselineSettings(cache=folder / "cache", network_files=files, epochs=EPOCHS)
    for name in FOLDS:  # what the folds share is made once, with all cores
        store_features(fold(name, folder, options.framework), settings.cache, print, files)
    tasks = over_folds(of_fold, folder, options.framework, settings, options.seed, options.beside)
    print(f"\n| {' | '.join(HEADS)} |\n{'|---' * len(HEADS)}|")
    for (platform, name), found in sorted(tasks.items(), key=lambda item: item[0][0]):
        figures = (top_k(found, 1), mean_top_k(found, 1), mean_top_k(found, 5), agreement(found))
        print(f"| {platform} | {len(found)} | {name} | {' | '.join(f'{figure:.3f}' for figure in figures)} |")


if __name__ == "__main__":
    main()
