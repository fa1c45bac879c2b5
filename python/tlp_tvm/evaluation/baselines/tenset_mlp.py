"""TenSet's cost model: an MLP over each store's features, summed over stores, then an MLP over the sum.

Zheng et al., "TenSet: A Large-scale Program Performance Dataset for Learned Tensor Compilers", NeurIPS 2021.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from tlp_tvm.evaluation.baselines.baseline_settings import PUBLISHED_EPOCHS, BaselineSettings
from tlp_tvm.evaluation.baselines.store_features import StoreFeatures, store_features
from tlp_tvm.evaluation.baselines.training_tables import labelled
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.rankers import Programs, Tell, labels_of
from tlp_tvm.model.losses import FUNCTIONS, Loss
from tlp_tvm.model.scoring import pick_device
from tlp_tvm.model.store_trees import STORE_WIDTH

HIDDEN = 256
LEARNING_RATE = 7e-4
WEIGHT_DECAY = 1e-6
GRADIENT_CLIP = 0.5
BATCH = 512
STEPS_SEEN = 20
"""Steps of training for the labels of a task that is being searched."""


class StoreMLP(nn.Module):
    """(S, 164) rows and whose each is -> (n,) scores of programs."""

    def __init__(self) -> None:
        super().__init__()
        self.encoder = nn.Sequential(
            nn.Linear(STORE_WIDTH, HIDDEN), nn.ReLU(), nn.Linear(HIDDEN, HIDDEN), nn.ReLU()
        )
        self.first = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU())
        self.second = nn.Sequential(nn.Linear(HIDDEN, HIDDEN), nn.ReLU())
        self.out = nn.Linear(HIDDEN, 1)

    def forward(self, rows: Tensor, owner: Tensor, programs: int) -> Tensor:
        """Scores of `programs` programs."""
        summed = rows.new_zeros((programs, HIDDEN)).index_add(0, owner, self.encoder(rows))
        summed = summed + self.first(summed)
        summed = summed + self.second(summed)
        return self.out(summed).squeeze(-1)  # type: ignore[no-any-return]


class TenSetMLP:
    """One network per platform, by LambdaRank within tasks. In a search it trains on with its labels."""

    name = "tenset-mlp"
    is_fixed = False

    def __init__(self, settings: BaselineSettings) -> None:
        self.settings = settings
        self.notes: list[str] = []
        self._device = pick_device(settings.device)
        self._corpus: Corpus | None = None
        self._features: StoreFeatures | None = None
        self._largest: NDArray[np.float32] = np.ones(STORE_WIDTH, np.float32)
        self._models: list[StoreMLP] = []

    def fit(self, corpus: Corpus, seed: int, tell: Tell) -> dict[int, str]:
        """Compute features if need be, and train on all training tasks that have some, for each platform."""
        self._features = store_features(corpus, self.settings.cache, tell, self.settings.network_files)
        self._corpus, self._models = corpus, []
        self.notes, unscored = self._features.notes(corpus), self._features.unscored(corpus)
        tasks = [task for task in corpus.training_tasks if task not in self._features.missing]
        if not tasks:
            return unscored
        programs = np.concatenate([corpus.whole.programs_of(task) for task in tasks])
        self._largest = np.maximum(np.abs(self._features.of(programs)[0]).max(0, initial=0.0), 1e-6)
        for column, platform in enumerate(corpus.whole.platforms):
            tell(f"{self.name}, seed {seed}: {platform.name}")
            self._models.append(self._trained(tasks, column, seed))
        return unscored

    def scores(self, programs: Programs, column: int) -> NDArray[np.float64]:
        """What the platform's network says."""
        return self._scores(self._models[column], programs)

    def scores_after(self, seen: Programs, rest: Programs, column: int) -> NDArray[np.float64]:
        """The same after some more steps on the labels of the task."""
        assert self._corpus is not None
        model = copy.deepcopy(self._models[column])
        optimizer = _adam(model)
        labels = labels_of(self._corpus.whole.latencies[seen, column])
        for _ in range(STEPS_SEEN):
            self._step(model, optimizer, seen, labels, np.zeros(len(seen), np.int64))
        return self._scores(model, rest)

    def _trained(self, tasks: list[int], column: int, seed: int) -> StoreMLP:
        assert self._corpus is not None
        whole = self._corpus.whole
        programs = labelled(self._corpus, tasks, column, len(whole), seed)
        with torch.random.fork_rng():
            torch.manual_seed(seed)
            model = StoreMLP().to(self._device)
        optimizer = _adam(model)
        rng = np.random.default_rng(seed)
        by_task = np.split(programs, np.flatnonzero(np.diff(whole.task_index[programs])) + 1)
        for _ in range(self.settings.epochs or PUBLISHED_EPOCHS):
            for batch in _batches(by_task, rng):
                self._step(model, optimizer, batch, whole.labels[batch, column], whole.task_index[batch])
        return model

    def _step(
        self, model: StoreMLP, optimizer: torch.optim.Adam, programs: Programs, labels: Any, tasks: Any
    ) -> None:
        scores = self._forward(model, programs)[:, None]
        targets = torch.from_numpy(np.asarray(labels, np.float32)).to(self._device)[:, None]
        groups = torch.from_numpy(np.asarray(tasks, np.int64)).to(self._device)
        loss = FUNCTIONS[Loss.LAMBDARANK](scores, targets, groups)
        optimizer.zero_grad()
        loss.backward()  # type: ignore[no-untyped-call]
        nn.utils.clip_grad_norm_(model.parameters(), GRADIENT_CLIP)
        optimizer.step()

    def _scores(self, model: StoreMLP, programs: Programs) -> NDArray[np.float64]:
        assert self._features is not None
        with torch.inference_mode():
            parts = [
                self._forward(model, programs[begin : begin + BATCH]).cpu().numpy()
                for begin in range(0, len(programs), BATCH)
            ]
        scores = np.concatenate([np.empty(0), *parts])
        scores[self._features.counts[programs] == 0] = -np.inf  # not lowered: the last that anyone would run
        return scores

    def _forward(self, model: StoreMLP, programs: Programs) -> Tensor:
        assert self._features is not None
        rows, owner = self._features.of(programs)
        scaled = torch.from_numpy(rows / self._largest).to(self._device)
        result: Tensor = model(scaled, torch.from_numpy(owner).to(self._device), len(programs))
        return result


def _adam(model: StoreMLP) -> torch.optim.Adam:
    return torch.optim.Adam(model.parameters(), lr=LEARNING_RATE, weight_decay=WEIGHT_DECAY)


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
