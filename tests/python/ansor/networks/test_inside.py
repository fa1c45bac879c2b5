"""Programs are chosen by their time inside the network: the rules, and a label that lies in a real tuning."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path

import numpy as np
import pytest

from scorers import LinearScorer
from tlp_tvm.ansor.networks import inside
from tlp_tvm.ansor.networks.inside import Built, built_small, fastest, variants
from tlp_tvm.ansor.reading.records import read_records
from tlp_tvm.measuring.child import Timing
from tlp_tvm.measuring.pool import MeasureSettings
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.network.operator_times import Ran
from tlp_tvm.tuning.tune_settings import TuneSettings

TARGET = "llvm -mcpu=core-avx2 -num-cores=1"
TASKS = {"f": "dense", "g": "conv", "h": ""}


def test_each_network_has_the_next_program_of_every_task_whose_label_is_near() -> None:
    programs = {
        "dense": [(1.0, "a"), (1.1, "b"), (1.2, "c"), (1.3, "d")],
        "conv": [(1.0, "e"), (1.01, "f"), (2.0, "g")],
        "pool": [(1.0, "h")],
    }

    assert variants(programs) == [
        {"dense": "a", "conv": "e", "pool": "h"},
        {"dense": "b", "conv": "f", "pool": "h"},
        {"dense": "c", "conv": "e", "pool": "h"},
        {},
    ]
    assert variants(programs, hopeless={"conv", "another"})[-1] == {"conv": "e"}


def test_no_network_is_tried_that_is_the_first_one_again() -> None:
    programs = {"conv": [(1.0, "a"), (1.1, "b")], "other": [(1.0, "c")]}

    assert variants(programs, hopeless=set(programs)) == [
        {"conv": "a", "other": "c"},
        {"conv": "b", "other": "c"},
    ]
    assert variants({}) == [{}]


def test_a_task_keeps_what_ran_fastest_by_more_than_a_profile_can_tell() -> None:
    usual = [Ran("f", 2, 1.0), Ran("g", 1, 1.0), Ran("h", 1, 1.0)]
    close = [Ran("f", 2, 0.99), Ran("g", 1, 0.9), Ran("h", 1, 0.1)]
    own = [Ran("f", 2, 0.5), Ran("g", 1, 0.95)]

    assert fastest([(each, TASKS) for each in (usual, close)], ["dense", "conv"]) == {"conv": 1}
    assert fastest([(each, TASKS) for each in (usual, close, own)], ["dense", "conv"]) == {
        "dense": 2,
        "conv": 1,
    }
    assert fastest([(usual, TASKS), ([], {})], ["dense", "pool"]) == {}


def test_a_task_whose_own_schedule_is_too_much_code_has_its_program(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Mapping[str, str]] = []

    def build(lines: Mapping[str, str]) -> Built:
        asked.append(lines)
        return f"network {len(asked)}", TASKS

    sizes = {"f": inside.MOST_CODE + 1, "g": 10, "h": inside.MOST_CODE + 1}
    monkeypatch.setattr(inside, "code_sizes", lambda _built: sizes)
    first = {"dense": "a", "conv": "e"}

    assert built_small({}, first, build) == ({"dense": "a"}, ("network 2", TASKS))
    assert asked == [{}, {"dense": "a"}]
    assert built_small(first, first, build)[0] == first
    assert built_small({}, {"conv": "e"}, build)[0] == {}
    assert built_small({}, first, lambda _lines: None) == ({}, None)


def test_a_program_whose_label_flatters_is_not_what_the_network_gets(tmp_path: Path) -> None:
    """A layer of a batch of 128 takes thirty times as long unscheduled, and one thread waits for no other: no
    busy machine hides that."""
    settings = TuneSettings(
        "mlp-b128",
        tmp_path,
        model=LinearScorer(),
        target=TARGET,
        trials=16,
        population=32,
        turns=3,
        measure=MeasureSettings(timing=Timing(repeat=2, min_repeat_ms=1), threads=0),
    )
    tune_network(settings)
    batch = read_records(tmp_path / "log.json")
    heaviest = max(range(len(batch.tasks)), key=lambda i: batch.latencies[batch.task_ids == i].min())
    ran = np.flatnonzero((batch.task_ids == heaviest) & np.isfinite(batch.latencies))
    fastest = int(ran[np.argmin(batch.latencies[ran])])
    lines = (tmp_path / "log.json").read_text().splitlines()
    record = json.loads(lines[fastest])
    record["i"][1] = [[], []]  # one thread, no tiles, no vectors
    record["r"][0] = [0.9 * float(batch.latencies[fastest])] * 2
    slowest = int(ran[np.argmax(batch.latencies[ran])])  # the fastest stays: it is what the network can get
    assert slowest != fastest
    lines[slowest] = json.dumps(record)
    (tmp_path / "log.json").write_text("\n".join(lines) + "\n")

    result = tune_network(settings)

    assert (result.trials, result.reused) == (16, 16)
    assert result.changed_inside >= 1
    steps = {json.dumps(json.loads(line)["i"][1]) for line in result.best.read_text().splitlines()}
    assert json.dumps(record["i"][1]) not in steps
    assert result.end_to_end is not None
    assert result.end_to_end.difference < 1e-4
