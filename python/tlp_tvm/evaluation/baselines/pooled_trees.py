"""Fits the trees that a model asks of programs which TVM has lowered (`model.trees.store_trees`).

Chosen by cross-validation over the families of the training networks: of networks left out, the first choice
of the network alone reaches .68 of the best speed on a Zen 5, of these trees .76; with one model a platform,
as `xgboost-features` has it, .67 on a Zen 3 instead of .70. Of MetaSchedule's programs there, the network
reaches .66, trees .77.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.errors import DatasetError
from tlp_tvm.evaluation.baselines.baseline_settings import BaselineSettings
from tlp_tvm.evaluation.baselines.boosting import common_parameters, load_xgboost
from tlp_tvm.evaluation.baselines.store_features import StoreFeatures, store_features
from tlp_tvm.evaluation.baselines.training_tables import labelled
from tlp_tvm.evaluation.baselines.xgboost_features import PARAMETERS, summed_error
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.rankers import Programs, Tell
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.trees.store_trees import StoreTrees, with_platform
from tlp_tvm.model.trees.tile_sizes import TILE_WIDTH, tile_sizes

TILES = "tile sizes"


def fit_trees(corpus: Corpus, settings: BaselineSettings, seed: int, tell: Tell) -> StoreTrees:
    """Fit to the training tasks of all platforms of a corpus together.

    Args:
        corpus: what to learn from; other tasks are not looked at.
        settings: the number of trees, the cache of features, and the files of networks.
        seed: of the programs that a tree sees.
        tell: receives a line before each long step.

    Raises:
        DatasetError: there is nothing to learn from.
        TvmNotFoundError: features are missing in the cache, and there is no TVM to compute them.
    """
    features = store_features(corpus, settings.cache, tell, settings.network_files)
    for note in features.notes(corpus):
        tell(note)
    tasks = [task for task in corpus.training_tasks if task not in features.missing]
    if not tasks:
        raise DatasetError(
            "`trees`: expected training tasks with per-store features, found none; give the files of their "
            "networks with `networks`"
        )
    return _fitted(corpus, features, tasks, settings, seed)


def _fitted(
    corpus: Corpus, features: StoreFeatures, tasks: list[int], settings: BaselineSettings, seed: int
) -> StoreTrees:
    xgboost = load_xgboost()
    platforms = tuple(platform.name for platform in corpus.whole.platforms)
    tables, owners, labels, count = [], [], [], 0
    for column in range(len(platforms)):
        programs = labelled(corpus, tasks, column, settings.most_programs, seed)
        rows, owner = features.of(programs)
        tables.append(with_platform(rows, tiles_of(corpus, programs)[owner], column, len(platforms)))
        owners.append(owner + count)
        labels.append(corpus.whole.labels[programs, column])
        count += len(programs)
    table = np.concatenate(tables)
    booster = xgboost.train(
        common_parameters(seed, len(table)) | PARAMETERS,
        xgboost.DMatrix(table, nthread=1),
        settings.rounds,
        obj=summed_error(np.concatenate(owners), np.concatenate(labels)),
    )
    return StoreTrees.of_dump(booster.get_dump(dump_format="json"), platforms, TILE_WIDTH)


def tiles_of(corpus: Corpus, programs: Programs) -> NDArray[np.float32]:
    """(n, T) tile sizes of programs of a corpus, as `model.trees.tile_sizes` has them."""
    layout = FeatureLayout.preset(corpus.whole.layout.framework)
    if TILES not in corpus.kept:
        whole = np.arange(len(corpus.whole))
        parts = (corpus.embeddings(layout, part) for part in np.array_split(whole, 1 + len(whole) // 1024))
        corpus.kept[TILES] = np.concatenate([tile_sizes(part, layout) for part in parts])
    sizes: NDArray[np.float32] = corpus.kept[TILES][programs]
    return sizes
