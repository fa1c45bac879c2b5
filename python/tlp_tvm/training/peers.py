"""The processes that train one model together, as `torchrun` starts them.

Every process has the same weights and takes some lists of every batch. Counts and gradients are summed, so a
step is that of one process with the whole batch, whatever the number of processes (but for dropout, which
draws anew, and for rounding). Process 0 writes the files.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterator
from dataclasses import dataclass

import torch
import torch.distributed as dist
from torch import Tensor, nn

from tlp_tvm.model.scoring import pick_device
from tlp_tvm.training.batches import Lists


@dataclass(frozen=True)
class Peers:
    """This process among the others."""

    rank: int = 0
    count: int = 1

    @property
    def writes(self) -> bool:
        """Whether this process writes files and tells the user."""
        return self.rank == 0

    def share(self, lists: Lists) -> Lists:
        """This process's lists of a batch: the longest first, each to who has the fewest programs so far."""
        shares: list[Lists] = [[] for _ in range(self.count)]
        for each in sorted(lists, key=len, reverse=True) if self.count > 1 else lists:
            min(shares, key=lambda share: sum(map(len, share))).append(each)
        return shares[self.rank]

    def over_all(self, values: Tensor) -> Tensor:
        """The sum over the processes."""
        if self.count > 1:
            values = values.clone()
            dist.all_reduce(values)
        return values

    def sum_gradients(self, network: nn.Module) -> None:
        """Replace every gradient by its sum over the processes."""
        if self.count == 1:
            return
        parameters = [each for each in network.parameters() if each.numel() and each.requires_grad]
        flat = torch.cat(
            [(torch.zeros_like(each) if each.grad is None else each.grad).reshape(-1) for each in parameters]
        )
        sums = torch.split(self.over_all(flat), [each.numel() for each in parameters])
        for each, gradient in zip(parameters, sums, strict=True):
            each.grad = gradient.view_as(each).clone()

    def wait(self) -> None:
        """Go on once all processes are here."""
        if self.count > 1:
            dist.barrier()


ALONE = Peers()


def writes_here() -> bool:
    """Whether this process is alone, or the first of those that `torchrun` started."""
    return not dist.is_torchelastic_launched() or os.environ["RANK"] == "0"


@contextlib.contextmanager
def joined(device: str) -> Iterator[tuple[Peers, torch.device]]:
    """Join the processes that `torchrun` started, if it did.

    Args:
        device: "auto", or torch's name; each process of a machine has a GPU of its own.

    Yields:
        The peers, and this process's device.
    """
    place = pick_device(device)
    if not dist.is_torchelastic_launched():
        yield ALONE, place
        return
    if place.type == "cuda":
        place = torch.device("cuda", int(os.environ["LOCAL_RANK"]))
        torch.cuda.set_device(place)
    dist.init_process_group("nccl" if place.type == "cuda" else "gloo")
    try:
        yield Peers(dist.get_rank(), dist.get_world_size()), place
    finally:
        dist.destroy_process_group()
