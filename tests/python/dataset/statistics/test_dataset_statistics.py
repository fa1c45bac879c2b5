"""Statistics agree with what was put in, and with slow readings of the project's own dataset."""

from __future__ import annotations

import json
import random
import re
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from logs import DATASETS
from programs import line, program, workload
from tlp_tvm import iter_records
from tlp_tvm.dataset import open_dataset
from tlp_tvm.dataset.building.build import build_dataset
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.dataset.statistics.collisions import collisions
from tlp_tvm.dataset.statistics.counting import dataset_statistics
from tlp_tvm.dataset.statistics.histogram import Histogram
from tlp_tvm.dataset.statistics.layout_fit import layout_statistics
from tlp_tvm.dataset.statistics.statistics_summary import summary_of
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.pages.statistics_page import statistics_page

PAPER = FeatureLayout.preset("paper-cpu")
ANSOR = FeatureLayout.preset("ansor")


@pytest.fixture(scope="module")
def epyc(tmp_path_factory: pytest.TempPathFactory) -> Any:
    out = tmp_path_factory.mktemp("built") / "epyc <dataset>"
    build_dataset([DATASETS / "epyc"], out)
    return dataset_statistics(open_dataset(out), [PAPER, ANSOR])


@pytest.fixture(scope="module")
def told(epyc: Any) -> dict[str, Any]:
    return summary_of(epyc)


def small(tmp_path: Path, *records: tuple[str, int, list[Any], list[float], int]) -> dict[str, Any]:
    """Statistics of a few records: platform, task, steps, costs, error."""
    for platform in ("alpha", "beta"):
        lines = [line(*record) for record in records if record[0] == platform]
        (tmp_path / f"{platform}.json").write_text("".join(text + "\n" for text in lines))
    build_dataset([tmp_path / "alpha.json", tmp_path / "beta.json"], tmp_path / "out")
    return summary_of(dataset_statistics(open_dataset(tmp_path / "out"), [PAPER]))


def test_counts_are_those_of_the_records(told: dict[str, Any]) -> None:
    assert (told["programs"], told["measurements"], len(told["tasks"])) == (2425, 7218, 37)
    assert [p["programs"] for p in told["platforms"]] == [2425, 2425, 2368]
    assert sum(told["lengths"].values()) == 2425
    assert json.loads(json.dumps(told, allow_nan=False)) == told


def test_spread_and_labels_are_those_of_the_measured_programs(epyc: Any, told: dict[str, Any]) -> None:
    data = load_measured(DATASETS / "epyc", PAPER)
    by_key = {task["workload_key"]: task for task in told["tasks"]}
    for i, task in enumerate(data.tasks):
        latencies = data.latencies[data.programs_of(i)]
        entry = by_key[task.workload_key]
        for p, platform in enumerate(data.platforms):
            column = latencies[:, p][np.isfinite(latencies[:, p])]
            mine = entry["platforms"][platform.name]
            assert mine["best_s"] == column.min()
            assert mine["median_over_best"] == pytest.approx(np.median(column) / column.min())
            assert mine["worst_over_best"] == pytest.approx(column.max() / column.min())
    for p, platform in enumerate(told["platforms"]):
        median = np.nanmedian(data.labels[:, p])
        assert platform["label"]["median"] == pytest.approx(median, abs=0.006)


def test_noise_is_that_of_the_repeats(told: dict[str, Any]) -> None:
    for platform in told["platforms"]:
        noise = []
        for batch in iter_records(DATASETS / "epyc" / platform["name"]):
            for begin, end in pairwise(batch.cost_offsets):
                costs = batch.cost_values[begin:end]
                if len(costs) > 1:
                    noise.append(costs.std(ddof=1) / costs.mean())
        assert platform["noise"]["median"] == pytest.approx(np.median(noise), rel=0.06)  # a bin's width
        assert platform["noise"]["p90"] == pytest.approx(np.quantile(noise, 0.9), rel=0.06)


def test_collisions_are_those_of_the_embeddings(told: dict[str, Any]) -> None:
    data = load_measured(DATASETS / "epyc", PAPER)
    rows: dict[bytes, list[int]] = {}
    for i, (task, features) in enumerate(zip(data.task_index, data.features(), strict=True)):
        rows.setdefault(bytes([task]) + features.tobytes(), []).append(i)
    groups = [members for members in rows.values() if len(members) > 1]
    [found] = [entry for entry in told["collisions"] if entry["what"] == "embedding paper-cpu, within a task"]
    assert (found["programs"], found["distinct"]) == (2425, len(rows))
    assert (found["groups"], found["programs_in_groups"]) == (len(groups), sum(map(len, groups)))
    ratios = [
        np.nanmax(data.latencies[g, p]) / np.nanmin(data.latencies[g, p])
        for g in groups
        for p in range(3)
        if np.sum(~np.isnan(data.latencies[g, p])) > 1
    ]
    assert found["latency_ratio"]["max"] == pytest.approx(max(ratios), rel=1e-6)
    assert found["latency_ratio"]["median"] == pytest.approx(np.median(ratios), rel=1e-6)
    steps = {entry["what"]: entry for entry in told["collisions"]}
    assert steps["steps, within a task"]["groups"] == 0  # a program's identity is its sequence
    assert steps["steps, across tasks"]["groups"] > 0


