"""What a model of MetaSchedule chooses, without measuring, for networks of families that it does not know.

Question: does it choose well there, and better than another model?
Set-up: cross-validation over the families of the training networks. In each fold one group of families is
left out of a training, whose model ranks the fold's measured programs, and chooses programs of some of its
networks, which run in turns with eager PyTorch; so does each model that is named.
Baseline: eager PyTorch, two threads, the same run.
Checked: outputs agree with eager's to 1e-4.

    python benchmarks/training_networks.py build/training
    .venv-metaschedule/bin/python benchmarks/trace_folds.py [--beside MODEL]

Twenty minutes on an idle machine. Shipped models have learned from the fold's networks too.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
from family_folds import SOURCES
from own_command import MAIN, ROOT, answer_of
from training_networks import NETWORKS

from tlp_tvm.adapting.program_source import prior_of
from tlp_tvm.adapting.search_scores import load_scorer
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.metaschedule.graph.prepared import prepared
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.loops import share_loops_of
from tlp_tvm.metaschedule.loading.targets import flags_of, target_of
from tlp_tvm.metaschedule.networks import end_to_end
from tlp_tvm.metaschedule.networks.builtin import relax_of, tasks_of
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.metaschedule.search.zero_shot import add_chosen, choose_program
from tlp_tvm.metaschedule.torch_compile.running import RunGraph
from tlp_tvm.model.trees.store_trees import FILE as TREES

FOLDS = {
    "residual": (["resnet"], ["resnet_basic-192", "resnet_bottleneck-160-b2"]),
    "mobile": (["mobilenet", "poolformer"], ["mobilenet_v1-192", "mobilenet_v2-160-slim", "poolformer-192"]),
    "text": (["bert", "electra"], ["bert-512x256", "electra-256x144"]),
    "images": (["vit", "deit", "swin", "mlp"], ["vit-256-256", "deit-320-192"]),
}
"""Families that are left out, and networks of them that run."""

DATA = SOURCES["metaschedule"]
TRAINING = ROOT / "build" / "training"
MEMBERS = "2"
TURNS, RUNS = 9, 10
AGREE = 1e-4


def trained(name: str, folder: Path) -> tuple[Path, Path]:
    """The dataset of a fold and the model that learned from its other families; made where missing."""
    source, model = folder / name, folder / f"model-{name}"
    if not source.exists():
        tests = [word for family in FOLDS[name][0] for word in ("--test", family)]
        how = ["--split", "family", *tests, "--validation-share", "0", "--out", str(source)]
        _run("dataset", "build", *DATA, *how)
    if not (model / "config.json").exists():
        _run("train", str(source), "--members", MEMBERS, "--out", str(model))
    if not (model / TREES).exists():
        _run("train", str(source), "--trees", "--networks", str(TRAINING), "--out", str(model))
    return source, model


def _run(*words: str) -> None:
    subprocess.run([sys.executable, "-c", MAIN, *words], cwd=ROOT, check=True, stdout=subprocess.DEVNULL)


def ranked(model: str, source: Path) -> list[str]:
    """Cells of how a model ranks the fold's programs with cold weights."""
    try:
        found = answer_of("evaluate", model, str(source))["rows"]
    except subprocess.CalledProcessError:  # a model that does not know the platform
        return ["-"] * 3
    cells = []
    for network, top in (("all networks", "1"), ("mean over tasks", "1"), ("mean over tasks", "5")):
        (row,) = [row for row in found if row["network"] == network]
        cells.append(f"{row['top'][top]:.3f}")
    return cells


def timed(name: str, model: str, seed: int) -> dict[str, Any]:
    """Milliseconds of a network with a model's choice and in eager PyTorch; for a process of its own."""
    torch.set_num_threads(this_cpu().cores)
    share_loops_of(load_tvm())
    from tvm.s_tir import meta_schedule as ms

    target, network = target_of(""), NETWORKS[name]
    torch.manual_seed(0)
    eager = network.make().eval()
    x = torch.randint(network.ids, network.shape) if network.ids else torch.randn(network.shape)
    with torch.inference_mode():
        expected = eager(x)
    with torch.no_grad():
        module = prepared(*relax_of(torch.export.export(eager, (x,)).run_decompositions()))
    scorer = load_scorer(model)
    prior = prior_of(scorer, flags_of(target))
    tasks = [TraceTask(task) for task in tasks_of(module, target)]
    chosen = {task.workload_key: choose_program(task, prior, seed, this_cpu().cores) for task in tasks}
    database = ms.database.MemoryDatabase()
    add_chosen(database, tasks, {key: trace for key, trace in chosen.items() if trace})
    ours = RunGraph(end_to_end.compiled(module, {}, target, database), [0], [None])
    difference = float((ours(x)[0] - expected).abs().max() / expected.abs().max())
    if difference > AGREE:
        raise SystemExit(f"{name}: outputs differ by {difference:.1e}")
    with torch.inference_mode():
        both = np.array([(_ms(lambda: ours(x)), _ms(lambda: eager(x))) for _ in range(TURNS)])
    return {"ours": float(np.median(both[:, 0])), "eager": float(np.median(both[:, 1]))}


def _ms(run: Callable[[], Any]) -> float:
    began = time.perf_counter()
    for _ in range(RUNS):
        run()
    return (time.perf_counter() - began) / RUNS * 1e3


def in_a_child(name: str, model: str, seed: int) -> dict[str, Any]:
    """`timed`, in a process of its own, as threads and compiled code of others stay in one."""
    with tempfile.NamedTemporaryFile("r", suffix=".json") as answer:
        words = [sys.executable, __file__, "--time", name, model, str(seed), answer.name]
        subprocess.run(words, check=True, stderr=subprocess.DEVNULL)
        found: dict[str, Any] = json.loads(Path(answer.name).read_text(encoding="utf-8"))
    return found


def main() -> None:
    """Train, rank, choose, run and print."""
    parser = argparse.ArgumentParser(description="Cross-validation of what a model of MetaSchedule chooses.")
    parser.add_argument("--folder", type=Path, default=ROOT / "build" / "trace-folds")
    parser.add_argument("--beside", action="append", default=[], help="another model beside")
    parser.add_argument("--seeds", type=int, default=2, help="of the choice")
    parser.add_argument("--time", nargs=4, help=argparse.SUPPRESS)
    asked = parser.parse_args()
    warnings.simplefilter("ignore")  # torch warns of itself
    if asked.time:
        name, model, seed, answer = asked.time
        Path(answer).write_text(json.dumps(timed(name, model, int(seed))), encoding="utf-8")
        return
    asked.folder.mkdir(parents=True, exist_ok=True)
    print("| left out | model | published top-1 | mean top-1 | mean top-5 | eager / ours | by network |")
    print("|---" * 7 + "|")
    for name, (_, networks) in FOLDS.items():
        source, model = trained(name, asked.folder)
        for of, ranker in [("of the others", str(model)), *((each, each) for each in asked.beside)]:
            runs = [[in_a_child(net, ranker, seed) for seed in range(asked.seeds)] for net in networks]
            ratios = [[run["eager"] / run["ours"] for run in each] for each in runs]
            mean = statistics.geometric_mean([ratio for each in ratios for ratio in each])
            pairs = zip(networks, ratios, strict=True)
            by_network = "; ".join(f"{net} {', '.join(f'{one:.2f}' for one in each)}" for net, each in pairs)
            cells = [name, of, *ranked(ranker, source), f"{mean:.2f}x", by_network]
            print(f"| {' | '.join(cells)} |", flush=True)


if __name__ == "__main__":
    main()
