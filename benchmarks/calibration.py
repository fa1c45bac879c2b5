"""How often does a speed lie where a search expects it?

Question: of what the Gaussian process of a search gives 50, 80 and 90%, how much happens?
Set-up: cross-validation over the families of the training networks (`family_folds.py`). The network learned
from the other families; of each task of the left-out ones, on each processor, some programs drawn at random
are measured, as in a search, and the others are expected. An interval is that of a normal distribution around
the expected speed, with the variance of the process and the noise of a measurement.
Baseline: a normal distribution with the mean and variance of the measured programs, which knows no program.
Takeaway: shares of programs inside, means over tasks, by processor and by how many programs are measured; and
the mean logarithm of the density at what happened, higher is better: an interval may be right and too wide.

    python benchmarks/training_networks.py build/training
    python benchmarks/calibration.py

A quarter of an hour the first time, as a network is trained for each fold; a minute after that.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from pathlib import Path

import numpy as np
from family_folds import EPOCHS, FOLDS, fold, folder_of, scores_of
from numpy.typing import NDArray
from scipy.stats import norm

from tlp_tvm.adapting.adaptation import UNIT, TaskAdapter
from tlp_tvm.evaluation.baselines.baseline_settings import BaselineSettings
from tlp_tvm.evaluation.baselines.trained_tlp import TrainedTLP
from tlp_tvm.evaluation.corpus import Corpus

SHARES = (0.5, 0.8, 0.9)
SEEN = (8, 16, 32)
FEWEST = 8
"""Programs of a task that are left to be expected."""
HEADS = ("platform", "measured", "tasks", "by", *(f"{share:.0%}" for share in SHARES), "log density")


def of_task(
    embeddings: NDArray[np.float32], scores: NDArray[np.float32], latencies: NDArray[np.float64], seen: int
) -> dict[str, list[float]]:
    """Shares inside the intervals and log density, by what expects.

    Args:
        embeddings: (n, L, E) of a task's programs, in the order in which they are measured.
        scores: (n,) of the network.
        latencies: (n,) seconds.
        seen: how many are measured.
    """
    adapter = TaskAdapter()
    adapter.learn(embeddings[:seen], scores[:seen], latencies[:seen])
    rest = embeddings[seen:], scores[seen:]
    happened = (latencies[:seen].min() / latencies - 1) / UNIT
    variance = np.diag(adapter.covariance(*rest)) + adapter.noise
    blind = happened[:seen].mean(), happened[:seen].var(ddof=1)
    return {
        "the process": _judged(happened[seen:], adapter.speeds(*rest).astype(np.float64), variance),
        "mean and variance": _judged(happened[seen:], *(np.full(len(rest[1]), value) for value in blind)),
    }


def _judged(
    happened: NDArray[np.float64], expected: NDArray[np.float64], variance: NDArray[np.float64]
) -> list[float]:
    deviation = np.sqrt(np.maximum(variance, 1e-6))
    away = np.abs(happened - expected) / deviation
    inside = [float((away <= norm.ppf(0.5 + share / 2)).mean()) for share in SHARES]
    return [*inside, float(norm.logpdf(happened, expected, deviation).mean())]


def of_fold(
    corpus: Corpus, settings: BaselineSettings, seed: int
) -> dict[tuple[str, int, str], list[list[float]]]:
    """Those of the left-out tasks, by processor, measured programs, and what expects."""
    scores = scores_of(TrainedTLP(settings, "mtl-tlp-one"), corpus, seed)
    whole, found = corpus.whole, defaultdict(list)
    generator = np.random.default_rng(seed)
    for task in np.unique(whole.task_index[corpus.judged_programs]):
        for column, platform in enumerate(whole.platforms):
            programs = whole.programs_of(task)
            programs = generator.permutation(programs[np.isfinite(whole.latencies[programs, column])])
            embeddings = np.asarray(whole.features(programs))
            known = (scores[programs, column].astype(np.float32), whole.latencies[programs, column])
            for seen in SEEN:
                if len(programs) < seen + FEWEST:
                    continue
                for name, shares in of_task(embeddings, *known, seen).items():
                    found[platform.name, seen, name].append(shares)
    return found


def main() -> None:
    """Expect and print."""
    parser = argparse.ArgumentParser(description="How often speeds lie where a search expects them.")
    parser.add_argument("--folder", type=Path, default=folder_of("ansor"))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--folds", default=",".join(FOLDS))
    options = parser.parse_args()
    settings = BaselineSettings(cache=options.folder / "cache", epochs=EPOCHS)
    tasks = defaultdict(list)
    for name in options.folds.split(","):
        for key, found in of_fold(fold(name, options.folder), settings, options.seed).items():
            tasks[key] += found
    print(f"\n| {' | '.join(HEADS)} |\n{'|---' * len(HEADS)}|")
    for (platform, seen, name), found in sorted(tasks.items()):
        *inside, density = np.mean(found, 0)
        cells = [f"{share:.1%}" for share in inside]
        print(f"| {platform} | {seen} | {len(found)} | {name} | {' | '.join(cells)} | {density:.2f} |")


if __name__ == "__main__":
    main()