def test_cuts_are_those_of_the_layout(told: dict[str, Any]) -> None:
    files = sorted((DATASETS / "epyc" / "epyc-avx2-1c").rglob("*.gz"))  # it has every program
    expected = layout_statistics(iter_records(files), PAPER)
    [found] = [entry for entry in told["layouts"] if entry["layout"] == "paper-cpu"]
    assert found["cut_share"] == expected.cut_share > 0
    assert found["cut_rows"] == expected.report.cut_rows
    assert (found["proposal"]["length"], found["proposal"]["width"]) == expected.proposal()
    assert {int(k): v for k, v in told["lengths"].items()} == dict(sorted(expected.lengths.items()))


def test_networks_count_their_tasks(told: dict[str, Any]) -> None:
    by_name = {network["network"]: network for network in told["networks"]}
    tasks = [task for task in told["tasks"] if "vgg_11" in task["networks"]]
    assert by_name["vgg_11"]["tasks"] == len(tasks)
    assert by_name["vgg_11"]["programs"] == sum(task["programs"] for task in tasks)
    assert by_name["vgg_11"]["sequences"] < by_name["vgg_11"]["programs"]  # two tasks share steps
    assert set(told["splits"]) == {"train", "test"}


def test_failures_are_told_by_reason(tmp_path: Path) -> None:
    a, b = (program(random.Random(i), 2, i + 1) for i in range(2))
    told = small(
        tmp_path,
        ("alpha", 0, a, [1e10], 2),
        ("alpha", 0, b, [1.0, 3.0], 0),
        ("alpha", 1, a, [1e10], 7),
        ("beta", 0, a, [1e10], 44),
        ("beta", 0, b, [2.0], 0),
    )
    alpha, beta = told["platforms"]
    assert alpha["failures"] == {"does not compile": 1, "runs too long": 1}
    assert beta["failures"] == {"error 44": 1}
    assert (alpha["programs"], alpha["failed"], alpha["tasks"]) == (3, 2, 2)
    assert alpha["noise"]["median"] == pytest.approx(2**0.5 / 2, rel=0.06)
    assert beta["noise"] is None
    [second] = [task for task in told["tasks"] if task["workload_key"] == workload(1)]
    assert second["platforms"][alpha["name"]] == {
        "programs": 1,
        "failed": 1,
        "failures": {"runs too long": 1},
    }
    [network] = told["networks"]
    assert network["platforms"][alpha["name"]]["failures"] == alpha["failures"]
    assert second["platforms"][beta["name"]] == {"programs": 0, "failed": 0}


def test_how_far_equal_input_differs() -> None:
    keys = np.array([[1], [2], [1], [3], [2], [1]], np.uint64)
    latencies = np.array([[1.0], [5.0], [4.0], [9.0], [np.inf], [2.0]], np.float32)
    labels = np.array([[1.0], [0.5], [0.25], [1.0], [np.nan], [0.5]], np.float32)
    found = collisions(keys, latencies, labels)
    assert (found["distinct"], found["groups"], found["programs_in_groups"]) == (3, 2, 5)
    assert found["latency_ratio"] == {"median": 4.0, "p90": 4.0, "max": 4.0}  # the other has one latency
    assert found["label_gap"]["max"] == 0.75
    assert collisions(keys[:2], latencies[:2], labels[:2])["latency_ratio"] is None


def test_a_histogram_finds_quantiles_within_a_bin() -> None:
    values = np.random.default_rng(0).random(10_000)
    histogram = Histogram(np.linspace(0, 1, 101))
    histogram.add(values)
    histogram.add(np.array([-5.0, 7.0]))
    assert len(histogram) == 10_002
    assert (histogram.counts[0] > 50, histogram.counts[-1] > 50) == (True, True)
    assert histogram.quantile(0.3) == pytest.approx(0.3, abs=0.02)
    assert np.isnan(Histogram(np.linspace(0, 1, 3)).quantile(0.5))


def test_the_page_needs_nothing_else(epyc: Any) -> None:
    page = statistics_page(epyc)
    assert page.count("<svg") == page.count("</svg>") == 4
    assert not re.findall(r"""(?:src|href)=["'](?!#)""", page.replace('xlink:href="#', ""))
    assert "<h1>epyc &lt;dataset&gt;</h1>" in page
    assert "epyc-avx512-2c" in page
    for heading in ("Platforms", "Collisions", "Layouts", "Networks", "Tasks"):
        assert f"<h2>{heading}</h2>" in page


def test_a_page_of_a_dataset_without_a_latency(tmp_path: Path) -> None:
    log = tmp_path / "log.json"
    log.write_text(line("alpha", 0, program(random.Random(0), 2, 1), [1e10], 2) + "\n")
    build_dataset([log], tmp_path / "out")
    statistics = dataset_statistics(open_dataset(tmp_path / "out"), [PAPER])
    told = summary_of(statistics)
    assert (told["platforms"][0]["spread"], told["platforms"][0]["label"]) == (None, None)
    assert "NaN" not in json.dumps(told)
    assert "How long are the sequences?" in statistics_page(statistics)
