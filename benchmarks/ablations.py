"""What of TLP ranks: its loss, its backbone, the length of its features, the other platforms' labels.

Question: how much worse does our recipe rank families of networks that it has not learned from, when one of
its parts is another? The TLP paper has these ablations with one seed, on the networks that it reports.
Set-up: cross-validation over the families of the training networks, as in `family_folds.py`, programs with
cold weights of three processors (`SOURCES`, which stay the same when other datasets come); one network,
`EPOCHS` epochs, and the last one counts. Nothing of it sees a test network.
Baseline: the recipe itself, in each table's first row.
Takeaway: both metrics over the tasks of all folds with at least eight programs on a platform: mean and
standard deviation over seeds, interval over tasks.

    python benchmarks/ablations.py [--seeds N] [--tables]

It takes hours on two cores. What is done is kept in docs/results/ablations.json, and the same command
resumes; --tables rewrites docs/results.md alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from backbones import EncoderLayer, Nothing, Recurrent, backbone
from commits import checked_out
from family_folds import FEWEST, FOLDS, fold
from marked_pages import put
from own_command import ROOT
from torch import nn

from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.files import write_whole
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metrics.bootstrap import of_ratio
from tlp_tvm.model.losses import Loss
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.training.loop import train
from tlp_tvm.training.recipe import MODELS
from tlp_tvm.training.train_settings import TrainSettings

KEPT = ROOT / "docs" / "results" / "ablations.json"
FOLDER = ROOT / "build" / "ablation-folds"
SOURCES = ("datasets/cold", "datasets/cold-zen3", "datasets/cold-zen5")
EPOCHS = 16
TARGET = "zen5-avx512-2t"
OTHERS = ("zen4-avx512-2t", "zen3-avx2-2t")
AT_ONCE = 1024
"""Programs that are scored together."""


@dataclass(frozen=True)
class Variant:
    """The recipe with one part changed."""

    model: dict[str, Any] = field(default_factory=dict)
    """Fields of `TLPSettings`."""
    training: dict[str, Any] = field(default_factory=dict)
    """Fields of `TrainSettings`."""
    layout: str = "ansor"
    shape: tuple[int, int] | None = None
    """Rows and columns; None for the layout's own."""
    layer: type[nn.Module] | None = None
    platforms: tuple[str, ...] = ()
    """Those to learn from; empty for all. The first is the one that is judged, else all are."""


RECIPE = Variant()
TABLES: dict[str, dict[str, Variant]] = {
    "loss": {
        "pairwise, weighted by the difference of labels (ours)": RECIPE,
        "LambdaRank (the paper's)": Variant(training={"loss": Loss.LAMBDARANK}),
        "mean squared error": Variant(training={"loss": Loss.MSE}),
    },
    "backbone": {
        "self-attention (ours and the paper's)": RECIPE,
        "transformer's encoder layer": Variant(layer=EncoderLayer),
        "LSTM": Variant(layer=Recurrent),
        "none": Variant(layer=Nothing),
        "self-attention, positions known": Variant(model={"positions": True}),
    },
    "features": {
        "ours": RECIPE,
        "ours, first 24 rows": Variant(shape=(24, 0)),
        "the paper's, 54 x 40": Variant(layout="paper-cpu", shape=(54, 40)),
        "the paper's, 25 x 40": Variant(layout="paper-cpu", shape=(25, 40)),
        "the paper's, 54 x 22": Variant(layout="paper-cpu", shape=(54, 22)),
        "the paper's crop, 25 x 22": Variant(layout="paper-cpu"),
    },
    "platforms": {
        "alone": Variant(platforms=(TARGET,)),
        **{f"with {name}": Variant(platforms=(TARGET, name)) for name in OTHERS},
        "with both": Variant(platforms=(TARGET, *OTHERS)),
    },
}


def layout_of(variant: Variant) -> FeatureLayout:
    """The layout that a variant reads."""
    preset = FeatureLayout.preset(variant.layout)
    if variant.shape is None:
        return preset
    length, width = variant.shape
    return preset.with_shape(length=length, width=width or preset.width)


@cache
def corpus_of(name: str, platforms: tuple[str, ...]) -> Corpus:
    """A fold, read once in each process."""
    return fold(name, FOLDER, platforms=platforms, sources=SOURCES)


