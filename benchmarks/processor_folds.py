"""How well a processor's programs are ranked that nobody has measured there, and what few labels of it add.

Question: what does a model know of a processor and of networks that are both new to it? How many labels of
the processor make up for all of its own? Do labels of other processors ever harm?
Set-up: cross-validation over the families of the training networks, programs with cold weights. In each fold
one group of families is ranked on the processor by what learned from the other families: from all programs of
the other processors, and from some labels of this one, drawn in blocks of four programs of a task.
Baseline: random choice, and what learned from all labels of the processor and from no other.
Takeaway: both metrics over the tasks of all folds with at least eight programs there: mean and standard
deviation over seeds, interval over tasks.

    python benchmarks/training_networks.py build/training
    python benchmarks/processor_folds.py zen1-avx2-2t [--labels 0,500,all] [--seeds 3] [--tables]

What is done is kept in docs/results/folds, and the same command resumes; --tables rewrites the
pages alone. Finished networks are kept beside the folds that `family_folds.py` and this build.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from claim_tables import Made, put_picks
from commits import checked_out
from family_folds import (
    EPOCHS,
    FOLDS,
    KEPT,
    SOURCES,
    Scores,
    files_in,
    fold,
    folder_of,
    over_folds,
    ranked,
    scores_of,
)
from numpy.typing import NDArray
from own_command import ROOT
from picks import NearTask, Picks, table

from tlp_tvm.adapting.informed import both
from tlp_tvm.evaluation.baselines.baseline_settings import BaselineSettings
from tlp_tvm.evaluation.baselines.pooled_trees import fit_trees, tiles_of
from tlp_tvm.evaluation.baselines.store_features import store_features
from tlp_tvm.evaluation.baselines.trained_tlp import TrainedTLP
from tlp_tvm.evaluation.baselines.training_tables import labelled
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.few_shot.labels import with_labels
from tlp_tvm.evaluation.labelling import Choose, LabelCount, label_counts, label_order
from tlp_tvm.evaluation.rankers import Programs

ALONE = "all, no other processor"
LABELS = label_counts("0,500,all")

Opinion = tuple[NDArray[np.float64], NDArray[np.float64]]
"""(N,) scores of the network, and (N,) speeds of the trees."""


class Asked(NamedTuple):
    """What a fold's process is told."""

    platform: str
    labels: list[LabelCount]
    seed: int
    settings: BaselineSettings


def some_labels(corpus: Corpus, column: int, count: LabelCount, seed: int) -> tuple[NDArray[np.float64], int]:
    """(N, P) latencies with some labels of a platform's training tasks alone, and how many these are."""
    there = known(corpus, column, seed)
    order = label_order(Choose.GROUPED, corpus.whole.task_index[there], _nothing, seed, _nothing)
    kept = there[order[: count.of(len(there))]]
    return with_labels(corpus.whole, column, kept).latencies, len(kept)


def known(corpus: Corpus, column: int, seed: int) -> Programs:
    """The programs of training tasks that were measured on a platform."""
    return labelled(corpus, corpus.training_tasks, column, len(corpus.whole), seed)


def _nothing(*_: object) -> Any:
    raise NotImplementedError("labels drawn by task need no embeddings and no network")


def opinion(corpus: Corpus, of: str, share: float, asked: Asked) -> Opinion:
    """What a network and trees say of a platform once they have learned.

    Args:
        corpus: the labels to learn from.
        of: the platform, which the corpus may lack.
        share: how much its own head counts beside that of its kin, the last other platform with the same
            vectors and threads, or else beside the mean of all; 1 where there is no other.
        asked: settings.
    """
    names = [platform.name for platform in corpus.whole.platforms]
    others = [name for name in names if name != of]
    kin = [name for name in others if name.partition("-")[2] == of.partition("-")[2]][-1:] or others
    weights = dict.fromkeys(kin, (1 - share) / max(len(kin), 1))
    if of in names:
        weights[of] = share
    network = scores_of(TrainedTLP(asked.settings, "mtl-tlp-one"), corpus, asked.seed)
    judged = corpus.judged_programs
    features = store_features(corpus, asked.settings.cache, print)
    rows, _ = features.of(judged)
    fitted, tiles = fit_trees(corpus, asked.settings, asked.seed, print), tiles_of(corpus, judged)
    scores = sum(weight * network[:, names.index(name)] for name, weight in weights.items())
    trees = np.full(len(corpus.whole), np.nan)
    trees[judged] = sum(
        weight * fitted.speeds(rows, features.counts[judged], tiles, name) for name, weight in weights.items()
    )
    return np.asarray(scores), trees


