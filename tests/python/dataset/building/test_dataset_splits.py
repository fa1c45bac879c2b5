"""Rules that divide the project's own tasks; no task, and by choice no near-duplicate, on two sides."""

from __future__ import annotations

import json
import re
from collections import Counter
from pathlib import Path

import pytest

from logs import DATASETS
from tlp_tvm.dataset import open_dataset
from tlp_tvm.dataset.building.build import build_dataset
from tlp_tvm.dataset.building.near_duplicates import near_duplicate_groups
from tlp_tvm.dataset.building.split_rules import (
    Assignment,
    FamilySplit,
    KeepSplits,
    SplitRule,
    TaskFacts,
    TaskSplit,
    family_of,
)
from tlp_tvm.errors import DatasetError

ENTRIES = json.loads((DATASETS / "epyc" / "tasks.json").read_text())


def real_tasks() -> list[TaskFacts]:
    """All tasks of the project's 16 networks, measured or not."""
    tasks: dict[str, TaskFacts] = {}
    for entry in ENTRIES:
        networks = tasks[entry["workload_key"]].networks if entry["workload_key"] in tasks else {}
        tasks[entry["workload_key"]] = TaskFacts(
            entry["workload_key"],
            entry["split"],
            networks | {entry["network"]: (entry["weight"], entry["split"])},
            64,
            entry["flop"],
            entry["desc"],
        )
    return list(tasks.values())


TASKS = real_tasks()


def sides(assignment: Assignment) -> dict[str, set[str]]:
    """Side -> its workload keys."""
    out: dict[str, set[str]] = {}
    for task, split in zip(TASKS, assignment.splits, strict=True):
        out.setdefault(split, set()).add(task.workload_key)
    return out


def groups() -> dict[str, int]:
    found = near_duplicate_groups([(task.workload_key, task.description) for task in TASKS])
    return {task.workload_key: group for task, group in zip(TASKS, found, strict=True)}


def together(a: str, b: str) -> None:
    assert groups()[a] == groups()[b], (a, b)


@pytest.mark.parametrize(
    ("one", "other"), [("mobilenet-224", "mobilenet-192-b4"), ("resnet_18-224", "resnet_18-240-b4")]
)
def test_a_network_at_another_size_and_batch_has_near_duplicates(one: str, other: str) -> None:
    """The same function of the same network, at another image size and batch: always one group."""
    by_name = [
        {e["desc"]: e["workload_key"] for e in ENTRIES if e["network"] == network} for network in (one, other)
    ]
    found = groups()
    shared = by_name[0].keys() & by_name[1].keys()
    assert len(shared) > 15
    same_hash = 0
    for name in shared:
        a, b = by_name[0][name], by_name[1][name]
        if [shape[-1] for shape in json.loads(a)[1:]] == [shape[-1] for shape in json.loads(b)[1:]]:
            assert found[a] == found[b], name
            same_hash += json.loads(a)[0] == json.loads(b)[0]
    assert same_hash < len(shared)  # the hash alone would have let some through


def test_unlike_operators_are_no_near_duplicates() -> None:
    found = groups()
    by_group = Counter(found.values())
    assert len(by_group) == 51
    assert max(by_group.values()) < len(TASKS) / 5
    operators: dict[int, set[str]] = {}
    for task in TASKS:
        name = re.sub(r"_\d+$", "", task.description or "")
        operators.setdefault(found[task.workload_key], set()).add("softmax" if "softmax" in name else name)
    assert [names for names in operators.values() if "softmax" in names] == [{"softmax"}] * 2  # a flat one


def test_without_names_only_the_hash_counts() -> None:
    keys = ['["a", 1, 2]', '["a", 4, 2]', '["b", 1, 2]', "custom", "custom"]
    assert near_duplicate_groups([(key, None) for key in keys]) == [0, 0, 1, 2, 2]


