"""How should programs be chosen for labelling, and how much should a head with few labels count?

Set-up: the training tasks of a dataset. One in five is held out on every platform; of the other four, models
see few labels of the target, drawn by --choose in blocks of --blocks programs per task. One fold and seed per
--folds.
Baseline: the other platforms' model, which has seen no label of the target (`source`).
Takeaway: top-1 / top-5 on the held-out tasks, mean over tasks and folds, of a network with the target's
labels alone (`local`) and of the joint one (`mtl`), by the share of the target's head in the score. This
chooses `BLOCK` of tlp_tvm/evaluation/labelling.py and the share of `blend`; test tasks are not used.

    python benchmarks/few_labels.py k80 [--dataset build/public-gpu] [--labels 7%] [--blocks 8 4] [--folds 4]

Three trainings per fold and block, some minutes each; finished ones are kept in build/results/few-shot.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from tlp_tvm.dataset.ranking import ranked_tasks
from tlp_tvm.dataset.reading.holding_out import fold_of
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import DatasetError
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.few_shot.few_shot_run import heads_of, to_label
from tlp_tvm.evaluation.few_shot.few_shot_settings import FewShotSettings
from tlp_tvm.evaluation.few_shot.lab import Fitted, Lab
from tlp_tvm.evaluation.few_shot.labels import measured_on, of_platforms
from tlp_tvm.evaluation.few_shot.recipes import joint, local
from tlp_tvm.evaluation.labelling import Choose, label_count
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metrics.topk import mean_top_k

ROOT = Path(__file__).parent.parent
FOLDS = 5
SHARES = (0.0, 0.07, 0.26, 0.5, 0.75, 1.0)
"""Of the target's head in the score of the joint network; the rest is the mean of all heads."""
FEWEST = 8
"""Programs of a task held out, for it to judge."""

Tops = dict[str, tuple[float, float]]


class Fold:
    """Training tasks without the held-out ones, and what is chosen and trained on them."""

    def __init__(self, whole: MeasuredDataset, settings: FewShotSettings, fold: int) -> None:
        """Hold out; the fold is the seed too."""
        self.seed = fold
        data, held = fold_of(whole, fold, FOLDS, 0)
        self.lab = Lab(data, settings, lambda words: None)
        self.judged = of_platforms(held, [self.lab.target])

    def source(self) -> tuple[float, float]:
        """Scores of the other platforms' model."""
        fitted = self.lab.source(self.seed)
        return self.tops(fitted, [fitted.own])[0]

    def tops(self, fitted: Fitted, shares: Sequence[float]) -> list[tuple[float, float]]:
        """Top-1 and top-5 on the held-out tasks, per share of the target's head."""
        heads = heads_of(self.lab, fitted, self.judged)
        return [self._tops(replace(fitted, own=share).score(heads).numpy()) for share in shares]

    def _tops(self, scores: NDArray[np.float32]) -> tuple[float, float]:
        found = ranked_tasks(self.judged, scores, 0).values()
        tasks = [task for task in found if len(task.latencies) >= FEWEST]
        return mean_top_k(tasks, 1), mean_top_k(tasks, 5)

    def with_labels(self, choose: Choose, block: int, labels: str) -> Tops:
        """Results of the recipes with these labels."""
        count = label_count(labels).of(len(measured_on(self.lab.data, self.lab.target)))
        labelled = to_label(self.lab, choose, count, self.seed, block)
        alone, together = (recipe(self.lab, labelled, self.seed) for recipe in (local, joint))
        names = [f"own {share:g}" for share in SHARES]
        return {
            "local": self.tops(alone, [alone.own])[0],
            **dict(zip(names, self.tops(together, SHARES), strict=True)),
        }


def line(name: str, folds: list[tuple[float, float]]) -> str:
    """Means over folds."""
    means: NDArray[np.float64] = np.mean(folds, axis=0)
    return f"{name:24s} {means[0]:.3f} / {means[1]:.3f}"


def main() -> None:
    """Train and evaluate."""
    parser = argparse.ArgumentParser(description="Few labels, judged on training tasks held out.")
    parser.add_argument("platform")
    parser.add_argument("--dataset", type=Path, default=ROOT / "build" / "public-gpu")
    parser.add_argument("--labels", default="7%")
    parser.add_argument("--choose", choices=[each.value for each in Choose], default=Choose.DIVERSE.value)
    parser.add_argument("--blocks", type=int, nargs="+", default=[8, 4])
    parser.add_argument("--folds", type=int, choices=range(1, FOLDS + 1), default=4)
    asked = parser.parse_args()
    torch.set_num_threads(1)
    settings = FewShotSettings(asked.platform, ROOT / "build" / "results" / "few-shot", ["mtl"], [])
    try:
        corpus = Corpus(asked.dataset, FeatureLayout.preset("ansor"))
        whole = corpus.whole.of_tasks(corpus.training_tasks)
        folds = [Fold(whole, settings, fold) for fold in range(asked.folds)]
    except DatasetError as error:
        parser.error(str(error))
    print(line("source", [fold.source() for fold in folds]), flush=True)
    for block in asked.blocks:
        found = [fold.with_labels(Choose(asked.choose), block, asked.labels) for fold in folds]
        for name in found[0]:
            print(line(f"blocks of {block}: {name}", [each[name] for each in found]), flush=True)


if __name__ == "__main__":
    main()
