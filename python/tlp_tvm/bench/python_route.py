"""The encoder one writes without native code: the baseline of every benchmark of extraction."""

from __future__ import annotations

from typing import Any

import numpy as np

from tlp_tvm.features import Embedding
from tlp_tvm.layout import FeatureLayout


class PythonEncoder:
    """A flat layout, value by value: one-hot, then the fields, names by their token, cut at the width."""

    def __init__(self, layout: FeatureLayout) -> None:
        spec = layout.to_dict()
        if "fields" in spec:
            raise ValueError(f"layout {layout.name}: expected a flat one, found an aligned one")
        self._shape = (layout.length, layout.width)
        kinds = spec["kinds"]
        self._no_kind = [0.0] * len(kinds)
        self._one_hot = {kind: [float(i == k) for i in range(len(kinds))] for k, kind in enumerate(kinds)}
        self._tokens = {key.split(".")[0]: names for key, names in spec["tokens"].items()}

    def encode(self, steps: list[list[Any]]) -> Embedding:
        """One program in record form as (L, E) float32."""
        length, width = self._shape
        out = np.zeros(self._shape, np.float32)
        for row, step in enumerate(steps[:length]):
            values = list(self._one_hot.get(step[0], self._no_kind))
            for field in step[1:]:
                if isinstance(field, list):
                    values += field
                elif isinstance(field, str):
                    values.append(self._tokens[step[0]].get(field, 0))
                else:
                    values.append(field)
            values = values[:width]
            out[row, : len(values)] = values
        return out
