"""Whole networks with MetaSchedule: our search, TVM's own models, and Droplet after the best known of these.

Question: how much sooner has a network the latency that TVM's search ends with, and how fast is the network
that is built?
Set-up: each contender tunes a network with `tlp-tvm tune`, as many programs each, one after the other, each
in a process of its own; the clock runs from the first round on. A network's latency is the sum over tasks of
the lowest label by occurrence. `xgb+droplet` goes on from XGBModel's database by TVM's `post_optimization`,
which times programs itself, so only its network tells. In the end all networks run in turns with the
baseline's.
Baseline: XGBModel, in rounds of 16 programs, as 64 would leave tasks without a program.
Checked: every task has a program; outputs agree to 1e-4.

    .venv-metaschedule/bin/python benchmarks/whole_traces.py [--network NET] [--seeds N] [--tables]

It needs an idle machine, 45 minutes for a seed of BERT-base, of which Droplet takes 19. What is done is kept,
and the same command resumes.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import time
from collections.abc import Mapping
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np
from commits import ROOT, checked_out
from whole_pages import HEADS, Groups, mean_of, write_tables

from tlp_tvm.files import write_whole
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.loops import share_loops_of
from tlp_tvm.metaschedule.loading.targets import cores_of, target_of
from tlp_tvm.metaschedule.networks import end_to_end
from tlp_tvm.metaschedule.networks.builtin import network_from
from tlp_tvm.metaschedule.reading.records import RECORDS
from tlp_tvm.records.source import WORKLOADS
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.network.turns import ROUNDING
from tlp_tvm.tuning.tune_observer import TuneObserver
from tlp_tvm.tuning.tune_settings import TuneSettings

KEPT = ROOT / "docs" / "results" / "searches" / "whole-metaschedule.json"
RUNS = ROOT / "runs" / "whole-metaschedule"
NETWORKS = {"bert_base-128": (320, 2), "resnet_50-224": (640, 1)}
"""Validation networks: programs of each search, and seeds."""
CONTENDERS = ("xgb", "mlp", "random", "x86-metaschedule")
"""Models."""
BASELINE, DROPLET = "xgb", "xgb+droplet"
TURNS = 31


class Noted(TuneObserver):
    """The second and the estimate at each program."""

    def __init__(self) -> None:
        self.began = 0.0
        self.clock: list[float] = []
        self.ms: list[float | None] = []

    def planned(self, tasks: int, trials: int, reused: int) -> None:
        """The clock starts."""
        self.began = time.monotonic()

    def measured(self, trials: int, estimate: float, failures: Mapping[str, int]) -> None:
        """Keep it; without an estimate while a task has no program."""
        self.clock.append(round(time.monotonic() - self.began, 2))
        self.ms.append(round(estimate * 1e3, 5) if np.isfinite(estimate) else None)


def tuned(network: str, model: str, trials: int, seed: int, out: Path) -> dict[str, Any]:
    """A search of a network, in a process of its own."""
    noted = Noted()
    how: dict[str, Any] = {"framework": "metaschedule", "turns": 1, "hide_messages": True}
    tune_network(TuneSettings(network, out, model, trials=trials, seed=seed, **how), noted)
    return {"clock": noted.clock, "ms": noted.ms}


def droplet(run: Path, out: Path) -> dict[str, Any]:
    """TVM's Droplet from a run's database on; seconds that it takes, or why it ends."""
    load_tvm()
    from tvm.s_tir.meta_schedule.post_optimization import PostOpt

    shutil.rmtree(out, ignore_errors=True)
    out.mkdir(parents=True)
    for name in (RECORDS, WORKLOADS):
        shutil.copy(run / name, out / name)
    os.chdir(out)
    began = time.monotonic()
    PostOpt(str(out), target_of("")).run()
    return {"seconds": round(time.monotonic() - began, 1)}


def in_turns(network: str, runs: Mapping[str, Path]) -> dict[str, list[float]]:
    """Milliseconds of the baseline's network and of another one's, in turns with each other."""
    tvm = load_tvm()
    share_loops_of(tvm)
    from tvm.relax.transform import BindParams
    from tvm.s_tir import meta_schedule as ms

    module, parameters = network_from(network)
    target = target_of("")
    inputs = end_to_end.random_inputs(BindParams("main", parameters)(module))
    built = {
        name: end_to_end.compiled(
            module, parameters, target, ms.database.JSONDatabase(str(run / WORKLOADS), str(run / RECORDS))
        )
        for name, run in runs.items()
    }
    found = {}
    for name, each in built.items():
        times = end_to_end.compare(built[BASELINE], each, inputs, target, TURNS, cores_of(target))
        if times.difference > ROUNDING:
            raise SystemExit(f"{network}, {name}: outputs differ by {times.difference:.1e}")
        found[name] = [times.untuned_latency * 1e3, times.tuned_latency * 1e3]
    return found


def alone(work: Any, *arguments: Any) -> Any:
    """What a function gives in a process of its own."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(work, *arguments).result()


