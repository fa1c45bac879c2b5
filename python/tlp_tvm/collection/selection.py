"""Chooses some of another platform's programs to measure."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tlp_tvm.adapting.program_source import ProgramSource
from tlp_tvm.evaluation.labelling import Choose, LabelCount, label_order
from tlp_tvm.model.tlp import TLP


def keep_chosen(sources: Sequence[ProgramSource], count: LabelCount, network: TLP, seed: int) -> None:
    """Leave each source only those waiting programs that are to be measured, the first ones first.

    Blocks of programs that the model finds unlike each other and is unsure of (`label_order`).
    The same programs, model and seed give the same choice, whatever was measured before.

    Args:
        sources: with the programs of another platform.
        count: how many of all.
        network: of a model of other platforms, in the layout of the programs.
        seed: of what is random in the order.
    """
    waiting = [program for source in sources for program in source.waiting or ()]
    if not waiting:
        return
    embeddings = np.concatenate([each.waiting_embeddings() for each in sources if each.waiting])
    task_of = np.repeat(np.arange(len(sources)), [len(source.waiting or ()) for source in sources])
    order = label_order(Choose.DIVERSE, task_of, lambda rows: embeddings[rows], seed, lambda: network)
    chosen = order[: count.of(len(waiting))]
    for i, source in enumerate(sources):
        source.waiting = [waiting[j] for j in chosen if task_of[j] == i]
