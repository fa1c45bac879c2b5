"""TLP's network in the native core: equal to torch's to rounding, several times as fast on a CPU."""

from __future__ import annotations

import numpy as np
import torch

from tlp_tvm import _core
from tlp_tvm.model.tlp import TLPSettings


def native_network(
    settings: TLPSettings, network: torch.nn.Module, instruction_set: str = ""
) -> _core.Network | None:
    """The native form of a network.

    Args:
        settings: its shape.
        network: TLP's, or an exported one with the same names, in evaluation mode.
        instruction_set: one of `_core.instruction_sets()`; the fastest if empty.

    Returns:
        None for networks that only torch computes: published networks, and exported files of early versions,
        whose weights have no names.
    """
    if settings.faithful or settings.raw_numbers:
        return None
    tensors = {
        name: np.ascontiguousarray(tensor.detach().cpu().numpy(), np.float32)
        for name, tensor in network.state_dict().items()
    }
    if not tensors:
        return None
    return _core.Network(
        tensors,
        length=settings.length,
        width=settings.width,
        hidden=settings.hidden,
        attention_heads=settings.attention_heads,
        layers=settings.layers,
        members=settings.members,
        heads=settings.heads,
        positions=settings.positions,
        instruction_set=instruction_set,
    )
