"""How well a network, boosted trees, and both rank programs of families that they have not learned from.

Question: what chooses the faster program of a network of a new family: the network on the steps of programs,
trees on TVM's per-store features, or both? And trees that know no program of the processor?
Set-up: cross-validation over the families of the training networks, programs with cold weights of all
processors; in each fold one group of families is ranked by what learned from the others. Nothing of it sees a
test network.
Baseline: random choice.
Takeaway: both metrics by processor, over the tasks of all folds with at least eight programs there: mean and
standard deviation over seeds, interval over tasks.

    python benchmarks/training_networks.py build/training
    python benchmarks/family_folds.py [--seeds 3] [--tables]

Half an hour the first time, as per-store features need every program lowered; ten minutes a seed after that.
What is done is kept in docs/results/folds, and the same command resumes; --tables rewrites the
pages alone. With --framework metaschedule, by the Python of .venv-metaschedule, of its programs.
"""

from __future__ import annotations

import argparse
import hashlib
import os
import subprocess
import sys
from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from claim_tables import Made, put_picks
from commits import checked_out
from numpy.typing import NDArray
from own_command import MAIN, ROOT
from picks import NearTask, Picks, table

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
from tlp_tvm.metrics.topk import RankedTask

FOLDS = {
    "text": ["bert", "electra"],
    "residual": ["resnet"],
    "mobile": ["mobilenet", "poolformer"],
    "images": ["vit", "deit", "swin", "mlp"],
}


def _taught(model: str) -> list[str]:
    listed = (ROOT / "datasets" / "taught" / f"{model}.txt").read_text().split()
    return [f"datasets/{name}" for name in listed if name.startswith("cold")]


SOURCES = {
    "ansor": (*_taught("x86"), "datasets/cold-zen1"),
    "metaschedule": tuple(_taught("x86-metaschedule")),
}
"""By framework, whose preset layout has its name."""
EPOCHS = 24
KEPT = ROOT / "docs" / "results" / "folds"
RANKERS = (
    *("random", "network", "trees, one model a platform", "trees, one for all", "network and trees"),
    "trees of the other processors",
)
FEWEST = 8
"""Programs of a task on a platform, to count."""

Scores = dict[str, NDArray[np.float64]]
"""By what ranks: (N, P) of every program on every platform."""


def folder_of(framework: str) -> Path:
    """Where the folds of a framework's datasets are built; elsewhere once there are more of these."""
    digest = hashlib.sha256(" ".join(SOURCES[framework]).encode()).hexdigest()[:8]
    return ROOT / "build" / f"folds-{framework}-{digest}"


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
    others = strangers(corpus, features, settings, seed)
    return dict(zip(RANKERS, (random, network, each, trees, together, others), strict=True))


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


def judged_tasks(corpus: Corpus) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """The tasks of a fold that count: each with a platform's column, and its programs that ran there."""
    whole = corpus.whole
    for task in np.unique(whole.task_index[corpus.judged_programs]):
        for column in range(len(whole.platforms)):
            programs = whole.programs_of(task)
            programs = programs[np.isfinite(whole.latencies[programs, column])]
            if len(programs) >= FEWEST:
                yield int(task), column, programs


def ranked_task(
    corpus: Corpus, task: int, column: int, programs: NDArray[np.int64], scores: NDArray[Any]
) -> NearTask:
    """A task as scores rank it.

    Args:
        corpus: the fold.
        task: as `judged_tasks` has it, with its column and programs.
        column: of the platform.
        programs: to rank.
        scores: (N, P) of all programs of the fold.
    """
    of_task, near = corpus.whole.tasks[task], corpus.near
    known = np.nan_to_num(scores[programs, column].astype(np.float64), neginf=-1e9)
    weight = float(sum(of_task.weights.values()))
    as_ranked = RankedTask(corpus.whole.latencies[programs, column], known, weight)
    return as_ranked, None if near is None else of_task.workload_key in near


def ranked(corpus: Corpus, features: StoreFeatures, scores: Scores) -> dict[tuple[str, str], list[NearTask]]:
    """The tasks of a fold by platform and by what ranks them."""
    found = defaultdict(list)
    for task, column, programs in judged_tasks(corpus):
        if task not in features.missing:
            for name, each in scores.items():
                key = corpus.whole.platforms[column].name, name
                found[key].append(ranked_task(corpus, task, column, programs, each))
    return found


