"""Records of several platforms become one table of programs."""

from __future__ import annotations

import gzip
import json
import math
import random
from pathlib import Path

import numpy as np
import pytest

from logs import DATASETS
from programs import LAYOUT, TARGETS, line, program, table_entry, workload, write_dataset
from tlp_tvm.dataset.reading.holding_out import fold_of
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import DatasetError
from tlp_tvm.features import extract_records
from tlp_tvm.layout import FeatureLayout

INF, NAN = float("inf"), float("nan")


def programs(count: int, seed: int = 0) -> list[list[object]]:
    """Unlike programs, one an entry."""
    rng = random.Random(seed)
    return [program(rng, 2 ** (i % 6), i + 1) for i in range(count)]


def write(folder: Path, platform: str, lines: list[str], split: str = "train") -> None:
    place = folder / platform / split
    place.mkdir(parents=True, exist_ok=True)
    (place / "records.json").write_text("\n".join(lines) + "\n")


def test_a_program_measured_on_two_platforms_is_one_row(tmp_path: Path) -> None:
    a, b, c = programs(3)
    write(tmp_path, "alpha", [line("alpha", 0, a, [2.0]), line("alpha", 0, b, [4.0])])
    write(tmp_path, "beta", [line("beta", 0, c, [8.0]), line("beta", 0, b, [2.0, 4.0])])
    (tmp_path / "tasks.json").write_text(json.dumps([table_entry(0)]))
    data = load_measured(tmp_path, LAYOUT)
    assert [p.name for p in data.platforms] == ["alpha", "beta"]
    assert [p.target for p in data.platforms] == list(TARGETS.values())
    np.testing.assert_array_equal(data.latencies, [[2, NAN], [4, 3], [NAN, 8]])
    np.testing.assert_array_equal(data.labels, np.array([[1, NAN], [0.5, 1], [NAN, 3 / 8]], np.float32))


