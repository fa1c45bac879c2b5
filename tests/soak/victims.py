"""The commands that the soak disturbs, and what their folders hold when they are whole."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tlp_tvm.ansor.networks.library import load_tuned
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.comparison import read_comparison
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.files import write_whole
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.pages import report_page

TARGET = ("--target", "llvm -num-cores=1")
TRIALS, PROGRAMS = 16, 12
RECORDS = {"collect": "*/*/*.json", "fleet": "*/*/*.json", "tune": "log.json"}


class Broken(Exception):
    """Something that no fault may cause."""


@dataclass(frozen=True)
class Victim:
    """A command.

    Attributes:
        name: of its kind.
        arguments: of `tlp-tvm`, but for its folder.
        holds: what its whole folder holds, equal for all of its runs; raises where something is wrong.
    """

    name: str
    arguments: tuple[str, ...]
    holds: Callable[[Path], Any]


def lines(victim: Victim, folder: Path) -> dict[str, list[str]]:
    """Whole lines of its records by file; of a comparison, its groups."""
    if victim.name == "compare":
        path = folder / "comparison.json"
        groups = json.loads(path.read_text())["groups"] if path.exists() else []
        return {path.name: [json.dumps(group) for group in groups]}
    found = {}
    for path in sorted(folder.glob(RECORDS[victim.name])):
        text = path.read_text().splitlines(keepends=True)
        found[str(path.relative_to(folder))] = [line for line in text if line.endswith("\n")]
    return found


def _distinct(source: Path) -> Counter[str]:
    """Programs by task, each measured once and none failed."""
    batch = read_records(source)
    programs = list(zip(batch.task_ids.tolist(), batch.sequence_hashes.tolist(), strict=True))
    if len(set(programs)) != len(programs):
        raise Broken(f"{source}: {len(programs) - len(set(programs))} programs are there twice")
    if batch.errors.any():
        raise Broken(f"{source}: {batch.errors.tolist()} are the errors of good programs")
    return Counter(batch.tasks[i].workload_key for i, _ in programs)


def _names(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def _collected(folder: Path) -> Any:
    dataset = load_measured(folder, FeatureLayout.preset("ansor"))
    platform = next(path for path in folder.iterdir() if path.is_dir())
    return _names(folder), len(dataset), _distinct(platform)


def _tuned(folder: Path) -> Any:
    run = json.loads((folder / "run.json").read_text())
    load_tuned(folder)
    report_page(folder)
    counts = _distinct(folder / "log.json")
    if sum(task["trials"] for task in run["tasks"]) != run["trials"]:
        raise Broken(f"{folder}: the tasks of run.json have not its {run['trials']} trials")
    return _names(folder), sorted(run), run["trials"], sorted(counts)


def _compared(folder: Path) -> Any:
    comparison = read_comparison(folder)
    report_page(folder)
    runs = [(run.task, run.seed, run.contender, len(run.best), len(run.clock)) for run in comparison.runs()]
    return _names(folder), sorted(comparison.content), runs


def victims(tracker: str) -> list[Victim]:
    """All of them; one measures on the devices of a tracker."""
    collect = ("collect", "mlp", *TARGET, "--busy", "0", "--platform", "here", "--programs", str(PROGRAMS))
    fleet = ("--tracker", tracker, "--key", "soak")
    model = ("--model", "epyc-small")
    compare = ("compare", "mlp", *TARGET, *model, "--models", "tlp-online:4:32,random:4:32", "--trials", "8")
    return [
        Victim("collect", collect, _collected),
        Victim("tune", ("tune", "mlp", *TARGET, *model, "--trials", str(TRIALS)), _tuned),
        Victim("compare", (*compare, "--tasks", "2"), _compared),
        Victim("fleet", (*collect, *fleet), _collected),
    ]


def keep(folder: Path, before: dict[str, list[str]], after: dict[str, list[str]]) -> None:
    """Raise where a record that was whole is gone, or changed."""
    for name, known in before.items():
        if after.get(name, [])[: len(known)] != known:
            write_whole(folder.with_name(f"{folder.name}-before.json"), json.dumps(before))
            raise Broken(f"{folder / name}: a record that was there is gone")
