"""`tlp-tvm train --trees`: trees on TVM's per-store features, beside a trained network."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tlp_tvm.cli.parts.common import console, files_of_networks, print_json, progress_console

if TYPE_CHECKING:
    from tlp_tvm.model.trees.store_trees import StoreTrees


HEADING = "## Trees\n\n"
"""Of the card's part on them, the last one."""


def _section(trees: StoreTrees, digest: str) -> str:
    depth = trees.leaves.shape[1].bit_length() - 1
    return (
        f"{len(trees.leaves)} trees, at most {depth} deep, on TVM's per-store features and tile sizes of "
        f"programs of {', '.join(trees.platforms)}, fitted to the training tasks of the dataset with the "
        f"digest `{digest}`. They judge programs that TVM has lowered, where nothing is measured yet.\n"
    )


def train_trees(
    source: Any,
    model: Path,
    platforms: Sequence[str] | None,
    networks: Sequence[Path],
    *,
    seed: int,
    as_json: bool,
) -> None:
    """Fit the trees and write them into a model's folder.

    Args:
        source: the dataset.
        model: the folder; its network stays as it is.
        platforms: to learn from; all that the dataset has where None.
        networks: folders of the files of networks that are not built in.
        seed: of the programs that a tree sees.
        as_json: whether to print JSON.
    """
    from tlp_tvm.evaluation.baselines.baseline_settings import BaselineSettings
    from tlp_tvm.evaluation.baselines.pooled_trees import fit_trees
    from tlp_tvm.evaluation.corpus import Corpus
    from tlp_tvm.files import write_whole
    from tlp_tvm.model.checkpoint import load_checkpoint
    from tlp_tvm.training.runs.model_folder import CARD

    layout = load_checkpoint(model).layout
    corpus = Corpus(source, layout, platforms=platforms, judges=False)
    settings = BaselineSettings(network_files=files_of_networks(networks))
    trees = fit_trees(corpus, settings, seed, lambda words: progress_console.print(words, style="dim"))
    trees.save(model)
    card = model / CARD
    before = card.read_text().partition(HEADING)[0].rstrip() if card.exists() else f"# Model `{model.name}`"
    write_whole(card, f"{before}\n\n{HEADING}{_section(trees, corpus.whole.digest)}")
    if as_json:
        print_json({"model": str(model), "trees": len(trees.leaves), "platforms": list(trees.platforms)})
    else:
        console.print(f"{len(trees.leaves)} trees for {', '.join(trees.platforms)}: {model}")