def test_the_same_steps_of_two_tasks_are_two_rows(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    a = programs(1)[0]
    log.write_text(line("alpha", 0, a, [2.0]) + "\n" + line("alpha", 1, a, [4.0]) + "\n")
    data = load_measured(log, LAYOUT)
    assert data.labels.tolist() == [[1.0], [1.0]]
    assert data.task_index.tolist() == [0, 1]


def test_failed_records_are_label_zero_and_no_minimum(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    a, b, c, d = programs(4)
    records = [(a, [1e10], 2), (b, [4.0], 0), (c, [5.0], 0), (c, [1e10], 4), (c, [3.0], 0)]
    lines = [line("alpha", 0, steps, costs, error) for steps, costs, error in records]
    log.write_text("\n".join([*lines, line("alpha", 1, d, [1e10], 2)]) + "\n")
    data = load_measured(log, LAYOUT)
    np.testing.assert_array_equal(data.latencies[:, 0], [INF, 4, 4, INF])
    np.testing.assert_array_equal(data.labels[:, 0], [0, 1, 1, NAN])


def test_features_are_those_of_the_records() -> None:
    files = sorted((DATASETS / "epyc" / "epyc-avx2-1c" / "test").glob("*.gz"))[:3]
    layout = FeatureLayout.preset("ansor")
    data = load_measured(files, layout)
    batch = extract_records(files, layout)
    assert batch.features is not None
    np.testing.assert_array_equal(data.features(), batch.features)
    np.testing.assert_array_equal(data.latencies[:, 0], batch.latencies)
    chosen = np.array([5, 3, 150])
    np.testing.assert_array_equal(data.features(chosen), batch.features[chosen])


def test_the_project_dataset_lines_up() -> None:
    data = load_measured(DATASETS / "epyc", FeatureLayout.preset("ansor"))
    assert [p.name for p in data.platforms] == ["epyc-avx2-1c", "epyc-avx512-2c", "epyc-sse42-1c"]
    assert (~np.isnan(data.labels)).sum(0).tolist() == [2425, 2425, 2368]
    assert len(data) == 2425
    assert [len(data.of_split(split).tasks) for split in ("train", "test")] == [31, 6]
    for task in range(len(data.tasks)):
        np.testing.assert_array_equal(np.nanmax(data.labels[data.programs_of(task)], axis=0), 1.0)
    networks = {network for task in data.of_split("test").tasks for network in task.weights}
    assert networks == {"bert_base-128", "bert_tiny-128", "resnet_50-224"}


def test_platforms_are_chosen_in_order(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path)
    assert [p.name for p in load_measured(folder, LAYOUT, platforms=["beta", "alpha"]).platforms] == [
        "beta",
        "alpha",
    ]
    assert [p.name for p in load_measured(folder, LAYOUT, platforms=["beta"]).platforms] == ["beta"]


def test_plain_records_have_a_platform_a_target(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path)
    files = sorted(folder.rglob("*.gz"))
    assert {p.name for p in load_measured(files, LAYOUT).platforms} == set(TARGETS.values())
    named = load_measured(folder / "beta", LAYOUT, platforms=["mine"])
    assert [(p.name, p.target) for p in named.platforms] == [("mine", TARGETS["beta"])]


def test_the_digest_names_the_files(tmp_path: Path) -> None:
    first, second = write_dataset(tmp_path / "a"), write_dataset(tmp_path / "b")
    digests = [load_measured(folder, LAYOUT).digest for folder in (first, second)]
    assert digests[0] == digests[1]
    write(second, "beta", [line("beta", 0, programs(1)[0], [1.0])])
    assert load_measured(second, LAYOUT).digest != digests[0]


def test_selections_keep_rows_and_features(tmp_path: Path) -> None:
    data = load_measured(write_dataset(tmp_path), LAYOUT)
    part = data.of_tasks([3, 1])
    rows = np.isin(data.task_index, [1, 3])
    assert [task.workload_key for task in part.tasks] == [data.tasks[i].workload_key for i in (1, 3)]
    np.testing.assert_array_equal(part.features(), data.features()[rows])
    np.testing.assert_array_equal(part.labels, data.labels[rows])
    assert part.primitives is data.primitives


def test_folds_hold_out_whole_tasks_once(tmp_path: Path) -> None:
    data = load_measured(write_dataset(tmp_path), LAYOUT)
    held_out = []
    for fold in range(3):
        train, validation = fold_of(data, fold, 3, seed=1)
        keys = [{task.workload_key for task in part.tasks} for part in (train, validation)]
        assert not keys[0] & keys[1]
        assert len(train) + len(validation) == len(data)
        held_out += sorted(keys[1])
    assert sorted(held_out) == sorted(task.workload_key for task in data.tasks)
    again, other = fold_of(data, 0, 3, seed=1)[1], fold_of(data, 0, 3, seed=2)[1]
    assert {t.workload_key for t in again.tasks} == set(held_out[:2])
    assert again.tasks != other.tasks


def refused(source: Path | list[Path], **options: list[str]) -> str:
    with pytest.raises(DatasetError) as error:
        load_measured(source, LAYOUT, **options)  # type: ignore[arg-type]
    return str(error.value)


def test_refusals(tmp_path: Path) -> None:
    assert refused(tmp_path / "none") == (
        f"{tmp_path / 'none'}: expected a dataset folder or a record file, found nothing"
    )
    folder = write_dataset(tmp_path / "data")
    assert refused(folder, platforms=["gamma"]) == (
        f'{folder}: expected one of the platforms alpha, beta, found "gamma"'
    )
    assert refused(sorted(folder.rglob("*.gz")), platforms=["mine"]) == (
        "12 record files: expected one name for the one platform of plain records, found 1 for "
        f'"{TARGETS["alpha"]}", "{TARGETS["beta"]}"'
    )
    with pytest.raises(DatasetError, match='^dataset: expected tasks of the split "dev", found test, train$'):
        load_measured(folder, LAYOUT).of_split("dev")
    with pytest.raises(DatasetError) as few:
        fold_of(load_measured(folder, LAYOUT), 0, 7, 0)
    assert str(few.value) == (
        "dataset: expected at least 7 tasks to hold some out, found 6; measure more tasks, or hold out none "
        "(`hold_out` 0)"
    )
    empty = tmp_path / "empty.json"
    empty.write_text("")
    assert refused(empty) == f"{empty}: expected measure records, found none"


def test_damaged_tables_are_refused(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path)
    table = folder / "tasks.json"
    entries = json.loads(table.read_text())
    for damaged, sentence in (
        ("[{", "expected a JSON list of tasks, found Expecting property name"),
        ("{}", "expected a JSON list of tasks, found dict"),
        (json.dumps([*entries, {"network": "net"}]), 'entry 6: expected "workload_key" as str, found None'),
        *(
            (
                json.dumps([entries[0], {**entries[1], "flop": flop}]),
                f'entry 1: expected "flop" as a number of operations, found {flop!r}',
            )
            for flop in ("many", [1.0], {}, True, math.nan, math.inf)
        ),
        (json.dumps([{**entries[0], "weight": "2"}]), "entry 0: expected \"weight\" as int, found '2'"),
    ):
        table.write_text(damaged)
        assert refused(folder).startswith(f"{table}: {sentence}")
    table.write_text(json.dumps(entries[1:]))
    assert refused(folder).endswith(
        f"expected workloads that tasks.json lists as measured, found {workload(0)}"
    )


def test_a_platform_of_two_targets_and_a_task_in_two_splits_are_refused(tmp_path: Path) -> None:
    a = programs(1)[0]
    write(tmp_path, "alpha", [line("alpha", 0, a, [1.0]), line("beta", 0, a, [1.0])])
    (tmp_path / "tasks.json").write_text(json.dumps([table_entry(0)]))
    assert refused(tmp_path) == (
        f'{tmp_path}: platform alpha: expected one target, found "{TARGETS["alpha"]}" and '
        f'"{TARGETS["beta"]}"; give each a folder of its own'
    )
    write(tmp_path, "alpha", [line("alpha", 0, a, [1.0])])
    write(tmp_path, "alpha", [line("alpha", 0, a, [1.0])], split="test")
    assert (
        refused(tmp_path)
        == f"{tmp_path}: expected each task in one split, found {workload(0)} in test and train"
    )


def test_memory_goes_with_the_length_of_programs(tmp_path: Path) -> None:
    data: MeasuredDataset = load_measured(write_dataset(tmp_path), LAYOUT)
    assert data.primitives.shape == (data.counts.sum(), LAYOUT.width)
    with gzip.open(next(iter(sorted(tmp_path.rglob("*.gz"))))) as file:
        assert len(file.readlines()) * 2 * 6 > data.latencies.size / 2
