"""Shared by baselines that learn: their training programs, and tasks held out of these."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tlp_tvm.dataset.reading.holding_out import fold_of
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.rankers import Programs, Ranker
from tlp_tvm.metrics.topk import RankedTask, mean_top_k

FOLDS = 5
"""One task in this many is held out to choose the epoch."""


def hold_out(corpus: Corpus, seed: int) -> tuple[list[int], list[int]]:
    """Training tasks to fit on, and training tasks to choose by, as places in the corpus.

    Raises:
        DatasetError: there are too few.
    """
    place = {task.workload_key: i for i, task in enumerate(corpus.whole.tasks)}
    parts = fold_of(corpus.whole.of_tasks(corpus.training_tasks), 0, FOLDS, seed)
    fitted, held_out = ([place[task.workload_key] for task in part.tasks] for part in parts)
    return fitted, held_out


def labelled(corpus: Corpus, tasks: Sequence[int], column: int, most: int, seed: int) -> Programs:
    """Programs with a label on a platform, by task; about `most` of them where there are more.

    Args:
        corpus: the programs.
        tasks: whose, as places in the corpus.
        column: the platform's.
        most: a larger number is thinned out, each task alike.
        seed: of the thinning.
    """
    programs: Programs = np.concatenate([corpus.whole.programs_of(task) for task in tasks])
    programs = programs[~np.isnan(corpus.whole.labels[programs, column])]
    if len(programs) > most:
        programs = programs[np.random.default_rng(seed).random(len(programs)) < most / len(programs)]
    return programs


def held_out_score(corpus: Corpus, tasks: Sequence[int], column: int, ranker: Ranker) -> float:
    """Mean of top-1 and top-5 over tasks, which the training of our own models chooses the epoch by, too."""
    ranked = []
    for task in tasks:
        programs = corpus.whole.programs_of(task)
        programs = programs[np.isfinite(corpus.whole.latencies[programs, column])]
        if len(programs):
            ranked.append(
                RankedTask(corpus.whole.latencies[programs, column], ranker.scores(programs, column))
            )
    if not ranked:
        return 0.0
    return (mean_top_k(ranked, 1) + mean_top_k(ranked, 5)) / 2
