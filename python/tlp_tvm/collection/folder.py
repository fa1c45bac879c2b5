"""The folder of a collection, which is a dataset folder that `tlp_tvm.dataset` reads as it is.

collection.json                            what each platform's measurements were asked for
tasks.json                                 table of tasks; "measured" once a program was
database_workload.json                     MetaSchedule only: what is computed, a line per task (see below)
<platform>/<split>/<network>__<task>.json  records in the order they were measured; also .json.gz
<platform>.log                             output of the measuring processes

The records are the only memory of what was measured: a line is written and synced before the next program
runs, so a killed collection loses at most one program.

MetaSchedule's records name what they compute by the line of database_workload.json. All platforms share that
one file, so that `ms.database.JSONDatabase(<folder>/database_workload.json, <any record file>)` opens them.
"""

from __future__ import annotations

import contextlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import Any

from tlp_tvm.errors import CollectionError
from tlp_tvm.files import write_whole
from tlp_tvm.folder_lock import held
from tlp_tvm.framework import DEFAULT
from tlp_tvm.logs import append_line, mend_log
from tlp_tvm.measuring.child import WARM
from tlp_tvm.measuring.code_kinds import code_as_before, noted_code
from tlp_tvm.planned_task import PlannedTask
from tlp_tvm.records.source import (
    COLLECTION,
    TASK_TABLE,
    WORKLOADS,
    noted_platforms,
    table_entries,
    workload_lines,
)

FORMAT, FORMAT_VERSION = "tlp-tvm-collection", 1
IDENTITY = ("target", "threads", "cpu", "caches", "code")
"""What may not change between the measurements of one platform; earlier ones may not say it."""

CURE = "choose another `platform` or `out`"


def code_of_folder(out: Path, platform: str, best: str) -> str:
    """How to compile programs that join those of a platform.

    Args:
        out: the folder; need not exist.
        platform: whose programs.
        best: how it is done here, and where there are none.
    """
    before = noted_platforms(out).get(platform)
    return best if before is None else code_as_before(before, best)