def opinions(corpus: Corpus, asked: Asked) -> Iterator[tuple[str, Opinion]]:
    """By what was learned from."""
    whole = corpus.whole
    names = [platform.name for platform in whole.platforms]
    column = names.index(asked.platform)
    others = [place for place in range(len(names)) if place != column]
    elsewhere = np.mean([len(known(corpus, place, asked.seed)) for place in others])
    for count in asked.labels:
        latencies, found = some_labels(corpus, column, count, asked.seed)
        columns = [*others, column] if found else others
        share = min(1.0, math.sqrt(found / elsewhere))
        part = corpus.learning_from(latencies, columns)
        yield f"{count.asked} labels", opinion(part, asked.platform, share, asked)
    part = corpus.learning_from(whole.latencies, [column])
    yield ALONE, opinion(part, asked.platform, 1.0, asked)


def of_fold(name: str, folder: Path, asked: Asked) -> dict[str, list[NearTask]]:
    """A fold's tasks on the platform by what ranks them, for a process of its own."""
    corpus = fold(name, folder)
    features = store_features(corpus, asked.settings.cache, print, asked.settings.network_files)
    column = [platform.name for platform in corpus.whole.platforms].index(asked.platform)
    found: Scores = {"random": np.random.default_rng(asked.seed).random(len(corpus.whole))}
    found |= measured_elsewhere(corpus, column)
    judged = corpus.judged_programs
    for learned, (network, trees) in opinions(corpus, asked):
        together = np.full_like(network, np.nan)
        together[judged] = both(network[judged], trees[judged])
        each = {"network": network, "trees": trees, "network and trees": together}
        found |= {f"{learned}: {ranker}": scores for ranker, scores in each.items()}
    alone = corpus.learning_from(corpus.whole.latencies, [column])
    tasks = ranked(alone, features, {name: scores[:, None] for name, scores in found.items()})
    return {name: of_name for (_, name), of_name in tasks.items()}


def measured_elsewhere(corpus: Corpus, column: int) -> Scores:
    """What other processors say on which all of a platform's programs were measured, too."""
    latencies, names = corpus.whole.latencies, [platform.name for platform in corpus.whole.platforms]
    there = np.isfinite(latencies[:, column])
    whole = {
        name: each for name, each in zip(names, latencies.T, strict=True) if np.isfinite(each[there]).all()
    }
    return {f"latencies of {name}": -each for name, each in whole.items() if name != names[column]}


def kept_of(platform: str, labels: Sequence[LabelCount] = LABELS) -> Picks:
    """What is kept of a processor's folds with such numbers of labels."""
    of = [*SOURCES["ansor"], f"{EPOCHS} epochs", *(count.asked for count in labels)]
    return Picks(KEPT / f"{platform}.json", of)


def run(kept: Picks, asked: Asked, seeds: int) -> None:
    """Learn and rank what is not kept yet, seed by seed."""
    folder = folder_of("ansor")
    for seed in range(seeds):
        names = [name for name in FOLDS if not kept.has_any(name, seed)]
        for name, found in over_folds(of_fold, names, folder, asked._replace(seed=seed)):
            for ranker, tasks in found.items():
                kept.add(ranker, seed, name, tasks, checked_out())
            kept.save()
            print(f"seed {seed}: {name} is done", flush=True)


def tables(kept: Picks) -> Made:
    """Of the page behind."""
    rows = [
        ([learned if ranker else "", ranker or learned], cells)
        for name in kept.found
        for learned, _, ranker in [name.partition(": ")]
        for cells in kept.rows(name, list(kept.tasks))
    ]
    return Made([table(["learned from", "ranked by"], rows)], kept.commits(list(kept.found)))


def main() -> None:
    """Rank what is missing, then write the page."""
    parser = argparse.ArgumentParser(description="A processor that is new, by cross-validation.")
    parser.add_argument("platform", help="such as zen1-avx2-2t")
    parser.add_argument("--labels", type=label_counts, default=LABELS)
    parser.add_argument("--networks", type=Path, default=ROOT / "build" / "training")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tables", action="store_true", help="write the table of what is kept; run nothing")
    options = parser.parse_args()
    kept = kept_of(options.platform, options.labels)
    if not options.tables:
        folder = folder_of("ansor")
        names = [platform.name for platform in fold(next(iter(FOLDS)), folder).whole.platforms]
        if options.platform not in names:
            parser.error(
                f"platform: expected one that the folds have, {', '.join(names)}, found {options.platform!r}"
            )
        settings = BaselineSettings(
            cache=folder / "cache", network_files=files_in(options.networks, ".pt"), epochs=EPOCHS
        )
        run(kept, Asked(options.platform, options.labels, 0, settings), options.seeds)
    words = "top-1 of what ranks a new processor's programs, by both metrics"
    put_picks(f"folds {options.platform}", tables(kept), kept.file, words)


if __name__ == "__main__":
    main()
