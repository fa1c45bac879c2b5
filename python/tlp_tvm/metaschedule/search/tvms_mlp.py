"""TVM's MLPModel made to work: in TVM 0.27 it fails at its first training, and later.

It passes PyTorch's StepLR an argument that newer versions lack; it holds out whole tasks to test itself by,
of which fewer than five leave none; and of a round of one program its network gives a number where a list is
expected. How it learns stays TVM's.
"""

from __future__ import annotations

from typing import Any
from unittest import mock

import torch

from tlp_tvm.metaschedule.loading.locate import load_tvm

load_tvm()

from tvm.s_tir.meta_schedule.cost_model import mlp_model  # noqa: E402 - which TVM is settled by load_tvm

_STEP_LR = torch.optim.lr_scheduler.StepLR


def working_mlp() -> Any:
    """`ms.cost_model.MLPModel`, for any number of tasks."""
    return mlp_model.MLPModel(trainer=_Trainer(mlp_model.TrainerConfig(test_split=0.5)))


class _Trainer(mlp_model.SegmentSumMLPTrainer):  # type: ignore[misc]
    """Tests itself by the programs that it learns from; nothing depends on what comes of that."""

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self.state.model.register_forward_hook(_as_list)

    def train_full(self) -> None:
        """Train on all that was measured; copies of it are held out."""
        data = self.state.data
        self.state.data = type(data)(
            [*data.items(), *((f"{key}, again", task) for key, task in data.items())]
        )
        try:
            with (
                mock.patch.object(torch.optim.lr_scheduler, "StepLR", _step_lr),
                mock.patch.object(mlp_model.random, "sample", lambda keys, k: keys[k:]),
            ):
                super().train_full()
        finally:
            self.state.data = data


def _as_list(_network: torch.nn.Module, _inputs: Any, scores: torch.Tensor) -> torch.Tensor:
    return scores.reshape(-1)


def _step_lr(optimizer: Any, step_size: int, gamma: float, **_verbose: bool) -> Any:
    return _STEP_LR(optimizer, step_size, gamma)