def group_of(network: str, trials: int, seed: int) -> dict[str, Any]:
    """All searches of a network with a seed, and their networks."""
    searches: dict[str, Any] = {}
    runs = {name: RUNS / f"{network}-{seed}-{name}" for name in CONTENDERS}
    for name, run in runs.items():
        shutil.rmtree(run, ignore_errors=True)  # a clock cannot be resumed
        searches[name] = alone(tuned, network, name, trials, seed, run)
        last = searches[name]
        print(f"{network}, seed {seed}, {name}: {last['clock'][-1]} s, {last['ms'][-1]} ms", flush=True)
    runs[DROPLET] = RUNS / f"{network}-{seed}-droplet"
    try:
        searches[DROPLET] = alone(droplet, runs[BASELINE], runs[DROPLET])
    except Exception as error:  # noqa: BLE001 - whatever TVM raises, it is what its user gets
        searches[DROPLET] = {"error": (str(error).strip().splitlines() or [type(error).__name__])[-1][:200]}
        del runs[DROPLET]
    for name, pair in alone(in_turns, network, runs).items():
        searches[name]["in_turns"] = pair
    return {"cpu": this_cpu().model, "commit": checked_out(), "searches": searches}


def rows(groups: Groups) -> list[str]:
    """A row per contender: means over seeds, ratios to the baseline's search of the same seed."""
    lines = []
    for name in (*CONTENDERS, DROPLET):
        found = [(each["searches"][name], each["searches"][BASELINE]) for each in groups]
        if any("error" in ours for ours, _ in found):
            lines.append(
                f"| `{name}` | {'; '.join(ours.get('error', '') for ours, _ in found)} "
                + "| - " * (len(HEADS) - 2)
                + "|"
            )
            continue
        seconds = [
            ours["clock"][-1] if "clock" in ours else base["clock"][-1] + ours["seconds"]
            for ours, base in found
        ]
        finals = [ours["in_turns"][1] for ours, _ in found]
        cells = [f"`{name}`", f"{np.mean(seconds):.0f}", f"{np.mean(finals):.2f}"]
        if name == DROPLET:
            cells += ["-"] * 3
        else:
            both = [(_first(base, base["ms"][-1]), _first(ours, base["ms"][-1])) for ours, base in found]
            sooner = [first / matched for first, matched in both if first and matched]
            cells += [f"{len(sooner)} of {len(found)}", f"{mean_of(sooner)}x" if sooner else "-"]
            cells.append(mean_of([ours["ms"][-1] / base["ms"][-1] for ours, base in found]))
        cells.append(mean_of([ours["in_turns"][1] / ours["in_turns"][0] for ours, _ in found]))
        lines.append(f"| {' | '.join(cells)} |")
    return lines


def _first(search: dict[str, Any], goal: float) -> float | None:
    """The second at which a search had a latency."""
    reached = (second for second, ms in zip(search["clock"], search["ms"], strict=True) if ms and ms <= goal)
    return next(reached, None)


def size(groups: Groups) -> str:
    """Programs of a network's searches."""
    return str(len(groups[0]["searches"][BASELINE]["ms"]))


def main() -> None:
    """Search what is not kept yet, then write the page."""
    parser = argparse.ArgumentParser(description="Searches of whole networks with MetaSchedule.")
    parser.add_argument("--network", action="append", help="default: those of the page")
    parser.add_argument("--seeds", type=int, default=0, help="fewer than are planned")
    parser.add_argument("--programs", type=int, default=0, help="other than are planned; with --kept")
    parser.add_argument("--kept", type=Path, default=KEPT, help="another file, and no page is written")
    parser.add_argument("--tables", action="store_true", help="write the tables of what is kept; run nothing")
    asked = parser.parse_args()
    kept: dict[str, Any] = json.loads(asked.kept.read_text()) if asked.kept.exists() else {}
    for name in [] if asked.tables else asked.network or NETWORKS:
        trials, seeds = NETWORKS.get(name, (asked.programs, 1))
        found = kept.setdefault(name, {})
        for seed in range(asked.seeds or seeds):
            if str(seed) not in found:
                found[str(seed)] = group_of(name, asked.programs or trials, seed)
                write_whole(asked.kept, json.dumps(kept) + "\n")
    if asked.kept == KEPT:
        write_tables("whole-metaschedule", kept, size, rows)


if __name__ == "__main__":
    main()