class CollectionFolder:
    """One platform's place in the folder; a context manager that holds the whole folder, tables included."""

    def __init__(self, path: str | os.PathLike[str], platform: str) -> None:
        """Make nothing yet.

        Args:
            path: of the folder; may exist.
            platform: label of the measurements, a folder's name.

        Raises:
            CollectionError: the label cannot name a folder.
        """
        self.path = Path(path)
        self.platform = platform
        if not platform or platform != Path(platform).name or platform.startswith("."):
            raise CollectionError(
                f'`platform` "{platform}": expected a name that a folder can have, without / or a leading .'
            )
        self.log = self.path / f"{platform}.log"
        self._held = contextlib.ExitStack()
        self._table: list[dict[str, Any]] = []

    def __enter__(self) -> CollectionFolder:
        self._held.enter_context(held(self.path, CollectionError, "choose another `out`"))
        (self.path / self.platform).mkdir(exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._held.close()

    def begin(self, description: dict[str, Any], tasks: Sequence[PlannedTask]) -> None:
        """Note what the platform's measurements are, or see that they are the same as before.

        Args:
            description: with the entries of `IDENTITY`; None where one is not known.
            tasks: whose programs are to be measured.

        Raises:
            CollectionError: the folder holds something else, or a task on the other side of the split.
        """
        content = self._read(
            COLLECTION, {"format": FORMAT, "format_version": FORMAT_VERSION, "platforms": {}}
        )
        if not isinstance(content, dict) or content.get("format") != FORMAT:
            raise CollectionError(f'{self.path / COLLECTION}: expected "format": "{FORMAT}"; {CURE}')
        for platform, earlier in content["platforms"].items():
            framework = earlier.get("framework", DEFAULT)
            if framework != description["framework"]:
                raise CollectionError(
                    f"{self.path}: expected programs of {framework}, as those of {platform} are, found "
                    f"{description['framework']}; choose another `out`"
                )
        before = content["platforms"].get(self.platform, description)
        before = {"caches": WARM, **before, "code": noted_code(before)}
        for entry in IDENTITY:
            expected, found = before.get(entry), description.get(entry)
            if None not in (expected, found) and expected != found:
                raise CollectionError(
                    f"{self.path}: platform {self.platform}: expected {entry} {expected}, as before, "
                    f"found {found}; {CURE}"
                )
        content["platforms"][self.platform] = description
        table = self.path / TASK_TABLE
        self._table = table_entries(table, CollectionError) if table.exists() else []
        for task in tasks:
            self._add_to_table(task)
        self._number_workloads(tasks)
        self._write_json(COLLECTION, content)
        self._write_json(TASK_TABLE, self._table)

    def files(self, task: PlannedTask) -> list[Path]:
        """Files that hold the platform's records of a task, ends of killed writes mended.

        Raises:
            CollectionError: they are on the other side of the split.
        """
        found = sorted((self.path / self.platform).glob(f"*/*__{task.id}.json*"))
        files = [file for file in found if file.name.endswith((".json", ".json.gz"))]
        for file in files:
            if file.parent.name != task.split:
                raise CollectionError(
                    f"{file}: expected records of a {task.split} task, as its networks say, "
                    f"found them under {file.parent.name}; move the file to {task.split}"
                )
            if file.suffix == ".json":
                mend_log(file)
        return files

    def append(self, task: PlannedTask, line: str) -> None:
        """Write one record, whole or not at all, and bring it to the disk.

        Args:
            task: that it is of.
            line: TVM's record, without its newline.
        """
        self._mark_measured(task)
        network = next(iter(task.weights))
        path = self.path / self.platform / task.split / f"{network}__{task.id}.json"
        path.parent.mkdir(exist_ok=True)
        append_line(path, line)

    def _number_workloads(self, tasks: Sequence[PlannedTask]) -> None:
        """Give each task the line of its workload, and add the lines that are missing."""
        if all(task.workload_line is None for task in tasks):
            return
        path = self.path / WORKLOADS
        mend_log(path)
        place: dict[str, int] = {}
        for number, line in enumerate(workload_lines(path)):
            place.setdefault(line, number)
        for task in tasks:
            if task.workload_line is None:
                continue
            if task.workload_line not in place:
                place[task.workload_line] = len(place)
                append_line(path, task.workload_line)
            task.workload = place[task.workload_line]

    def _add_to_table(self, task: PlannedTask) -> None:
        known = [entry for entry in self._table if entry["workload_key"] == task.workload_key]
        networks = {entry["network"] for entry in known}
        measured = any(entry.get("measured", True) for entry in known)
        splits = {entry["network"]: entry["split"] for entry in task.entries}
        for entry in known:  # a test network of an earlier call keeps the task on its side
            expected = splits.get(entry["network"], entry["split"])
            if entry["split"] != expected:
                raise CollectionError(
                    f"{self.path / TASK_TABLE}: expected {entry['network']} in the split {entry['split']}, "
                    f"as before, found {expected}; give --test as before, or {CURE}"
                )
            task.weights.setdefault(entry["network"], int(entry["weight"]))
        self._table += [
            {**entry, "measured": measured} for entry in task.entries if entry["network"] not in networks
        ]

    def _mark_measured(self, task: PlannedTask) -> None:
        entries = [entry for entry in self._table if entry["workload_key"] == task.workload_key]
        if all(entry["measured"] for entry in entries):
            return
        for entry in entries:
            entry["measured"] = True
        self._write_json(TASK_TABLE, self._table)

    def _read(self, name: str, default: Any) -> Any:
        path = self.path / name
        if not path.exists():
            return default
        try:
            return json.loads(path.read_text(encoding="utf-8"))
        except ValueError as error:
            raise CollectionError(f"{path}: expected JSON, found {error}; repair it, or {CURE}") from error

    def _write_json(self, name: str, content: Any) -> None:
        write_whole(self.path / name, json.dumps(content, indent=1) + "\n")


def split_target(folder: Path, platform: str = "") -> str | None:
    """The TVM target that the networks of a collection were split for: it decides what their tasks are.

    Args:
        folder: of the collection.
        platform: of the collection; its first one if empty.

    Returns:
        None where there is no collection, or no such platform in it.
    """
    platforms = noted_platforms(folder)
    described = platforms.get(platform or next(iter(platforms), ""), {})
    found = described.get("split_for", described.get("target"))
    return None if found is None else str(found)
