"""Whole networks, searched under several cost models by TVM's task scheduler, and by our search.

Question: how much sooner has a network the latency that a search under TVM's own model ends with? The TLP
paper leads with that.
Set-up: all contenders (`whole_contenders.py`) search the same prepared network with as many programs, round
by round in turns, measured by the same processes; a network's latency is the sum over tasks of the lowest
label by occurrence. In the end the network is built of each one's best programs and timed in turns with the
baseline's. No model has learned from the networks.
Baseline: XGBModel, 64 programs a round, as TVM's users have it.
Checked: every task has a program in every search; the outputs of all networks agree.

    make dataset && python benchmarks/training_networks.py build/training
    python benchmarks/whole_searches.py [--network NET] [--seeds N]

The models are trained first (half an hour); a network of 8 tasks with 320 programs takes 25 minutes a seed.
What is done is kept, and the same command resumes. --tables rewrites the page alone.
"""

from __future__ import annotations

import argparse
import json
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from commits import ROOT, checked_out
from threads_in_turn import Searching, Turns
from whole_contenders import CONTENDERS, prepare_models, search_by
from whole_pages import Groups, mean_of, write_tables

from tlp_tvm.ansor.compiling.kept_code import CodeOf
from tlp_tvm.ansor.graph.pipeline import Prepared, prepare
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.loading.loops import share_loops_of
from tlp_tvm.ansor.loading.targets import cores_of, hardware_of, quiet_builds, target_of
from tlp_tvm.ansor.measuring.pools import StatePool
from tlp_tvm.ansor.networks.builtin import network_from
from tlp_tvm.ansor.networks.end_to_end import build_tuned, compare, random_inputs
from tlp_tvm.ansor.networks.layout_rewrite import keep_layout_where_needed
from tlp_tvm.ansor.networks.tasks import extract_tasks
from tlp_tvm.files import write_whole
from tlp_tvm.framework import framework_named
from tlp_tvm.latency import latency_of
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.measuring.native_messages import native_messages_to
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.tuning.history import History

KEPT = ROOT / "docs" / "results" / "searches" / "whole.json"
NETWORKS = {"bert_base-128": (320, 3), "resnet_50-224": (640, 1)}
"""Validation networks: programs of each search, and seeds."""
BASELINE = "xgb"
TURNS = 9
ROUNDING = 1e-3


class Network:
    """A network, split into tasks."""

    def __init__(self, name: str) -> None:
        self.target = target_of("", here=True)
        share_loops_of(load_tvm())
        self.module, self.parameters, _ = network_from(name)
        self.prepared: Prepared = prepare(self.module, self.parameters, self.target)
        with quiet_builds(), self.prepared.operators():
            pair = (self.prepared.module, self.prepared.parameters)
            tasks, self.weights = extract_tasks(pair, str(self.target), hardware_of(self.target))
            self.tasks, self.kept = keep_layout_where_needed(tasks)
        self.keys = [str(task.workload_key) for task in self.tasks]
        self.threads = cores_of(self.target)
        framework = framework_named("ansor")
        how = MeasureSettings(threads=self.threads).at_best(framework.caches, framework.code())
        self.how: MeasureSettings = how

    def built(self, search: Searching) -> Any:
        """The network of a search's best programs."""
        best = {key: min(each for each in search.measured if each[0] == key) for key in self.keys}
        with tempfile.TemporaryDirectory() as folder, quiet_builds(), self.prepared.operators():
            log = Path(folder) / "best.json"
            log.write_text("".join(line for _, _, line in best.values()))
            keys = set(self.keys)
            return build_tuned(self.prepared, self.target, log, self.kept, keys, CodeOf(self.how.code))[0]


def searched(network: Network, trials: int, seed: int, models: Path, platform: str) -> list[Searching]:
    """Every contender's search of a network."""
    searches = [Searching(name, seed) for name in CONTENDERS]
    turns = Turns(searches)
    dump = load_tvm().auto_scheduler.measure_record.dump_record_to_string

    def note(program: Any, result: Any, _reason: str) -> None:
        assert turns.holder is not None
        key, line = str(program.task.workload_key), str(dump(program, result))
        turns.holder.note(key, latency_of(result), line)

    def told(search: Searching) -> None:
        done = {key: latency for key, latency, _ in sorted(search.measured, key=lambda each: -each[1])}
        pairs = zip(network.keys, network.weights, strict=True)
        estimate = sum(weight * done.get(key, np.inf) for key, weight in pairs)
        seconds = search.clock[-1] if search.clock else 0.0
        words = f"{len(search.measured)} programs, {seconds:.0f} s, {estimate * 1e3:.3f} ms"
        print(f"seed {seed}, {search.name}: {words}", flush=True)

    def work(search: Searching) -> None:
        begin = lambda: turns.next_round(search)  # noqa: E731
        search_by(search.name, network.tasks, network.weights, trials, seed, models, platform, begin)

    with ExitStack() as stack:
        output = stack.enter_context((models / "tvm.log").open("ab"))
        stack.enter_context(native_messages_to(output))
        stack.enter_context(StatePool(network.how, output, note))
        turns.run(work, told)
    return searches


