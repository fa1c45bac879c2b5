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
resumes; --tables rewrites the pages alone.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import tempfile
from concurrent.futures import ProcessPoolExecutor, as_completed
from dataclasses import dataclass, field
from functools import cache
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
import torch
from backbones import EncoderLayer, Nothing, Recurrent, backbone
from claim_tables import Made, put_picks
from commits import checked_out
from family_folds import FOLDS, fold, judged_tasks, ranked_task
from own_command import ROOT
from picks import NearTask, Picks, table
from torch import nn

from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.losses import Loss
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.training.loop import train
from tlp_tvm.training.recipe import MODELS
from tlp_tvm.training.train_settings import TrainSettings

KEPT = ROOT / "docs" / "results" / "ablations.json"
FOLDER = ROOT / "build" / "ablation-folds"
SOURCES = ("datasets/cold", "datasets/cold-zen3", "datasets/cold-zen5")
EPOCHS = 16
OF = (*SOURCES, f"{EPOCHS} epochs")
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
    more: tuple[str, ...] = ()
    """Datasets to learn from beside `SOURCES`."""

    @property
    def layout_read(self) -> FeatureLayout:
        """The layout that it reads."""
        preset = FeatureLayout.preset(self.layout)
        if self.shape is None:
            return preset
        length, width = self.shape
        return preset.with_shape(length=length, width=width or preset.width)

    @property
    def judged(self) -> tuple[str, ...]:
        """The platforms whose tasks it ranks; none for all."""
        return self.platforms[:1]

    @property
    def key(self) -> str:
        """Its name in the file."""
        layer = self.layer.__name__ if self.layer else ""
        parts = [self.model, self.training, self.layout_read.digest, layer, self.platforms, *self.more]
        return hashlib.sha256(json.dumps(parts).encode()).hexdigest()[:16]

    def group(self, name: str) -> str:
        """What it ranks of a fold, by name."""
        return " ".join([name, *self.judged, *self.more])


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
        "with both, and zen1-avx2-2t": Variant(
            platforms=(TARGET, *OTHERS, "zen1-avx2-2t"), more=("datasets/cold-zen1",)
        ),
    },
}


@cache
def corpus_of(name: str, platforms: tuple[str, ...], more: tuple[str, ...]) -> Corpus:
    """A fold, read once in each process."""
    folder = FOLDER.joinpath(*(Path(each).name for each in more))
    return fold(name, folder, platforms=platforms, sources=(*SOURCES, *more))


def trained_on(name: str, variant: Variant, seed: int) -> list[NearTask]:
    """The tasks of a fold, a platform after the other, as a variant ranks them; whether each is near."""
    torch.set_num_threads(1)
    corpus, layout = corpus_of(name, variant.platforms, variant.more), variant.layout_read
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
    names = [platform.name for platform in corpus.whole.platforms]
    return [
        ranked_task(corpus, *place, scores)
        for place in judged_tasks(corpus)
        if not variant.judged or names[place[1]] in variant.judged
    ]


def run(kept: Picks, seeds: int, jobs: int) -> None:
    """Train what is not kept yet, seed by seed."""
    every = list({v.key: v for table in TABLES.values() for v in table.values()}.values())
    for more in {variant.more for variant in every}:
        for name in FOLDS:
            corpus_of(name, (), more)
    asked = [
        (variant, seed, name)
        for seed in range(seeds)
        for variant in every
        for name in FOLDS
        if not kept.has(variant.key, seed, variant.group(name))
    ]
    with ProcessPoolExecutor(jobs, mp_context=get_context("spawn")) as pool:
        jobs_of = {pool.submit(trained_on, name, v, seed): (v, seed, name) for v, seed, name in asked}
        for done, job in enumerate(as_completed(jobs_of), 1):
            variant, seed, name = jobs_of[job]
            kept.add(variant.key, seed, variant.group(name), job.result(), checked_out())
            kept.save()
            print(f"{done} of {len(asked)}: {name}, seed {seed}", flush=True)


def lines(kept: Picks, name: str) -> list[str]:
    """A table, of the variants whose folds are all there."""
    return table(
        [name],
        [
            ([words], cells)
            for words, variant in TABLES[name].items()
            for cells in kept.rows(variant.key, [variant.group(each) for each in FOLDS])
        ],
    )


def tables(kept: Picks) -> Made:
    """Of the page behind."""
    names = [variant.key for table in TABLES.values() for variant in table.values()]
    return Made([lines(kept, name) for name in TABLES], kept.commits(names))


def main() -> None:
    """Train what is missing, then write the page."""
    parser = argparse.ArgumentParser(description="Ablations, by families of training networks.")
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--jobs", type=int, default=2)
    parser.add_argument("--tables", action="store_true", help="write the tables of what is kept; run nothing")
    asked = parser.parse_args()
    kept = Picks(KEPT, OF)
    if not asked.tables:
        run(kept, asked.seeds, asked.jobs)
    words = "top-1 of the recipe and of its variants, by both metrics"
    put_picks("ablations", tables(kept), kept.file, words)


if __name__ == "__main__":
    main()
