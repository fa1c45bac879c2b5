"""One step of training: Adam, a clipped gradient for every member, a moving average of the weights."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from tlp_tvm.model.losses import FUNCTIONS
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.training.batches import Batch
from tlp_tvm.training.peers import Peers
from tlp_tvm.training.start import Start
from tlp_tvm.training.train_settings import TrainSettings


class Learner:
    """A network in training.

    Attributes:
        network: what learns.
        optimizer: of its weights.
        cuts_padding: whether the network gives the same scores without it.
        average: moving average of the weights; what is validated and kept.
    """

    def __init__(
        self,
        model: TLPSettings,
        settings: TrainSettings,
        device: torch.device,
        peers: Peers,
        start: Start | None = None,
    ) -> None:
        """Draw the weights, or take those of a start; torch's random state stays as it is."""
        self.settings = settings
        self.device = device
        self.peers = peers
        self.cuts_padding = not model.faithful
        self._heads = model.heads
        self._precision = settings.precision.on(device)
        self._generators = [device] if device.type == "cuda" else []
        with torch.random.fork_rng(self._generators):
            torch.manual_seed(settings.seed)
            self.network = TLP(model).to(device)
        if start is not None:
            start.put_into(self.network)
        self.optimizer = torch.optim.Adam(
            self.network.parameters(), lr=settings.learning_rate, weight_decay=settings.weight_decay
        )
        self.average = copy_of(self.network.state_dict())

    def step(self, batch: Batch, progress: float, step: tuple[int, int]) -> Tensor:
        """Learn from a batch.

        Args:
            batch: this process's share of it.
            progress: how much of the training is done, in [0, 1); the learning rate depends on it.
            step: epoch and batch, which with the seed and the process say what dropout drops.

        Returns:
            The mean loss of the members on the batch of all processes, a scalar without gradient.
        """
        for group in self.optimizer.param_groups:
            group["lr"] = self.settings.learning_rate * 0.5 * (1.0 + math.cos(math.pi * progress))
        self.network.train()
        with torch.random.fork_rng(self._generators):
            entropy = (self.settings.seed, *step, self.peers.rank)
            torch.manual_seed(int(np.random.SeedSequence(entropy).generate_state(1)[0]))
            scores = self._scores(batch)  # (members, n, P)
        loss_of = FUNCTIONS[self.settings.loss]
        losses = [loss_of(each, batch.labels, batch.groups, self.peers.over_all) for each in scores]
        loss = torch.stack(losses).sum()
        self.optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        self.peers.sum_gradients(self.network)
        for member in self.network.members:
            nn.utils.clip_grad_norm_(member.parameters(), self.settings.gradient_clip)
        self.optimizer.step()
        with torch.no_grad():
            for name, tensor in self.network.state_dict().items():
                self.average[name].lerp_(tensor, 1.0 - self.settings.average)
        return self.peers.over_all(loss.detach()) / len(losses)

    def _scores(self, batch: Batch) -> Tensor:
        """(members, n, P) float32; n is 0 where there were fewer lists than processes."""
        if not len(batch):
            shape = (len(self.network.members), 0, self._heads)
            return torch.zeros(shape, device=self.device, requires_grad=True)
        with torch.autocast(self.device.type, self._precision, enabled=self._precision != torch.float32):
            scores = [self.network.of_members(x) for x in batch.parts]
        return torch.cat(scores, dim=1).float()


def copy_of(weights: dict[str, Tensor]) -> dict[str, Tensor]:
    """The same values in memory of their own."""
    return {name: tensor.detach().clone() for name, tensor in weights.items()}
