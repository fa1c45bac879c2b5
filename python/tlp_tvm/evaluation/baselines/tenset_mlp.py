"""TenSet's cost model: an MLP over each store's features, summed over stores, then an MLP over the sum.

Zheng et al., "TenSet: A Large-scale Program Performance Dataset for Learned Tensor Compilers", NeurIPS 2021;
widths, rates and epochs are those of `mlp_model.py` in its repository, and rows end with marks of the task's
operators, as there; so is how it learns on from a task's own labels. Its loss ranks a batch of mixed tasks as
one list, ours each task's programs. It can mark targets too, but does not by itself; here, each platform has
its own network.
"""

from __future__ import annotations

import copy
import math
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tlp_tvm.evaluation.baselines.baseline_settings import PUBLISHED_EPOCHS, BaselineSettings
from tlp_tvm.evaluation.baselines.operator_kinds import KINDS, kinds_of_tasks, marked
from tlp_tvm.evaluation.baselines.store_features import StoreFeatures, store_features
from tlp_tvm.evaluation.baselines.training_tables import labelled
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.rankers import Programs, Tell, labels_of
from tlp_tvm.model.losses import FUNCTIONS, Loss
from tlp_tvm.model.scoring import pick_device
from tlp_tvm.model.trees.store_trees import STORE_WIDTH

WIDTH = STORE_WIDTH + len(KINDS)
HIDDEN = 256
LEARNING_RATE = 7e-4
WEIGHT_DECAY = 1e-6
GRADIENT_CLIP = 0.5
BATCH = 512
FINE_TUNING_RATE = 4e-2
FINE_TUNING_STEPS = 10
"""Of plain gradient descent, without a clip, on the labels of a task that is being searched."""


class StoreMLP(nn.Module):
    """(S, WIDTH) rows and whose each is -> (n,) scores of programs."""

    largest: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("largest", torch.ones(WIDTH))  # rows are divided by it
        self.encoder = nn.Sequential(
            nn.Linear(WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU()
        )
        self.first = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU())
        self.second = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU())
        self.out = nn.Linear(HIDDEN, 1)

    def forward(self, rows: Tensor, owner: Tensor, programs: int) -> Tensor:
        """Scores of `programs` programs."""
        summed = rows.new_zeros((programs, HIDDEN)).index_add(0, owner, self.encoder(rows / self.largest))
        summed = summed + self.first(summed)
        summed = summed + self.second(summed)
        return self.out(summed).squeeze(-1)  # type: ignore[no-any-return]

    def scores(self, rows: NDArray[np.float32], counts: NDArray[np.integer[Any]]) -> NDArray[np.float64]:
        """Scores of programs by their rows, as `StoreFeatures` has them, and `marked`.

        Args:
            rows: (S, WIDTH), those of a program behind each other.
            counts: (n,) rows of each; a program without is the last that anyone would run.
        """
        parts, ends = [np.empty(0)], np.cumsum(counts)
        with torch.inference_mode():
            for begin in range(0, len(counts), BATCH):
                some = counts[begin : begin + BATCH]
                end = int(ends[begin + len(some) - 1])
                parts.append(self._of(rows[end - int(some.sum()) : end], some).cpu().numpy())
        found = np.concatenate(parts).astype(np.float64)
        found[counts == 0] = -np.inf
        return found

    def step(
        self,
        optimizer: torch.optim.Optimizer,
        rows: NDArray[np.float32],
        counts: NDArray[np.integer[Any]],
        labels: Any,
        tasks: Any,
        clip: float = GRADIENT_CLIP,
    ) -> None:
        """Learn from programs of one or several tasks.

        Args:
            optimizer: `adam` of this network.
            rows: as for `scores`.
            counts: likewise.
            labels: (n,) relative speeds.
            tasks: (n,) of which task each is.
            clip: largest norm of the gradient.
        """
        device = self.largest.device
        targets = torch.from_numpy(np.asarray(labels, np.float32)).to(device)[:, None]
        groups = torch.from_numpy(np.asarray(tasks, np.int64)).to(device)
        loss = FUNCTIONS[Loss.LAMBDARANK](self._of(rows, counts)[:, None], targets, groups)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(self.parameters(), clip)
        optimizer.step()

    def taught(
        self, rows: NDArray[np.float32], counts: NDArray[np.integer[Any]], latencies: NDArray[np.float64]
    ) -> StoreMLP:
        """Another one, fine-tuned on measured programs of one task.

        Args:
            rows: as for `scores`.
            counts: likewise.
            latencies: (n,) seconds; infinity where it failed.
        """
        model = copy.deepcopy(self)
        optimizer = torch.optim.SGD(model.parameters(), lr=FINE_TUNING_RATE)
        tasks, labels = np.zeros(len(counts), np.int64), labels_of(latencies)
        for _ in range(FINE_TUNING_STEPS):
            model.step(optimizer, rows, counts, labels, tasks, math.inf)
        return model

    def _of(self, rows: NDArray[np.float32], counts: NDArray[np.integer[Any]]) -> Tensor:
        device = self.largest.device
        owner = torch.from_numpy(np.repeat(np.arange(len(counts)), counts)).to(device)
        found: Tensor = self(torch.from_numpy(rows).to(device), owner, len(counts))
        return found


