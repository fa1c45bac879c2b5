"""The ranking of a split: sums per network and platform, and nothing left out silently."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray

from programs import LAYOUT, workload, write_dataset
from tlp_tvm.dataset.ranking import ranked_groups, ranking_rows
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import DatasetError
from tlp_tvm.metrics.correlation import agreement
from tlp_tvm.metrics.ranked_groups import ALL_NETWORKS, MEAN_OVER_TASKS


@pytest.fixture
def data(tmp_path: Path) -> MeasuredDataset:
    return load_measured(write_dataset(tmp_path), LAYOUT)


def scores_of(data: MeasuredDataset, seed: int = 0) -> NDArray[np.float64]:
    return np.random.default_rng(seed).normal(size=data.latencies.shape)


def test_rows_are_the_formula(data: MeasuredDataset) -> None:
    scores = scores_of(data)
    rows = {(row.platform, row.network): row for row in ranking_rows(data, scores, ks=(1, 3))}
    assert len(rows) == 2 * 4
    for column, platform in enumerate(("alpha", "beta")):
        sums = {network: [0.0, 0.0] for network in ("train-net", "test-net")}
        for i, task in enumerate(data.tasks):
            programs = data.programs_of(i)
            latencies = data.latencies[programs, column]
            first = latencies[np.argsort(-scores[programs, column])[:3]].min()
            for network, weight in task.weights.items():
                sums[network][0] += latencies.min() * weight
                sums[network][1] += first * weight
        for network, (above, below) in sums.items():
            assert rows[platform, network].top[3] == pytest.approx(above / below)
        everything = [sum(parts) for parts in zip(*sums.values(), strict=True)]
        assert rows[platform, ALL_NETWORKS].top[3] == pytest.approx(everything[0] / everything[1])
        assert rows[platform, MEAN_OVER_TASKS].tasks == 6
        assert rows[platform, ALL_NETWORKS].random[3].mean > rows[platform, ALL_NETWORKS].random[1].mean


def test_rank_measures_are_means_over_tasks(data: MeasuredDataset) -> None:
    scores = scores_of(data)
    [row] = [r for r in ranking_rows(data, scores) if (r.platform, r.network) == ("beta", MEAN_OVER_TASKS)]
    found = []
    for i in range(len(data.tasks)):
        programs = data.programs_of(i)
        found.append(agreement(scores[programs, 1], -data.latencies[programs, 1]))
    assert row.kendall == pytest.approx(np.mean([each.kendall for each in found]))
    assert row.pairwise_accuracy == pytest.approx(np.mean([each.pairwise_accuracy for each in found]))
    assert row.spearman == pytest.approx(np.mean([each.spearman for each in found]))
    assert row.to_dict()["kendall"] == row.kendall


def test_groups_without_scores_are_left_out(data: MeasuredDataset) -> None:
    scores = scores_of(data)
    test = next(i for i, task in enumerate(data.tasks) if task.split == "test")
    found = {(group.platform, group.network): group for group in ranked_groups(data, scores, {test})}
    assert {network for _, network in found} == {"train-net"}
    whole = {(group.platform, group.network): group for group in ranked_groups(data, scores)}
    for key, group in found.items():
        assert (group.top(1, 0), group.agreement) == (whole[key].top(1, 0), whole[key].agreement)


def test_each_platform_is_ranked_by_its_own_column(data: MeasuredDataset) -> None:
    perfect = -data.latencies
    assert all(row.top[1] == 1.0 for row in ranking_rows(data, perfect))
    assert any(row.top[1] < 1.0 for row in ranking_rows(data, perfect[:, ::-1]))
    assert all(row.spearman > 0.999 for row in ranking_rows(data, perfect))


def test_failed_programs_are_no_candidates(data: MeasuredDataset) -> None:
    failing = replace(data, latencies=data.latencies.copy())
    failing.latencies[data.programs_of(0)[0], 0] = np.inf
    scores = -data.latencies
    scores[data.programs_of(0)[0]] = 99.0
    assert all(row.top[1] == 1.0 for row in ranking_rows(failing, scores) if row.platform == "alpha")


def test_a_missing_task_fails(data: MeasuredDataset, tmp_path: Path) -> None:
    table = json.loads((tmp_path / "tasks.json").read_text())
    table.append({"workload_key": workload(9), "network": "test-net", "weight": 1, "split": "test"})
    (tmp_path / "tasks.json").write_text(json.dumps(table))
    missing = load_measured(tmp_path, LAYOUT).of_split("test")
    with pytest.raises(DatasetError) as error:
        ranking_rows(missing, np.zeros(missing.latencies.shape))
    assert str(error.value) == (
        f"platform alpha: expected measured programs of {workload(9)} (test-net), found none that ran; "
        "measure that task, or evaluate without that platform"
    )
    table[-1]["measured"] = False
    (tmp_path / "tasks.json").write_text(json.dumps(table))
    passed_over = load_measured(tmp_path, LAYOUT).of_split("test")
    assert len(ranking_rows(passed_over, np.zeros(passed_over.latencies.shape))) == 6


def test_a_network_that_a_platform_has_not_measured_at_all_is_not_judged_there(
    data: MeasuredDataset, tmp_path: Path
) -> None:
    table = json.loads((tmp_path / "tasks.json").read_text())
    table.append({"workload_key": workload(9), "network": "elsewhere", "weight": 1, "split": "test"})
    (tmp_path / "tasks.json").write_text(json.dumps(table))
    added = load_measured(tmp_path, LAYOUT).of_split("test")

    rows = ranking_rows(added, np.zeros(added.latencies.shape))

    test = data.of_split("test")
    before = ranking_rows(test, np.zeros(test.latencies.shape))
    assert [(row.network, row.tasks) for row in rows] == [(row.network, row.tasks) for row in before]


def test_tasks_of_plain_logs_count_where_their_programs_ran(data: MeasuredDataset, tmp_path: Path) -> None:
    logs = [str(file) for file in sorted(tmp_path.rglob("*.json.gz"))]
    logs.remove(str(tmp_path / "alpha" / "test" / "task5.json.gz"))
    plain = load_measured(logs, LAYOUT)
    rows = {
        (row.platform, row.network): row.tasks for row in ranking_rows(plain, np.zeros(plain.latencies.shape))
    }
    assert [rows[platform.name, MEAN_OVER_TASKS] for platform in plain.platforms] == [5, 6]
    nowhere = replace(plain, latencies=np.full(plain.latencies.shape, np.inf))
    with pytest.raises(DatasetError, match="expected programs that ran of at least one test task, found n"):
        ranking_rows(nowhere, np.zeros(plain.latencies.shape))


def test_a_task_that_only_failed_on_one_platform_fails_there(data: MeasuredDataset) -> None:
    failing = replace(data, latencies=data.latencies.copy())
    failing.latencies[data.programs_of(2), 1] = np.inf
    with pytest.raises(DatasetError) as error:
        ranking_rows(failing, np.zeros(data.latencies.shape))
    assert str(error.value).startswith(
        f"platform beta: expected measured programs of {data.tasks[2].workload_key} ("
    )


def test_a_platform_without_any_of_the_tasks_is_not_judged(data: MeasuredDataset) -> None:
    nowhere = replace(data, latencies=data.latencies.copy())
    nowhere.latencies[:, 1] = np.nan
    rows = ranking_rows(nowhere, np.zeros(data.latencies.shape))
    assert {row.platform for row in rows} == {"alpha"}


def test_scores_that_are_no_numbers_are_refused(data: MeasuredDataset) -> None:
    with pytest.raises(ValueError, match="^scores: expected numbers, found NaN$"):
        ranking_rows(data, np.full(data.latencies.shape, np.nan))
