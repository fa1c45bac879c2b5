"""`tlp-tvm evaluate`: one model on its own, or several rankers side by side."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from tlp_tvm.cli.parts.common import files_of_networks, print_json, print_table
from tlp_tvm.cli.parts.progress import status
from tlp_tvm.cli.parts.ranking_tables import print_comparison, ranking_table

if TYPE_CHECKING:
    from tlp_tvm.evaluation.corpus import Corpus
    from tlp_tvm.evaluation.rankers import Ranker
    from tlp_tvm.model.scoring import ScoringModel

EPOCHS = 50
"""Of baselines that are networks."""


@dataclass(frozen=True)
class Rankings:
    """Options of the command line."""

    models: Sequence[str]
    dataset: Sequence[Path]
    split: str | None
    platforms: Sequence[str] | None
    ks: Sequence[int]
    """Empty for the default."""
    baselines: str
    seeds: range
    seen: str
    epochs: int | None
    cache: Path
    networks: Sequence[Path]
    """Folders of network files."""
    png: Path | None
    device: str
    as_json: bool

    @property
    def source(self) -> Path | Sequence[Path]:
        """The dataset as `load_measured` takes it."""
        return self.dataset[0] if len(self.dataset) == 1 else self.dataset

    @property
    def counts(self) -> list[int]:
        """Numbers of seen programs.

        Raises:
            BadParameter: a part of --seen is no number.
        """
        parts = [part.strip() for part in self.seen.split(",")]
        if not all(part.isdigit() for part in parts):
            raise typer.BadParameter(
                f"expected numbers such as 0,16,64, found {self.seen}", param_hint="--seen"
            )
        return sorted({int(part) for part in parts})

    def corpus(self, model: ScoringModel | None = None) -> Corpus:
        """The dataset, in the layout of a model or of its framework."""
        from tlp_tvm.dataset import framework_of_dataset
        from tlp_tvm.evaluation.corpus import Corpus
        from tlp_tvm.layout import FeatureLayout

        layout = model.layout if model else FeatureLayout.preset(framework_of_dataset(self.source))
        return Corpus(self.source, layout, platforms=self.platforms, split=self.split)


def models_and_dataset(names: Sequence[str]) -> tuple[list[str], list[Path]]:
    """Split the arguments: models come first, the last name is always the dataset's."""
    from tlp_tvm.model.checkpoint import CONFIG, shipped_models

    count = min(1, len(names) - 1)
    while count and count < len(names) - 1:
        path = Path(names[count])
        is_model = (path / CONFIG).is_file() or path.suffix == ".pt"
        if not is_model and (path.exists() or names[count] not in shipped_models()):
            break
        count += 1
    return list(dict.fromkeys(names[:count])), [Path(name) for name in names[count:]]


def evaluate_rankings(options: Rankings) -> None:
    """Rank, and print the tables or JSON."""
    from tlp_tvm.evaluation.baselines import BaselineSettings, make_baselines
    from tlp_tvm.evaluation.baselines.informed_ranker import InformedRanker
    from tlp_tvm.evaluation.rankers import ModelRanker
    from tlp_tvm.model.checkpoint import load_model

    counts = options.counts
    chosen = [name.strip() for name in options.baselines.split(",") if name.strip()]
    settings = BaselineSettings(
        epochs=options.epochs or EPOCHS,
        cache=options.cache,
        network_files=files_of_networks(options.networks),
        device=options.device,
    )
    baselines = make_baselines(chosen, settings)
    loaded = [load_model(model).to(options.device) for model in options.models]
    corpus = options.corpus(loaded[0] if loaded else None)
    about = {"dataset_digest": corpus.whole.digest, "split": corpus.split}
    title = f"{', '.join(options.models) or 'baselines'}: {corpus.split or 'all'} tasks"
    named = list(zip(loaded, options.models, strict=True))
    models = [ModelRanker(model, name) for model, name in named]
    if options.networks:
        models += [
            InformedRanker(model, f"{name} with trees", settings) for model, name in named if model.trees
        ]
    several = len(models) != 1 or chosen or len(options.seeds) > 1
    if several or counts != [0] or options.png is not None:
        _compare(corpus, [*models, *baselines], options, about, title)
    else:
        _rank(corpus, models[0], options, about, title)


def _rank(corpus: Corpus, ranker: Ranker, options: Rankings, about: dict[str, Any], title: str) -> None:
    """One model, compared with a random pick."""
    import numpy as np

    from tlp_tvm.dataset.ranking import ranking_rows

    ranker.fit(corpus, 0, lambda words: None)
    columns = range(len(corpus.whole.platforms))
    scores = np.stack([ranker.scores(corpus.judged_programs, column) for column in columns], 1)
    found = ranking_rows(corpus.judged, scores, options.ks or (1, 5), options.seeds[0], near=corpus.near)
    rows = [row.to_dict() for row in found]
    if options.as_json:
        print_json({"model": ranker.name, **about, "rows": rows})
    else:
        print_table(ranking_table(rows, title))


def _compare(
    corpus: Corpus, rankers: Sequence[Ranker], options: Rankings, about: dict[str, Any], title: str
) -> None:
    """Several rankers, with mean and spread over seeds."""
    from tlp_tvm.evaluation.side_by_side import KS, compare_rankers

    with status("reading the dataset") as tell:
        comparison = compare_rankers(
            corpus, rankers, seeds=options.seeds, seen=options.counts, ks=options.ks or KS, tell=tell
        )
    if options.png is not None:
        from tlp_tvm.evaluation.ranking_plot import draw_rankers

        draw_rankers(comparison.rows, options.png)
    if options.as_json:
        seeds = list(options.seeds)
        print_json({"models": options.models, **about, "seeds": seeds, **comparison.to_dict()})
    else:
        print_comparison(comparison, title, len(options.seeds))
