"""The scoreboard of docs/networks.md: networks that people run, beside what people run them with.

Question: is a network tuned for minutes faster than ONNX Runtime, OpenVINO, TorchScript and torch.compile?
Set-up: `network_exports.NETWORKS`, exported offline; each stage is a `tlp-tvm tune --beside` of all peers, in
turns on the same input and threads. It needs an idle machine for a day; `--networks` and `--minutes` make it
shorter.
Baseline: the fastest peer of the same turns.
Checked: outputs of every peer agree with ours.

    python benchmarks/networks.py [--networks mlp,resnet_18] [--frameworks ansor] [--minutes 0,5,15] [--again]

A stage is kept in docs/results/networks.json as soon as it has ended, by the processor that it ran on, and
not run again there without --again. With --turns-again nothing is tuned: what the stages have tuned is timed
beside the peers anew. With `--networks ""` only the page and the picture are written.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from commits import checked_out
from marked_pages import put
from network_exports import NETWORKS
from networks_page import draw, order_of, page, summary
from networks_rows import page as row_by_row
from own_command import MAIN

from tlp_tvm.beside.beside_result import REPORT
from tlp_tvm.beside.peer_kinds import PEERS
from tlp_tvm.files import write_whole
from tlp_tvm.machine.cpu import this_cpu

ROOT = Path(__file__).parent.parent
KEPT = ROOT / "docs" / "results" / "networks.json"
PAGE, PICTURE = ROOT / "docs" / "networks.md", ROOT / "docs" / "networks.png"
PAGE_BEHIND = ROOT / "docs" / "networks-more.md"
README = ROOT / "README.md"
EXPORTED, RUNS = ROOT / "build" / "networks", ROOT / "runs" / "networks"
ENVIRONMENTS = {"ansor": (".venv", ".pt"), "metaschedule": (".venv-metaschedule", ".pt2")}
"""Framework -> its environment, and the end of the file that it reads."""


@dataclass(frozen=True)
class Stage:
    """A tuning of a network up to so many minutes; 0 is a choice without measuring."""

    network: str
    framework: str
    minutes: float
    before: float = 0.0
    """Minutes of the stage that it resumes."""

    @property
    def name(self) -> str:
        """In the kept results."""
        return f"{self.framework}-{self.minutes:g}"

    @property
    def out(self) -> Path:
        """Folder of the run: stages that measure share one."""
        return RUNS / self.framework / f"{self.network}{'' if self.minutes else '-chosen'}"

    def command(self) -> list[str]:
        """What runs it."""
        budget = ["--minutes", f"{self.minutes - self.before:g}"] if self.minutes else ["--trials", "0"]
        words = ["tune", str(self.file), "--framework", self.framework, *budget]
        words += ["--beside", ",".join(PEERS), "--json", "--out", str(self.out)]
        return [self.python, "-c", MAIN, *words]

    @property
    def python(self) -> str:
        """Of its environment."""
        return python_of(self.framework)

    @property
    def file(self) -> Path:
        """What it tunes."""
        return EXPORTED / f"{self.network}{ENVIRONMENTS[self.framework][1]}"


def python_of(framework: str) -> str:
    """Of a framework's environment."""
    return str(ROOT / ENVIRONMENTS[framework][0] / "bin" / "python")


def stages(networks: Sequence[str], frameworks: Sequence[str], minutes: Sequence[float]) -> Iterator[Stage]:
    """All stages, a network at a time; each resumes the one before."""
    for network in networks:
        for framework in frameworks:
            before = 0.0
            for limit in sorted(minutes):
                yield Stage(network, framework, limit, before)
                before = limit


_TURNS = """
import json, sys
from pathlib import Path
from tlp_tvm.beside.timing_peers import time_beside
folder, file, peers, threads, programs = sys.argv[1:]
beside = time_beside(Path(folder), file, peers.split(","), threads=int(threads), programs=int(programs))
print(json.dumps(beside.to_dict()))
"""


def tuned_here(
    kept: Mapping[str, Any], networks: Sequence[str], frameworks: Sequence[str], minutes: Sequence[float]
) -> list[Stage]:
    """The last kept stage of each run that is still here: its library is of that one."""
    found = kept.get(this_cpu().model, {})
    every = [Stage(network, *order_of(name)) for network in networks for name in found.get(network, {})]
    last = {stage.out: stage for stage in every if stage.framework in frameworks}
    return [each for out, each in last.items() if each.minutes in minutes and (out / REPORT).exists()]