@pytest.mark.parametrize("seed", range(5))
def test_by_task_no_near_duplicate_is_on_two_sides(seed: int) -> None:
    assignment = TaskSplit(test=0.15, validation=0.1, seed=seed).apply(TASKS)
    found = groups()
    side_of: dict[int, set[str]] = {}
    for task, split in zip(TASKS, assignment.splits, strict=True):
        side_of.setdefault(found[task.workload_key], set()).add(split)
    assert all(len(of_group) == 1 for of_group in side_of.values())
    shares = {split: len(keys) / len(TASKS) for split, keys in sides(assignment).items()}
    assert shares.keys() == {"train", "validation", "test"}
    assert shares["test"] == pytest.approx(0.15, abs=0.02)
    assert shares["validation"] == pytest.approx(0.1, abs=0.02)


def test_by_task_is_random_and_repeatable() -> None:
    first = TaskSplit(seed=0).apply(TASKS)
    assert first == TaskSplit(seed=0).apply(TASKS)
    assert first.splits != TaskSplit(seed=1).apply(TASKS).splits
    apart = TaskSplit(seed=0, near_duplicates="apart").apply(TASKS)
    assert apart.splits != first.splits
    assert Counter(apart.splits)["test"] == round(len(TASKS) * 0.1)


def test_by_family_the_projects_networks_are_held_out() -> None:
    assignment = FamilySplit(validation=0.15).apply(TASKS)
    held_out = {"resnet_50-224", "bert_base-128", "bert_tiny-128"}
    assert set(assignment.stated["test"]) == held_out
    validating = set(assignment.stated["validation"])
    assert validating
    for task, split, here in zip(TASKS, assignment.splits, assignment.networks, strict=True):
        families = {family_of(network) for network in task.networks}
        if held_out & set(task.networks):
            assert (split, here) == ("test", held_out & set(task.networks))
        elif families & validating:
            assert split == "validation"
        else:
            assert (split, here) == ("train", set(task.networks))


def test_by_family_a_whole_family_can_be_held_out() -> None:
    assignment = FamilySplit(test=("resnet", "gpt_like"), validation=0.0).apply(TASKS)
    tests = {n for n in {n for t in TASKS for n in t.networks} if n.startswith(("resnet", "gpt"))}
    assert set(assignment.stated["test"]) == tests
    assert set(assignment.splits) == {"test", "train"}


def test_by_family_near_duplicates_follow_the_test_networks() -> None:
    rule = FamilySplit(test=("mobilenet-224",), validation=0.0, near_duplicates="together")
    assignment = rule.apply(TASKS)
    found = groups()
    tested = {found[t.workload_key] for t in TASKS if "mobilenet-224" in t.networks}
    for task, split in zip(TASKS, assignment.splits, strict=True):
        assert (split == "test") == (found[task.workload_key] in tested)


def test_what_cannot_be_divided_is_refused() -> None:
    with pytest.raises(
        DatasetError, match=r"`test` lenet: expected a network, architecture or family of bert"
    ):
        FamilySplit(test=("lenet",)).apply(TASKS)
    mobile = [task for task in TASKS if set(task.networks) == {"mobilenet-224"}]
    with pytest.raises(DatasetError, match="expected test networks among mobilenet-224, found none"):
        FamilySplit().apply(mobile)
    with pytest.raises(DatasetError, match="expected more than 2 groups of tasks to divide, found 2"):
        TaskSplit(near_duplicates="apart").apply(TASKS[:2])


def test_families() -> None:
    names = [
        "resnet_18-240-b4",
        "bert_base-128",
        "resnext_50-224-b8",
        "wide_resnet_50-224",
        "densenet_121-256",
    ]
    assert [family_of(name) for name in names] == ["resnet", "bert", "resnext", "wide", "densenet"]


@pytest.mark.parametrize("rule", [KeepSplits(), TaskSplit(), FamilySplit()])
def test_a_dataset_states_its_split(tmp_path: Path, rule: SplitRule) -> None:
    build_dataset([DATASETS / "epyc"], tmp_path / "out", split=rule)
    manifest = open_dataset(tmp_path / "out").manifest
    facts = [task for task in TASKS if task.workload_key in {t.workload_key for t in manifest.tasks}]
    assert len(facts) == len(manifest.tasks) == 37
    assert manifest.split["rule"] in type(rule).__name__.lower()
    kept = {task.workload_key: task.split for task in facts}
    if isinstance(rule, KeepSplits):
        assert {task.workload_key: task.split for task in manifest.tasks} == kept
