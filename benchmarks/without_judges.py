"""Take the tasks of networks that judge out of measured programs, so that no model learns from them.

Question: which tasks of a collection has a network of the scoreboard or of `test_networks.py` too?
Set-up: both are exported, unless they are there, and split into tasks as `tlp-tvm collect` does it for the
platform of the programs. A task is the same where its workload key is.

    python benchmarks/without_judges.py FOLDER...

Their files are removed, and their lines of tasks.json. A folder that has none stays as it is, so the command
also checks what datasets/ has. It takes minutes.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import network_exports
import test_networks
from own_command import ROOT

from tlp_tvm.files import write_whole
from tlp_tvm.framework import framework_named

JUDGES = {"networks": network_exports.NETWORKS, "test": test_networks.NETWORKS}
"""By the folder of build/ that has them."""


def files_of(end: str) -> list[str]:
    """The networks that judge, exported where they were not."""
    files = []
    for folder, networks in JUDGES.items():
        for name, network in networks.items():
            file = ROOT / "build" / folder / f"{name}{end}"
            if not file.exists():
                network_exports.write(name, network, file.parent, [end])
            files.append(str(file))
    return files


def judging_tasks(platform: dict[str, Any]) -> set[str]:
    """Workload keys of the networks that judge.

    Args:
        platform: as collection.json describes it.
    """
    framework = framework_named(platform["framework"])
    target = framework.target(_split_for(platform), here=False)
    planned = framework.plan(files_of(framework.exported), target, _tell, None)
    return {each.workload_key for each in planned}


def _split_for(platform: dict[str, Any]) -> str:
    """The target by which its tasks were split off."""
    text: str = platform.get("split_for", platform["target"])
    return text


def without(folder: Path, judging: set[str]) -> list[str]:
    """Remove tasks from a folder.

    Args:
        folder: of `tlp-tvm collect` or `tlp-tvm dataset pack`.
        judging: workload keys.

    Returns:
        Descriptions of what was removed.
    """
    tasks = json.loads((folder / "tasks.json").read_text())
    found = [task for task in tasks if task["workload_key"] in judging]
    for task in found:
        for file in folder.glob(f"*/*/*__{task['task']}.json*"):
            file.unlink()
    if found:
        left = [task for task in tasks if task not in found]
        write_whole(folder / "tasks.json", json.dumps(left, indent=1) + "\n")
    return [f"{task['desc']} of {task['network']}" for task in found]


def _tell(line: str) -> None:
    sys.stdout.write(f"{line}\n")


def main() -> None:
    """Go through the folders that the command line names."""
    parser = argparse.ArgumentParser(description="Take tasks of networks that judge out of a collection.")
    parser.add_argument("folders", nargs="+", type=Path, metavar="FOLDER")
    known: dict[str, set[str]] = {}
    for folder in parser.parse_args().folders:
        for platform in json.loads((folder / "collection.json").read_text())["platforms"].values():
            key = f"{platform['framework']} {_split_for(platform)}"
            if key not in known:
                known[key] = judging_tasks(platform)
            removed = without(folder, known[key])
            _tell("\n  ".join([f"{folder}: {len(removed)} tasks removed", *removed]))


if __name__ == "__main__":
    main()