def adam(model: StoreMLP) -> torch.optim.Adam:
    """What a network is trained by."""
    return torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)


class TenSetMLP:
    """One network per platform, by LambdaRank within tasks. In a search it trains on with its labels.

    Attributes:
        networks: of each platform, once it is fitted.
    """

    name = "tenset-mlp"
    is_fixed = False

    def __init__(self, settings: BaselineSettings) -> None:
        self.settings = settings
        self.notes: list[str] = []
        self.networks: list[StoreMLP] = []
        self._device = pick_device(settings.device)
        self._corpus: Corpus | None = None
        self._features: StoreFeatures | None = None
        self._marks: NDArray[np.float32]

    def fit(self, corpus: Corpus, seed: int, tell: Tell) -> dict[int, str]:
        """Compute features if need be, and train on all training tasks that have some, for each platform."""
        self._features = store_features(corpus, self.settings.cache, tell, self.settings.network_files)
        self._corpus, self.networks = corpus, []
        self._marks = kinds_of_tasks(corpus.whole.tasks)
        self.notes, unscored = self._features.notes(corpus), self._features.unscored(corpus)
        tasks = [task for task in corpus.training_tasks if task not in self._features.missing]
        if not tasks:
            return unscored
        programs = np.concatenate([corpus.whole.programs_of(task) for task in tasks])
        largest = np.maximum(np.abs(self._rows(programs)[0]).max(0, initial=0.0), 1e-6)
        for column, platform in enumerate(corpus.whole.platforms):
            tell(f"{self.name}, seed {seed}: {platform.name}")
            self.networks.append(self._trained(tasks, column, seed, largest))
        return unscored

    def scores(self, programs: Programs, column: int) -> NDArray[np.float64]:
        """What the platform's network says."""
        return self.networks[column].scores(*self._rows(programs))

    def scores_after(self, seen: Programs, rest: Programs, column: int) -> NDArray[np.float64]:
        """The same after some more steps on the labels of the task."""
        assert self._corpus is not None
        latencies = self._corpus.whole.latencies[seen, column]
        return self.networks[column].taught(*self._rows(seen), latencies).scores(*self._rows(rest))

    def _trained(self, tasks: list[int], column: int, seed: int, largest: NDArray[np.float32]) -> StoreMLP:
        assert self._corpus is not None
        whole = self._corpus.whole
        programs = labelled(self._corpus, tasks, column, len(whole), seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = StoreMLP()
        model.largest.copy_(torch.from_numpy(largest))
        model.to(self._device)
        optimizer = adam(model)
        rng = np.random.default_rng(seed)
        by_task = np.split(programs, np.flatnonzero(np.diff(whole.task_index[programs])) + 1)
        for _ in range(self.settings.epochs or PUBLISHED_EPOCHS):
            for batch in _batches(by_task, rng):
                labels, owners = whole.labels[batch, column], whole.task_index[batch]
                model.step(optimizer, *self._rows(batch), labels, owners)
        return model

    def _rows(self, programs: Programs) -> tuple[NDArray[np.float32], NDArray[np.int64]]:
        assert self._features is not None
        assert self._corpus is not None
        rows, owner = self._features.of(programs)
        marks = self._marks[self._corpus.whole.task_index[programs][owner]]
        return marked(rows, marks), self._features.counts[programs]


def _batches(by_task: list[Programs], rng: np.random.Generator) -> list[Programs]:
    """All programs once, in batches of random parts of tasks, so that each has partners of its own task."""
    parts = [
        part
        for programs in by_task
        for part in np.array_split(rng.permutation(programs), -(-len(programs) // BATCH))
    ]
    batches: list[list[Programs]] = [[]]
    for i in rng.permutation(len(parts)):
        if sum(map(len, batches[-1])) >= BATCH // 2:
            batches.append([])
        batches[-1].append(parts[i])
    return [np.concatenate(batch) for batch in batches]
