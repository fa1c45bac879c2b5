"""ScoringModel: a trained model, loaded from any kind of model file."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache, cached_property, partial
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from tlp_tvm import _core
from tlp_tvm.embedding import Embedding
from tlp_tvm.errors import ModelFileError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.model.config import ModelConfig
from tlp_tvm.model.native import native_network
from tlp_tvm.model.tlp import TLP
from tlp_tvm.model.trees.store_trees import StoreTrees

BATCH = 128
"""Programs per pass on a CPU, chosen so that their data stays in its caches."""

GPU_BATCH = 4096
"""Programs per pass on other devices."""

MCPU_FLAG = "-mcpu="

MEAN = "mean"
"""Instead of a platform: the mean of all heads, for hardware that no head is for."""


_ALL = -1
"""Instead of a head."""


@cache
def _threads(count: int) -> ThreadPoolExecutor:
    """Threads that score one batch each. torch's own threads are off: a batch is too small to split."""
    return ThreadPoolExecutor(count, "score", initializer=partial(torch.set_num_threads, 1))


def pick_device(name: str) -> torch.device:
    """A torch device; "auto" is a GPU if there is one."""
    if name == "auto":
        name = "cuda" if torch.cuda.is_available() else "cpu"
    return torch.device(name)


class ScoringModel:
    """Scores embeddings, higher is better.

    Attributes:
        name: the name it was loaded by.
        layout: layout of the embeddings that it reads.
        platforms: names of its heads.
        targets: TVM's target string of each platform.
        card: the complete description in the model's file (`tlp_tvm.model.config`).
        trees: what it says of programs that TVM has lowered; None where it was not asked to learn that.
    """

    def __init__(
        self, name: str, config: ModelConfig, network: torch.nn.Module, trees: StoreTrees | None = None
    ) -> None:
        """Wrap a network.

        Args:
            name: of the model.
            config: its description.
            network: (n, L, E) -> (n, P), in evaluation mode.
            trees: beside it.
        """
        self.name = name
        self.config = config
        self.layout: FeatureLayout = config.layout
        self.platforms: tuple[str, ...] = tuple(p.name for p in config.platforms)
        self.targets: tuple[str, ...] = tuple(p.target for p in config.platforms)
        self.card: dict[str, Any] = config.card
        self.network = network
        self.device = torch.device("cpu")
        self.trees = trees

    def to(self, device: str) -> ScoringModel:
        """Move the network to a torch device, or "auto"; returns the model itself."""
        self.device = pick_device(device)
        self.network.to(self.device)
        return self

    def score(self, X: Embedding, platform: str | None = None) -> NDArray[np.float32]:
        """Score programs; the score of one does not depend on the others.

        Args:
            X: (N, L, E) float32 embeddings in the model's layout.
            platform: the head that scores, or "mean" for the mean of all heads. None if there is only one.

        Returns:
            (N,) float32, comparable within a task.

        Raises:
            ModelFileError: there is no such platform, none of several was chosen, or the embeddings have
                another shape.
        """
        if platform is None and len(self.platforms) > 1:
            raise ModelFileError(
                f"model {self.name}: expected a choice among its platforms {', '.join(self.platforms)}, or "
                f'"{MEAN}" for the mean of all, found none; give `platform`'
            )
        if platform == MEAN:
            return np.asarray(self.score_all(X).mean(1), np.float32)
        return self._scored(X, 0 if platform is None else self.column(platform))[:, 0]

    def score_all(self, X: Embedding) -> NDArray[np.float32]:
        """Scores of every head, (N, P) float32."""
        return self._scored(X, _ALL)

    @cached_property
    def _native(self) -> _core.Network | None:
        return native_network(self.config.settings, self.network)

    @property
    def native(self) -> _core.Network | None:
        """The native network, if that scores: on a CPU, and of a kind that the core computes."""
        return self._native if self.device.type == "cpu" else None

    def _scored(self, X: Embedding, column: int) -> NDArray[np.float32]:
        """(N, 1), or (N, P) for all heads."""
        if X.ndim != 3 or X.shape[1:] != (self.layout.length, self.layout.width):
            raise ModelFileError(
                f'model {self.name}: expected embeddings of the layout "{self.layout.name}" '
                f"(N, {self.layout.length}, {self.layout.width}), found {X.shape}"
            )
        if self.native is not None:
            return self.native.score(np.ascontiguousarray(X, np.float32), column, torch.get_num_threads())
        network = self.network
        if column == _ALL:
            return self._by_torch(X, network, len(self.platforms))
        if isinstance(network, TLP):
            return self._by_torch(X, lambda x: network.of_head(x, column)[:, None], 1)
        return self._by_torch(X, network, len(self.platforms))[:, [column]]  # it scores with all heads

    def _by_torch(
        self, X: Embedding, network: Callable[[Tensor], Tensor], columns: int
    ) -> NDArray[np.float32]:
        """(N, columns) float32, in batches."""
        scores = np.empty((len(X), columns), np.float32)
        # Programs of similar length share a batch, as the network cuts the padding common to a batch.
        lengths = (X != 0).any(-1).sum(-1)
        order = np.argsort(lengths, kind="stable")
        size = BATCH if self.device.type == "cpu" else GPU_BATCH
        batches = [order[begin : begin + size] for begin in range(0, len(X), size)]

        def score(batch: NDArray[np.int64]) -> None:
            longest = max(int(lengths[batch].max()), 1)
            if self.config.settings.faithful:
                longest = self.layout.length  # it scores the padding too
            with torch.inference_mode():
                part = torch.from_numpy(X[batch, :longest]).to(self.device, torch.float32)
                scores[batch] = network(part).cpu().numpy()

        threads = torch.get_num_threads() if self.device.type == "cpu" else 1
        if threads > 1 and len(batches) > 1:
            for _ in _threads(threads).map(score, batches):
                pass
        else:
            for batch in batches:
                score(batch)
        return scores

    def column(self, platform: str) -> int:
        """The index of a platform's head.

        Raises:
            ModelFileError: there is no such platform.
        """
        if platform not in self.platforms:
            raise ModelFileError(
                f"model {self.name}: expected one of its platforms {', '.join(self.platforms)}, "
                f'found "{platform}"'
            )
        return self.platforms.index(platform)

    def platform_of(self, target: str) -> str:
        """The platform that a TVM target names: the same target, or else the only one with its -mcpu.

        Of several, the one that this processor is, or else the only one of its generation, or else the last
        one of another generation with the same vectors and threads: what it knows of them holds here too.

        Raises:
            ModelFileError: no platform or more than one matches.
        """
        same = [n for n, t in zip(self.platforms, self.targets, strict=True) if _flags(t) == _flags(target)]
        mcpu = [
            n for n, t in zip(self.platforms, self.targets, strict=True) if _mcpu(t) == _mcpu(target) != ""
        ]
        fitting = same or mcpu
        if len(fitting) == 1:
            return fitting[0]
        here = this_cpu()
        if (named := here.platform(target)) in fitting:
            return named
        kin = [name for name in fitting if name.startswith(f"{here.generation}-")]
        if len(kin) == 1:
            return kin[0]
        kind = named.partition("-")[2]
        if alike := [name for name in fitting if kind and name.partition("-")[2] == kind]:
            return alike[-1]
        known = "; ".join(f"{n} ({t})" for n, t in zip(self.platforms, self.targets, strict=True))
        raise ModelFileError(
            f"model {self.name}: expected a target that names one of its platforms, {known}, "
            f'found "{target}"; choose a platform by name, or "{MEAN}" for the mean of all'
        )


class HasPlatforms(Protocol):
    """The part of a model that `platform_or_mean` needs."""

    def platform_of(self, target: str) -> str:
        """The platform that a TVM target names; raises ModelFileError if none fits."""
        ...


def network_of(model: ScoringModel, option: str) -> TLP:
    """The network of a model, where its parts are needed, not its scores alone.

    Args:
        model: any.
        option: that named it, for the error.

    Raises:
        ModelFileError: it is an exported file, which can only score.
    """
    if not isinstance(model.network, TLP):
        raise ModelFileError(
            f"{option} {model.name}: expected a shipped model or a checkpoint folder, found an exported "
            "file; give the folder that it was exported from"
        )
    return model.network


def platform_or_mean(model: HasPlatforms, target: str) -> str:
    """The platform that a TVM target names, or else `MEAN`."""
    try:
        return model.platform_of(target)
    except ModelFileError:  # no head is of that target
        return MEAN


def _flags(target: str) -> frozenset[str]:
    """The flags of a target that a user writes; TVM adds -keys."""
    return frozenset(flag for flag in target.split() if not flag.startswith("-keys="))


def _mcpu(target: str) -> str:
    return next((flag for flag in target.split() if flag.startswith(MCPU_FLAG)), "")