def trained_on(name: str, variant: Variant, seed: int) -> list[list[float]]:
    """A row for each task of a fold and platform: weight, lowest latency, that of the first and of five."""
    torch.set_num_threads(1)
    corpus, layout = corpus_of(name, variant.platforms), layout_of(variant)
    measured = corpus.in_layout(layout)
    settings = TLPSettings.of_layout(
        layout, len(measured.platforms), **MODELS["recipe"] | {"members": 1} | variant.model
    )
    training = TrainSettings(**{"epochs": EPOCHS, "seed": seed} | variant.training)
    with backbone(variant.layer), tempfile.TemporaryDirectory() as folder:
        data = measured.of_tasks(corpus.training_tasks)
        found = train(data, None, settings, training, Path(folder), device="cpu")
        network = TLP.with_weights(settings, found.weights)
    scores = np.full((len(measured), len(measured.platforms)), np.nan, np.float32)
    with torch.inference_mode():
        for part in np.array_split(corpus.judged_programs, max(1, len(corpus.judged_programs) // AT_ONCE)):
            scores[part] = network(torch.from_numpy(measured.features(part))).numpy()
    return list(_tasks(corpus, scores, seed, [TARGET] if variant.platforms else []))


def _tasks(corpus: Corpus, scores: Any, seed: int, judged: list[str]) -> Iterator[list[float]]:
    whole, chance = corpus.whole, np.random.default_rng(seed)
    for task in np.unique(whole.task_index[corpus.judged_programs]):
        for column, platform in enumerate(whole.platforms):
            programs = whole.programs_of(task)
            programs = programs[np.isfinite(whole.latencies[programs, column])]
            if len(programs) < FEWEST or (judged and platform.name not in judged):
                continue
            latencies, given = whole.latencies[programs, column], scores[programs, column]
            order = np.lexsort((chance.permutation(len(given)), -given))
            weight = sum(whole.tasks[task].weights.values())
            yield [float(weight), *(float(latencies[order[:k]].min()) for k in (len(order), 1, 5))]


def key_of(variant: Variant, seed: int) -> str:
    """Names a variant's rows in the file."""
    layer = variant.layer.__name__ if variant.layer else ""
    parts = [variant.model, variant.training, layout_of(variant).digest, layer, variant.platforms]
    return hashlib.sha256(json.dumps([*parts, SOURCES, EPOCHS, seed]).encode()).hexdigest()[:16]


def run(kept: dict[str, Any], seeds: int, jobs: int) -> None:
    """Train what is not kept yet, seed by seed."""
    for name in FOLDS:
        fold(name, FOLDER, sources=SOURCES)
    every = list({key_of(v, 0): v for table in TABLES.values() for v in table.values()}.values())
    asked = [
        (variant, seed, name)
        for seed in range(seeds)
        for variant in every
        for name in FOLDS
        if name not in kept.get(key_of(variant, seed), {}).get("folds", {})
    ]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        jobs_of = {pool.submit(trained_on, name, v, seed): (v, seed, name) for v, seed, name in asked}
        for done, job in enumerate(as_completed(jobs_of), 1):
            variant, seed, name = jobs_of[job]
            entry = kept.setdefault(key_of(variant, seed), {"commit": checked_out(), "folds": {}})
            entry["folds"][name] = job.result()
            write_whole(KEPT, as_text(kept))
            print(f"{done} of {len(asked)}: {name}, seed {seed}", flush=True)


def as_text(kept: dict[str, Any]) -> str:
    """A line for each variant and seed."""
    lines = ",\n".join(f" {json.dumps(key)}: {json.dumps(entry)}" for key, entry in sorted(kept.items()))
    return f"{{\n{lines}\n}}\n"


HEADS = ("tasks", "published top-1", "mean top-1", "mean top-5")


def rows(kept: dict[str, Any], table: str) -> list[str]:
    """A table, of the variants whose folds are all there for as many seeds as the first row has."""
    heads = (table, *HEADS)
    lines = [f"| {' | '.join(heads)} |", "|---" * len(heads) + "|"]
    for name, variant in TABLES[table].items():
        found = []
        while (entry := kept.get(key_of(variant, len(found)))) and set(entry["folds"]) == set(FOLDS):
            found.append(np.array([row for each in FOLDS for row in entry["folds"][each]]))
        if found:
            weights, best, first, five = np.stack(found, 1).transpose(2, 1, 0)  # (seeds, tasks) each
            cells = [name, str(weights.shape[1])]
            cells.append(_figure(weights * best, weights * first))
            cells += [_figure(best / picked, np.ones_like(best)) for picked in (first, five)]
            lines.append(f"| {' | '.join(cells)} |")
    return lines


def _figure(above: Any, below: Any) -> str:
    """The ratio of sums: mean and deviation over seeds, interval over tasks."""
    seeds = above.sum(1) / below.sum(1)
    interval = of_ratio(above.T, below.T)
    spread = f" ± {seeds.std(ddof=1):.3f}" if len(seeds) > 1 else ""
    return f"{seeds.mean():.3f}{spread} ({interval.low:.2f}-{interval.high:.2f})"


def write_page(kept: dict[str, Any]) -> None:
    """Rewrite the tables of docs/results.md."""
    lines = []
    for table in TABLES:
        lines += ["", *rows(kept, table)]
    commits = ", ".join(sorted({str(entry["commit"]) for entry in kept.values()}))
    put(ROOT / "docs" / "results.md", "ablations", "\n".join([*lines, "", f"Commit {commits}.", ""]))


def main() -> None:
    """Train what is missing, then write the page."""
    parser = argparse.ArgumentParser(description="Ablations, by families of training networks.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tables", action="store_true", help="write the tables of what is kept; run nothing")
    asked = parser.parse_args()
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    if not asked.tables:
        run(kept, asked.seeds, asked.jobs)
    write_page(kept)


if __name__ == "__main__":
    main()
