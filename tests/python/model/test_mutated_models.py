"""A few hundred of the damaged files that `make fuzz` and `make sanitize` make by the thousand."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace

import pytest
import torch

from mutated_models import SHARES, Cases
from tlp_tvm import _core
from tlp_tvm.model import scoring
from tlp_tvm.model.native import native_network
from tlp_tvm.model.tlp import TLPSettings


def test_damaged_files_are_refused_or_score_as_torch_does() -> None:
    with Cases() as cases:
        counts = Counter(cases.run(f"3/{number}") for number in range(400))
    assert counts.keys() == {f"{kind} {what}" for kind in SHARES for what in ("read", "refused")}


def test_a_model_that_scores_otherwise_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    def with_one_head(settings: TLPSettings, network: torch.nn.Module) -> _core.Network | None:
        return native_network(replace(settings, attention_heads=1), network)

    monkeypatch.setattr(scoring, "native_network", with_one_head)
    with Cases() as cases:
        seeds = [f"3/{number}" for number in range(400)]
        with pytest.raises(AssertionError, match="Not equal to tolerance"):
            Counter(map(cases.run, seeds))
