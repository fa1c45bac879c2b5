"""Does a model that was trained on Ansor's programs help one of MetaSchedule's?

Set-up: the recipe of `tlp-tvm train` on MetaSchedule's programs, on all its training tasks and on one in ten,
from random weights and from those of the shipped Ansor model: all layers but the first, which reads the
layout, and of its heads the one of the same platform. Its rate is that of a training from nothing, or the
lower one of `finetune`. The epoch is chosen on one training task in five.
Baseline: random weights, the same tasks, epochs, order and seed.
Takeaway: top-1 and top-5 on the networks that no model was trained on, mean over tasks, and their deviation
over seeds (of weights, order, and which tasks).

    python benchmarks/ansor_pretraining.py [--seeds 3] [--device cpu]

A training that is done is kept in runs/ansor-pretraining; the same command goes on.
"""

from __future__ import annotations

import argparse
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import torch
from marked_pages import put
from torch import Tensor

from tlp_tvm.dataset.ranking import ranked_tasks
from tlp_tvm.dataset.reading.holding_out import fold_of
from tlp_tvm.dataset.reading.measured import MeasuredDataset, load_measured
from tlp_tvm.files import write_whole
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metrics.topk import mean_top_k
from tlp_tvm.model.checkpoint import load_model
from tlp_tvm.model.scoring import ScoringModel
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.training.loop import train
from tlp_tvm.training.recipe import MODELS
from tlp_tvm.training.runs.train_run import HOLD_OUT
from tlp_tvm.training.start import FINETUNE_RATE, Start, long_enough
from tlp_tvm.training.train_settings import TrainSettings

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "docs" / "results" / "ansor-pretraining.json"
TRAINED_ON_ANSOR = "epyc"
FIRST_LAYER = "widen.0."
STARTS = ("random weights", "Ansor's weights", "Ansor's weights, low rate")
ONE_IN = {"all": 1, "one in ten": 10}
"""Which of the tasks are trained on."""


def started(settings: TLPSettings, ansor: ScoringModel, platform: str, seed: int) -> Start:
    """Weights of an Ansor model in a network of another layout; the first layer's are random."""
    with torch.random.fork_rng([]):
        torch.manual_seed(seed)
        weights: dict[str, Tensor] = TLP(settings).state_dict()
    theirs, head = ansor.network.state_dict(), ansor.platforms.index(platform)
    for name in weights:
        source = name.replace(".heads.0.", f".heads.{head}.")
        if FIRST_LAYER not in name:
            weights[name] = theirs[source].clone()
    return Start(weights)


def tops(data: MeasuredDataset, network: TLP) -> list[float]:
    """Top-1 and top-5 of a network of one head, mean over tasks."""
    with torch.no_grad():
        scores = torch.cat([network(x) for x in torch.from_numpy(data.features()).split(512)])
    tasks = list(ranked_tasks(data, scores[:, 0].numpy(), 0).values())
    return [mean_top_k(tasks, k) for k in (1, 5)]


def run(
    measured: MeasuredDataset, ansor: ScoringModel, start: str, share: str, seed: int, device: str
) -> list[float]:
    """Train once, on the tasks that the seed draws, and judge on the networks held out."""
    rest, held = fold_of(measured.of_split("train"), 0, HOLD_OUT, seed)
    tasks = np.random.default_rng(seed).permutation(len(rest.tasks))
    data = rest.of_tasks(tasks[: len(tasks) // ONE_IN[share]].tolist())
    settings = TLPSettings.of_layout(measured.layout, 1, **MODELS["recipe"])
    how = long_enough(TrainSettings(seed=seed), len(data))
    if start == STARTS[2]:
        how = replace(how, learning_rate=FINETUNE_RATE)
    begin = None if start == STARTS[0] else started(settings, ansor, measured.platforms[0].name, seed)
    folder = (
        ROOT / "runs" / "ansor-pretraining" / f"{start}-{share}-{seed}".replace(" ", "-").replace("'", "")
    )
    folder.mkdir(parents=True, exist_ok=True)
    trained = train(data, held, settings, how, folder, device=device, start=begin)
    network = TLP.with_weights(settings, trained.weights)
    return tops(measured.of_split("test"), network)


def table(runs: dict[str, list[float]], seeds: int) -> str:
    """A row a start and share of the tasks."""
    lines = ["| training tasks | starts from | top-1 | top-5 |", "|---|---|---|---|"]
    for share in ONE_IN:
        for start in STARTS:
            found = np.array([runs[f"{start}, {share}, {seed}"] for seed in range(seeds)])
            cells = [f"{m:.3f} ± {d:.3f}" for m, d in zip(found.mean(0), found.std(0, ddof=1), strict=True)]
            lines.append(f"| {share} | {start} | {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Train what is missing, write the table."""
    parser = argparse.ArgumentParser(description="What Ansor's programs teach of MetaSchedule's.")
    parser.add_argument("--dataset", type=Path, default=ROOT / "datasets" / "epyc-metaschedule")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--device", default="auto")
    asked = parser.parse_args()
    measured = load_measured(asked.dataset, FeatureLayout.preset("metaschedule"))
    kept = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    ansor = load_model(TRAINED_ON_ANSOR)
    of = {"dataset_digest": measured.digest, "ansor_weights": ansor.card["weights"]["sha256"]}
    runs = kept["runs"] if of.items() <= kept.items() else {}
    for seed in range(asked.seeds):
        for share in ONE_IN:
            for start in STARTS:
                key = f"{start}, {share}, {seed}"
                if key not in runs:
                    runs[key] = run(measured, ansor, start, share, seed, asked.device)
                    write_whole(KEPT, json.dumps({**of, "runs": runs}, indent=1) + "\n")
                print(key, runs[key], flush=True)
    put(ROOT / "docs" / "results.md", "ansor-pretraining", table(runs, asked.seeds))
    print(table(runs, asked.seeds))


if __name__ == "__main__":
    main()
