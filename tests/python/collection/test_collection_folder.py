from __future__ import annotations

import gzip
import json
from pathlib import Path

import pytest

from tlp_tvm.collection.folder import CollectionFolder
from tlp_tvm.collection.packing import pack
from tlp_tvm.errors import CollectionError, DatasetError
from tlp_tvm.planned_task import PlannedTask
from tlp_tvm.records.source import TASK_TABLE, WORKLOADS, workload_lines


def test_two_platforms_are_not_collected_into_one_folder_at_once(tmp_path: Path) -> None:
    """Each would write the tables of tasks and of platforms as it knows them."""
    with CollectionFolder(tmp_path, "first"):
        with pytest.raises(CollectionError) as refused, CollectionFolder(tmp_path, "second"):
            pass
        (tmp_path / "tasks.json").write_text("[]")
        with pytest.raises(CollectionError, match="found process .*; wait for its end, or pack when it ends"):
            pack(tmp_path)
    text = str(refused.value)
    assert text.startswith(f"{tmp_path}: expected nobody else to write there, found process ")
    assert text.endswith("; wait for its end, or choose another `out`")
    assert not (tmp_path / "second").exists()
    with CollectionFolder(tmp_path, "second"):
        pass


def test_a_line_of_workloads_holds_any_character_but_a_newline(tmp_path: Path) -> None:
    lines = ['["1", "a\u2028b"]', '["2", "c"]', '["3", "d\x85"]']
    table = tmp_path / WORKLOADS
    assert workload_lines(table) == []
    table.with_name(f"{WORKLOADS}.gz").write_bytes(gzip.compress(f"{lines[0]}\n".encode()))
    table.write_text(f"{lines[1]}\n{lines[2]}\n")
    assert workload_lines(table) == lines


def test_a_table_of_workloads_that_is_no_text_is_refused(tmp_path: Path) -> None:
    table = tmp_path / WORKLOADS
    table.write_bytes(b'["1", "a"]\n["2", "\xff"]\n')
    with pytest.raises(DatasetError) as refused:
        workload_lines(table)
    assert str(refused.value) == (
        f"{table}:2: expected text in UTF-8, found byte 255; fetch or write it again"
    )


def test_a_table_of_tasks_that_is_none_is_refused(tmp_path: Path) -> None:
    table = tmp_path / TASK_TABLE
    table.write_text(
        '[{"workload_key": "[\\"k\\"]", "network": "mlp", "weight": 1, "split": "train", "flop": "x"}]'
    )
    with CollectionFolder(tmp_path, "here") as folder:
        with pytest.raises(CollectionError) as refused:
            folder.begin({"framework": "ansor"}, [])
        assert str(refused.value) == (
            f"{table}: entry 0: expected \"flop\" as a number of operations, found 'x'"
        )
        table.write_text('[{"network": "mlp"}]')
        with pytest.raises(CollectionError, match='entry 0: expected "workload_key" as str, found None'):
            folder.begin({"framework": "ansor"}, [])


class Product(PlannedTask):
    workload_key, flop, desc = "[]", 1.0, "product"


def test_tasks_that_judge_stay_in_the_split_that_they_began_in(tmp_path: Path) -> None:
    described = {"framework": "ansor"}
    with CollectionFolder(tmp_path, "here") as folder:
        judging = Product(None, {"unseen": 2}, held_out=True)
        folder.begin(described, [judging])
        folder.append(judging, "{}")
        (file,) = folder.files(judging)
        assert file.parent.name == "test"
        assert [entry["split"] for entry in json.loads((tmp_path / TASK_TABLE).read_text())] == ["test"]

        with pytest.raises(CollectionError) as refused:
            folder.begin(described, [Product(None, {"unseen": 2})])
        assert str(refused.value) == (
            f"{tmp_path / TASK_TABLE}: expected unseen in the split test, as before, found train; "
            "give --test as before, or choose another `platform` or `out`"
        )
        folder.begin(described, [Product(None, {"unseen": 2, "other": 1}, held_out=True)])