def turns_again(stage: Stage, found: dict[str, Any]) -> dict[str, Any]:
    """Time what a stage has tuned beside the peers anew.

    Args:
        stage: the last one of its run.
        found: what is kept of it.

    Returns:
        What is to be kept.
    """
    commit = checked_out()
    words = [str(stage.out), str(stage.file), ",".join(PEERS), str(found["threads"]), str(found["programs"])]
    command = [stage.python, "-c", _TURNS, *words]
    finished = subprocess.run(command, cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    beside = json.loads(finished.stdout.splitlines()[-1])
    return {**found, "timed_at": commit, **{name: beside[name] for name in ("ours", "peers")}}


def read_kept() -> dict[str, Any]:
    """Processor -> network -> stage -> what it gave."""
    kept: dict[str, Any] = json.loads(KEPT.read_text()) if KEPT.exists() else {}
    return kept


def keep(kept: dict[str, Any], stage: Stage, result: dict[str, Any]) -> None:
    """Add a stage's result to the kept ones of its processor, in order, at once on disk."""
    ended, beside = result["end_to_end"], result["beside"]
    networks = kept.setdefault(beside["cpu"], {})
    found = networks.get(stage.network, {})
    found[stage.name] = {
        "commit": result["commit"],
        "untuned": ended["untuned_latency"],
        "speedup": ended["speedup"],
        "estimate": result["estimate"],
        "explained": result.get("explained"),
        "at_peak": result["at_peak"],
        "inside_over_label": _inside_over_label(result),
        "changed_inside": result["changed_inside"],
        "seconds": {name: round(value, 1) for name, value in result["seconds"].items()},
        **{name: beside[name] for name in ("cpu", "threads", "programs", "ours", "peers")},
    }
    networks[stage.network] = {name: found[name] for name in sorted(found, key=order_of)}
    write_kept(kept)


def write_kept(kept: dict[str, Any]) -> None:
    """Write what `read_kept` reads."""
    write_whole(KEPT, f"{_as_text(kept, 3)}\n")


def _inside_over_label(result: dict[str, Any]) -> list[float]:
    """Of each tuned operator, ascending."""
    labelled = [each for each in result["operators"] if each["label"]]
    return sorted(round(each["inside"] / each["label"], 3) for each in labelled)


def _as_text(found: dict[str, Any], depth: int) -> str:
    """JSON, a stage a line."""
    if not depth:
        return json.dumps(found)
    inside = ",\n".join(f"{json.dumps(name)}: {_as_text(each, depth - 1)}" for name, each in found.items())
    return f"{{\n{inside}\n}}"


def run(stage: Stage) -> dict[str, Any]:
    """Export the network if need be, and tune it; the commit is that with which it begins."""
    commit = checked_out()
    if not stage.file.exists():
        exports = str(Path(__file__).with_name("network_exports.py"))
        subprocess.run([python_of("ansor"), exports, stage.network, str(EXPORTED)], check=True)
    finished = subprocess.run(stage.command(), cwd=ROOT, stdout=subprocess.PIPE, text=True, check=True)
    return {**json.loads(finished.stdout), "commit": commit}


def write_page(kept: dict[str, Any]) -> None:
    """Write the picture, the tables of docs/networks.md and of the page behind, and the README's words."""
    titles = {name: network.title for name, network in NETWORKS.items()}
    draw(kept, titles, PICTURE)
    put(PAGE, "networks", "\n".join(page(kept, titles)))
    put(PAGE_BEHIND, "rows", "\n".join(row_by_row(kept, titles)))
    put(README, "networks", "\n".join(summary(kept, titles)))


def main() -> None:
    """Run what is missing, then write the page."""
    parser = argparse.ArgumentParser(description="The scoreboard of docs/networks.md.")
    parser.add_argument("--networks", default=",".join(NETWORKS))
    parser.add_argument("--frameworks", default=",".join(ENVIRONMENTS))
    parser.add_argument("--minutes", default="0,5,15")
    parser.add_argument("--again", action="store_true", help="also what is kept, from new runs")
    parser.add_argument("--turns-again", action="store_true", help="tune nothing, time what was tuned")
    asked = parser.parse_args()
    networks, frameworks = (
        list(filter(None, text.split(","))) for text in (asked.networks, asked.frameworks)
    )
    for name, known in [
        *((each, NETWORKS) for each in networks),
        *((each, ENVIRONMENTS) for each in frameworks),
    ]:
        if name not in known:
            raise SystemExit(f"expected some of {', '.join(known)}, found {name}")
    minutes = [float(text) for text in asked.minutes.split(",")]
    kept = read_kept()
    if asked.turns_again:
        if not (again := tuned_here(kept, networks, frameworks, minutes)):
            raise SystemExit(
                f"{RUNS}: expected runs of kept stages, found none of these; leave out --turns-again"
            )
        for stage in again:
            print(f"{stage.network}: {stage.name} minutes, timed again", flush=True)
            found = kept[this_cpu().model][stage.network]
            found[stage.name] = turns_again(stage, found[stage.name])
            write_kept(kept)
            write_page(kept)
        return
    for stage in stages(networks, frameworks, minutes):
        if asked.again and not stage.before:
            shutil.rmtree(stage.out, ignore_errors=True)
        if asked.again or stage.name not in kept.get(this_cpu().model, {}).get(stage.network, {}):
            print(f"{stage.network}: {stage.name} minutes", flush=True)
            keep(kept, stage, run(stage))
            write_page(kept)
    write_page(kept)


if __name__ == "__main__":
    os.environ.setdefault("HF_HUB_OFFLINE", "1")
    main()
