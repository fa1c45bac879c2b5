"""What does a rule of the search gain on single tasks?

Set-up: the heaviest tasks of some networks are searched with the same model, seed and number of programs,
with and without the rule, in turns; programs are measured as `tlp-tvm tune` does.
Baseline: the search without the rule.
Checked before anything is printed: every search measured as many programs as were asked for.
Takeaway: the lowest label after 16, 32, 48 and 64 programs relative to the baseline's, as geometric mean with
its standard error and the range over searches; and the ratio of their times.

    python benchmarks/task_searches.py [NET:TASKS...] [--rules kernels] [--seeds 2] [--out FOLDER] [--print]

Complete searches are kept; the same command resumes. `--print` measures nothing.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
from numpy.typing import NDArray

from tlp_tvm.adapting.search_scores import load_scorer
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.targets import cores_of, target_of
from tlp_tvm.ansor.measuring.pools import StatePool
from tlp_tvm.ansor.networks.planning import RelayTask, plan_tasks
from tlp_tvm.ansor.search import policy as policy_module
from tlp_tvm.ansor.search.cost_model import TLPCostModel
from tlp_tvm.ansor.search.policy import BATCH, ChoosingPolicy
from tlp_tvm.bench.timing import machine
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.model.scoring import platform_or_mean
from tlp_tvm.tuning.tune_settings import MOST_PER_ROUND

WITHOUT = "without"
RULES: dict[str, Callable[[], Any]] = {
    WITHOUT: lambda: mock.patch.object(policy_module, "SHARE_OF_KERNEL", 1.0),
    "kernels": lambda: mock.patch.object(policy_module, "STUCK", 1),
    "stuck": contextlib.nullcontext,
}
"""Each as the context in which a search has it."""

TASKS = ["bert_small-128:3", "resnet_34-224:1", "mobilenet-224:2"]


def main() -> None:
    """Search, compare, and print."""
    parser = argparse.ArgumentParser(description="What a rule of the search gains on single tasks.")
    parser.add_argument("tasks", nargs="*", default=TASKS, help="a network, and how many of its tasks")
    parser.add_argument("--rules", default="kernels", help="of " + ", ".join(RULES))
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--trials", type=int, default=64)
    parser.add_argument("--model", default="x86")
    parser.add_argument("--target", default="", help="of TVM; this machine's CPU")
    parser.add_argument("--out", type=Path, default=Path("docs/results/searches/kernels"))
    parser.add_argument("--print", action="store_true", help="measure nothing")
    asked = parser.parse_args()
    asked.out.mkdir(parents=True, exist_ok=True)
    kept = asked.out / "searches.jsonl"
    if not asked.print:
        for search in searches(asked, _read(kept)):
            with kept.open("a") as file:
                file.write(json.dumps(search) + "\n")
                file.flush()
                os.fsync(file.fileno())
            print(search["task"], search["seed"], search["rule"], search["best"], flush=True)
    print(table(_read(kept)))


def searches(asked: argparse.Namespace, known: list[dict[str, Any]]) -> Iterator[dict[str, Any]]:
    """Those that are not known yet."""
    target = target_of(asked.target, here=True)
    scorer = load_scorer(asked.model)
    head = platform_or_mean(scorer, str(target))
    done = {(each["workload_key"], each["seed"], each["rule"]) for each in known}
    for seed in range(asked.seeds):
        for task in heaviest(asked.tasks, target):
            for rule in [WITHOUT, *asked.rules.split(",")]:
                if (task.workload_key, seed, rule) in done:
                    continue
                model = TLPCostModel(scorer, head, online=True)
                with RULES[rule]():
                    yield {
                        "task": task.desc,
                        "workload_key": task.workload_key,
                        "seed": seed,
                        "rule": rule,
                        "platform": head,
                        "machine": machine(),
                        **searched(task, model, seed, asked.trials, cores_of(target)),
                    }


def heaviest(wanted: list[str], target: Any) -> list[RelayTask]:
    """The tasks of most operations, of each network as many as it says."""
    found = []
    for each in wanted:
        network, _, count = each.rpartition(":")
        tasks = plan_tasks([network], target, lambda _: None)
        found += sorted(tasks, key=lambda task: -task.flop)[: int(count)]
    return found


def searched(task: RelayTask, model: TLPCostModel, seed: int, trials: int, threads: int) -> dict[str, Any]:
    """Lowest labels, seconds, after each round of 16; and what the search took."""
    tuning = load_tvm().auto_scheduler
    with StatePool(MeasureSettings(threads=threads)):
        began, best = time.monotonic(), []
        builder = tuning.LocalBuilder(n_parallel=BATCH // 2)
        options = tuning.TuningOptions(builder=builder, runner=tuning.LocalRunner(), verbose=0)
        policy = ChoosingPolicy(task.task, model, options, population=512, seed=seed + 1, diverse=True)
        while policy.measured < trials:
            policy.continue_search_one_round(min(MOST_PER_ROUND, trials - policy.measured))
            best.append(policy.best)
        return {"best": best, "measured": policy.measured, "seconds": time.monotonic() - began}


def table(found: list[dict[str, Any]]) -> str:
    """A row for each rule, of the searches that have a baseline."""
    by_rule: dict[str, dict[tuple[str, int], dict[str, Any]]] = {}
    for each in found:
        by_rule.setdefault(each["rule"], {})[each["workload_key"], each["seed"]] = each
    without = by_rule.pop(WITHOUT, {})
    lines = [
        "| rule | searches | after 16 | 32 | 48 | 64 | range | time |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for rule, of in by_rule.items():
        pairs = [(each, without[key]) for key, each in of.items() if key in without]
        ratios = np.array([np.divide(a["best"], b["best"]) for a, b in pairs])
        seconds = np.array([a["seconds"] / b["seconds"] for a, b in pairs])
        last = f"{ratios[:, -1].min():.2f} to {ratios[:, -1].max():.2f}"
        cells = [*map(_mean, ratios.T), last, _mean(seconds)]
        lines.append(f"| {rule} | {len(pairs)} | {' | '.join(cells)} |")
    return "\n".join(lines)


def _mean(ratios: NDArray[np.float64]) -> str:
    logs = np.log(ratios)
    return f"{np.exp(logs.mean()):.3f} ± {logs.std(ddof=1) / np.sqrt(len(logs)):.3f}"


def _read(kept: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in kept.read_text().splitlines()] if kept.exists() else []


if __name__ == "__main__":
    main()
