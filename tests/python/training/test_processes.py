"""Training by several processes, and in less precision."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from programs import LAYOUT, tiny_settings
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.model.checkpoint import load_model
from tlp_tvm.training.peers import Peers
from tlp_tvm.training.train_settings import Precision
from trainings import SHORT, run


def test_every_list_goes_to_one_process_and_programs_are_balanced() -> None:
    rng = np.random.default_rng(0)
    lists = [rng.integers(1000, size=size) for size in rng.integers(1, 257, size=40)]
    shares = [Peers(rank, 3).share(lists) for rank in range(3)]
    assert sorted(id(each) for share in shares for each in share) == sorted(map(id, lists))
    sizes = [sum(map(len, share)) for share in shares]
    assert max(sizes) - min(sizes) <= 32
    assert [Peers(rank, 3).share(lists[:1]) for rank in range(3)] == [[lists[0]], [], []]


def command(*arguments: object, processes: int = 1) -> str:
    """Run `tlp-tvm train` as a user does."""
    script = [str(Path(sys.executable).with_name("tlp-tvm")), "train", *map(str, arguments)]
    several = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--no-python"]
    launcher = [*several, "--nproc-per-node", str(processes)] if processes > 1 else []
    environment = os.environ | {"OMP_NUM_THREADS": "1"}
    done = subprocess.run(
        [*launcher, *script], env=environment, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_two_processes_train_the_model_of_one(built: Path, tmp_path: Path) -> None:
    # 7 tasks and 1 a batch: the second process gets 3, and then none.
    options = ("--epochs", 8, "--hidden", 16, "--batch", 120, "--stream", "--json")
    alone = command(built, "--out", tmp_path / "alone", *options)
    together = command(built, "--out", tmp_path / "together", *options, processes=2)
    assert len(together.splitlines()) == len(alone.splitlines()) == 1  # one of them talks
    names = sorted(path.name for path in (tmp_path / "alone").iterdir())
    assert sorted(path.name for path in (tmp_path / "together").iterdir()) == names
    losses = [
        [json.loads(line)["loss"] for line in (tmp_path / name / "metrics.jsonl").read_text().splitlines()]
        for name in ("alone", "together")
    ]
    np.testing.assert_allclose(losses[1], losses[0], rtol=1e-4)
    assert losses[0][-1] < losses[0][0]
    models = [load_model(tmp_path / name) for name in ("alone", "together")]
    x = load_measured(built, LAYOUT.with_shape(length=models[0].layout.length)).features()
    scores = [model.score_all(x) for model in models]
    np.testing.assert_allclose(scores[1], scores[0], atol=1e-3 * np.ptp(scores[0]))


@pytest.mark.parametrize("positions", [False, True])
def test_bfloat16_comes_close_on_a_cpu_too(built: Path, tmp_path: Path, positions: bool) -> None:
    data = load_measured(built, LAYOUT)
    model = tiny_settings(positions=positions)
    settings = replace(SHORT, epochs=2)
    full = run(data, tmp_path / "full", settings, model)
    less = run(data, tmp_path / "less", replace(settings, precision=Precision.BFLOAT16), model)
    assert all(tensor.dtype == torch.float32 for tensor in less.weights.values())
    losses = [[entry["loss"] for entry in trained.history] for trained in (full, less)]
    assert losses[0] != losses[1]
    np.testing.assert_allclose(losses[1], losses[0], rtol=0.02)


def test_precision_is_chosen_by_the_device() -> None:
    cpu = torch.device("cpu")
    found = [precision.on(cpu) for precision in Precision]
    assert found == [torch.float32, torch.float32, torch.bfloat16]
