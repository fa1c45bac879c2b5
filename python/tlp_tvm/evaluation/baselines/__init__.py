"""Baselines: they learn from the same records as models and are evaluated on the same tasks."""

from __future__ import annotations

from collections.abc import Sequence

from tlp_tvm.errors import DatasetError
from tlp_tvm.evaluation.baselines.baseline_settings import BaselineSettings
from tlp_tvm.evaluation.rankers import Ranker
from tlp_tvm.evaluation.side_by_side import RANDOM

BASELINES: dict[str, str] = {
    RANDOM: "what a random pick reaches on average",
    "xgboost-sequence": "XGBoost on the flattened sequence of primitives",
    "xgboost-features": "XGBoost on TVM's per-store features, as TVM's own XGBModel sums them",
    "xgboost-tvm": "the same with TVM's parameters, and as many trees",
    "xgboost-tenset": "the same with TenSet's parameters, loss and marks of operators",
    "tenset-mlp": "TenSet's MLP on TVM's per-store features",
    "tlp": "our TLP, one network per platform, of two members that are averaged, trained for the comparison",
    "mtl-tlp": "our MTL-TLP, one head per platform, of two members, trained for the comparison",
    "tlp-one": "the same of one member",
    "mtl-tlp-one": "the same of one member",
    "published-tlp": "TLP as published, one network per platform; it does not learn in a search",
    "published-mtl-tlp": "MTL-TLP as published, one head per platform; it does not learn in a search",
}
"""Name -> what it is."""


def make_baselines(names: Sequence[str], settings: BaselineSettings) -> list[Ranker]:
    """Baselines by name; a random pick is in every comparison and needs no ranker.

    Raises:
        DatasetError: there is none of a name.
    """
    rankers: list[Ranker] = []
    for name in dict.fromkeys(names):
        if name == "xgboost-sequence":
            from tlp_tvm.evaluation.baselines.xgboost_sequence import XGBoostSequence

            rankers.append(XGBoostSequence(settings))
        elif name in ("xgboost-features", "xgboost-tvm", "xgboost-tenset"):
            from tlp_tvm.evaluation.baselines.xgboost_features import XGBoostFeatures

            rankers.append(XGBoostFeatures(settings, name))
        elif name == "tenset-mlp":
            from tlp_tvm.evaluation.baselines.tenset_mlp import TenSetMLP

            rankers.append(TenSetMLP(settings))
        elif "tlp" in name and name in BASELINES:
            from tlp_tvm.evaluation.baselines.trained_tlp import TrainedTLP

            rankers.append(TrainedTLP(settings, name))
        elif name != RANDOM:
            raise DatasetError(f'`baselines`: expected some of {", ".join(BASELINES)}, found "{name}"')
    return rankers


__all__ = ["BASELINES", "BaselineSettings", "make_baselines"]