def group_of(network: Network, searches: list[Searching]) -> dict[str, Any]:
    """What is kept of the searches, with the networks timed in turns with the baseline's."""
    built = {search.name: network.built(search) for search in searches}
    values = random_inputs(network.module, network.parameters)
    place = {key: i for i, key in enumerate(network.keys)}
    found = {}
    for search in searches:
        pair = (built[BASELINE], built[search.name])
        times = compare(*pair, values, network.target, TURNS, network.threads)
        if times.difference > ROUNDING:
            raise SystemExit(f"{search.name}: outputs differ by {times.difference:.1e} from {BASELINE}'s")
        found[search.name] = {
            "task": [place[key] for key, _, _ in search.measured],
            "us": [round(s * 1e6, 3) if np.isfinite(s) else None for _, s, _ in search.measured],
            "clock": [round(seconds, 2) for seconds in search.clock],
            "network": times.tuned_latency,
            "baseline": times.untuned_latency,
        }
    of = {"cpu": this_cpu().model, "commit": checked_out()}
    return {**of, "weights": list(network.weights), "searches": found}


def curve(entry: dict[str, Any], weights: list[int]) -> History:
    """A kept search as measurements."""
    seconds = np.array([np.inf if us is None else us * 1e-6 for us in entry["us"]])
    return History(np.array(entry["task"], np.int64), seconds, len(weights))


def when(entry: dict[str, Any], weights: list[int], goal: float) -> float | None:
    """The second at which every task has a program and the estimate is at most `goal`; None for never."""
    history = curve(entry, weights)
    ran = np.isfinite(history.latencies)
    begun = max(int(np.flatnonzero(ran & (history.task_ids == i))[0]) for i in range(len(weights)))
    reached = np.flatnonzero(history.estimates(weights) <= goal)
    reached = reached[reached >= begun]
    return float(entry["clock"][reached[0]]) if len(reached) else None


def rows(groups: Groups) -> list[str]:
    """A row per contender: means over seeds, ratios to the baseline's search of the same seed."""
    lines = []
    for name in CONTENDERS:
        sooner, sums, inside, finals, seconds = [], [], [], [], []
        for group in groups:
            weights, entry, base = group["weights"], group["searches"][name], group["searches"][BASELINE]
            goal = float(curve(base, weights).estimates(weights)[-1])
            final = float(curve(entry, weights).estimates(weights)[-1])
            matched, first = when(entry, weights, goal), when(base, weights, goal)
            assert first is not None
            sooner += [first / matched] if matched is not None else []
            sums.append(final / goal)
            inside.append(entry["network"] / entry["baseline"])
            finals.append(entry["network"] * 1e3)
            seconds.append(entry["clock"][-1])
        cells = [f"`{name}`", f"{np.mean(seconds):.0f}", f"{np.mean(finals):.2f}"]
        cells += [f"{len(sooner)} of {len(groups)}", f"{mean_of(sooner)}x" if sooner else "-"]
        lines.append(f"| {' | '.join([*cells, mean_of(sums), mean_of(inside)])} |")
    return lines


def size(groups: Groups) -> str:
    """Tasks and programs of a network's searches."""
    return f"{len(groups[0]['weights'])} tasks, {len(groups[0]['searches'][BASELINE]['us'])}"


def main() -> None:
    """Search what is not kept yet, then write the page."""
    parser = argparse.ArgumentParser(description="Searches of whole networks under several cost models.")
    parser.add_argument("--network", choices=list(NETWORKS), action="append")
    parser.add_argument("--seeds", type=int, default=0, help="fewer than are planned")
    parser.add_argument("--programs", type=int, default=0, help="other than are planned; with --kept")
    parser.add_argument("--models", type=Path, default=ROOT / "build" / "whole")
    parser.add_argument("--kept", type=Path, default=KEPT, help="another file, and no page is written")
    parser.add_argument("--tables", action="store_true")
    asked = parser.parse_args()
    kept: dict[str, Any] = json.loads(asked.kept.read_text()) if asked.kept.exists() else {}
    if not asked.tables:
        platform = this_cpu().platform(str(target_of("", here=True)))
        asked.models.mkdir(parents=True, exist_ok=True)
        prepare_models(ROOT / "build" / "dataset-x86", [ROOT / "build" / "training"], platform, asked.models)
        for name in asked.network or NETWORKS:
            trials, seeds = asked.programs or NETWORKS[name][0], asked.seeds or NETWORKS[name][1]
            found, network = kept.setdefault(name, {}), Network(name)
            for seed in range(seeds):
                if str(seed) not in found:
                    searches = searched(network, trials, seed, asked.models, platform)
                    found[str(seed)] = group_of(network, searches)
                    write_whole(asked.kept, json.dumps(kept) + "\n")
    if asked.kept == KEPT:
        write_tables("whole", kept, size, rows)


if __name__ == "__main__":
    main()
