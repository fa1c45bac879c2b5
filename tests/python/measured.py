"""A part of the project's own measurements, small enough for a test."""

from __future__ import annotations

import gzip
import json
from collections.abc import Sequence
from pathlib import Path

from logs import DATASETS
from programs import write_packed

AVX2 = "epyc-avx2-1c"

TRAIN = (
    "bert_small-128__863af811c027",
    "dcgan__0a2469959b41",
    "mobilenet-224__60fbb51376ce",
    "squeezenet__127690165152",
    "vgg_11__0a0ec00e100d",
)
TEST = ("bert_base-128__92fb8a6a1a63", "bert_tiny-128__b77812d9dfb1")


def part_of_epyc(
    folder: Path,
    train: Sequence[str] = TRAIN,
    test: Sequence[str] = TEST,
    programs: int = 24,
    platforms: Sequence[str] = (AVX2,),
) -> Path:
    """A dataset folder with a few programs of a few tasks of `datasets/epyc`; its table lists only those."""
    for platform in platforms:
        for split, names in (("train", train), ("test", test)):
            place = folder / platform / split
            place.mkdir(parents=True)
            for name in names:
                with gzip.open(DATASETS / "epyc" / platform / split / f"{name}.json.gz", "rt") as source:
                    lines = [line for _, line in zip(range(programs), source, strict=False)]
                write_packed(place / f"{name}.json.gz", "".join(lines))
    ids = {name.split("__")[1] for name in (*train, *test)}
    table = json.loads((DATASETS / "epyc" / "tasks.json").read_text())
    (folder / "tasks.json").write_text(json.dumps([entry for entry in table if entry["task"] in ids]))
    return folder