def of_fold(
    name: str, folder: Path, framework: str, settings: BaselineSettings, seed: int
) -> dict[tuple[str, str], list[NearTask]]:
    """The tasks of a fold by platform and by what ranks them, for a process of its own."""
    corpus = fold(name, folder, framework)
    features = store_features(corpus, settings.cache, print, settings.network_files)
    return ranked(corpus, features, all_scores(corpus, features, settings, seed))


def over_folds(
    of_fold: Callable[..., Mapping[Any, list[NearTask]]], names: Sequence[str], *how: Any
) -> Iterator[tuple[str, Mapping[Any, list[NearTask]]]]:
    """What folds give, each in a process on a core of its own.

    Args:
        of_fold: gives a fold's tasks by whatever ranks them, from the fold's name and `how`.
        names: of the folds.
        *how: the rest of what it takes.
    """
    os.environ["OMP_NUM_THREADS"] = "1"  # of the processes below; more of them wait for each other on a core
    spawn = get_context("spawn")
    cores = spawn.SimpleQueue()
    for core in os.sched_getaffinity(0):
        cores.put(core)
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), spawn, _stay, (cores,)) as pool:
        jobs = {pool.submit(of_fold, name, *how): name for name in names}
        for job in as_completed(jobs):
            yield jobs[job], job.result()


def _stay(cores: Any) -> None:
    """Keep a process on one core, so that what it starts takes one thread."""
    os.sched_setaffinity(0, {cores.get()})


def files_in(folder: Path, ending: str) -> dict[str, str]:
    """The files of networks in a folder, by their names and by their paths."""
    return {name: str(path) for path in folder.glob(f"*{ending}") for name in (path.stem, str(path))}


def kept_of(framework: str) -> Picks:
    """What is kept of a framework's folds."""
    return Picks(KEPT / f"{framework}.json", [*SOURCES[framework], f"{EPOCHS} epochs"])


def run(kept: Picks, framework: str, networks: Path, seeds: int) -> None:
    """Fit and rank what is not kept yet, seed by seed."""
    folder = folder_of(framework)
    files = files_in(networks, framework_named(framework).exported)
    settings = BaselineSettings(cache=folder / "cache", network_files=files, epochs=EPOCHS)
    asked = {seed: [name for name in FOLDS if not kept.has_any(name, seed)] for seed in range(seeds)}
    if any(asked.values()):
        for name in FOLDS:  # what the folds share is made once, with all cores
            store_features(fold(name, folder, framework), settings.cache, print, files)
    for seed, names in asked.items():
        for name, found in over_folds(of_fold, names, folder, framework, settings, seed):
            for (platform, ranker), tasks in found.items():
                kept.add(ranker, seed, f"{name} {platform}", tasks, checked_out())
            kept.save()
            print(f"seed {seed}: {name} is done", flush=True)


def tables(kept: Picks) -> Made:
    """Of the page behind."""
    platforms = sorted({group.partition(" ")[2] for group in kept.tasks})
    rows = [
        ([platform, ranker], cells)
        for platform in platforms
        for ranker in RANKERS
        for cells in kept.rows(ranker, [group for group in kept.tasks if group.endswith(f" {platform}")])
    ]
    return Made([table(["platform", "ranked by"], rows)], kept.commits(RANKERS))


def main() -> None:
    """Rank what is missing, then write the page."""
    parser = argparse.ArgumentParser(
        description="Cross-validation over the families of the training networks."
    )
    parser.add_argument("--framework", choices=list(SOURCES), default="ansor")
    parser.add_argument("--networks", type=Path, default=ROOT / "build" / "training")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tables", action="store_true", help="write the table of what is kept; run nothing")
    asked = parser.parse_args()
    kept = kept_of(asked.framework)
    if not asked.tables:
        run(kept, asked.framework, asked.networks, asked.seeds)
    words = "top-1 of what ranks, by both metrics and by processor"
    put_picks(f"folds {asked.framework}", tables(kept), kept.file, words)


if __name__ == "__main__":
    main()
