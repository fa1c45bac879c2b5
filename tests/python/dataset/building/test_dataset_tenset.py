"""A small TenSet tree, made of real records, becomes a dataset."""

from __future__ import annotations

import gzip
import json
import pickle
from pathlib import Path
from typing import Any

import pytest

from logs import DATASETS
from programs import LAYOUT
from tlp_tvm import read_records
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.dataset import open_dataset
from tlp_tvm.dataset.building.build import build_from
from tlp_tvm.dataset.building.split_rules import FamilySplit, KeepSplits
from tlp_tvm.dataset.building.tenset import network_name, published_split, tenset_source
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.errors import DatasetError

TARGET = "llvm -keys=cpu -link-params=0 -mcpu=core-avx2 -model={}"
PLATFORMS = ("e5-2673", "epyc-7452")
FILES = min((DATASETS / "epyc" / "epyc-avx2-1c").glob("train")), 4


def flat(key: str) -> str:
    """A workload key as TenSet has it: the extents of all tensors in one list."""
    name, *shapes = json.loads(key)
    return json.dumps([name, *(extent for shape in shapes for extent in shape)])


def lines_of(file: Path, platform: str) -> tuple[str, list[str]]:
    """The workload key and the lines of a file, as TenSet would have them."""
    lines, key = [], ""
    for text in gzip.decompress(file.read_bytes()).decode().splitlines():
        record = json.loads(text)
        key = flat(record["i"][0][0])
        record["i"][0][:2] = [key, TARGET.format(platform)]
        lines.append(json.dumps(record))
    return key, lines


@pytest.fixture
def tree(tmp_path: Path) -> Path:
    """Two platforms and four tasks; the second platform has fewer lines, a damaged one and a broken end."""
    folder, count = FILES
    for platform in PLATFORMS:
        place = tmp_path / "tree" / "measure_records" / platform
        place.mkdir(parents=True)
        for i, file in enumerate(sorted(folder.glob("*.gz"))[:count]):
            key, lines = lines_of(file, platform)
            if platform == PLATFORMS[1]:
                lines = lines[:40]
                if i == 1:
                    lines[7] = lines[7].replace('"SP"', '"\x00P"', 1)
                if i == 2:
                    lines[-1] = lines[-1][:300]
            name = key.replace(" ", "").replace('"', "")
            (place / f"({name},llvm).json").write_text("\n".join(lines) + ("\n" if i != 2 else ""))
    return tmp_path / "tree"


class SearchTask:
    """Pickles as TVM's SearchTask does: through a function, with its state beside it."""

    def __init__(self, key: str) -> None:
        self.key = key

    def __reduce__(self) -> Any:
        return SearchTask, ("",), {"workload_key": self.key, "compute_dag": None, "target": "llvm"}


def keys(tree: Path) -> list[str]:
    return [task.workload_key for task in read_records(tree / "measure_records" / PLATFORMS[0]).tasks]


def write_networks(tree: Path, networks: dict[str, dict[str, int]]) -> None:
    folder = tree / "network_info"
    folder.mkdir()
    for name, weights in networks.items():
        tasks = [SearchTask(key) for key in weights]
        (folder / f"(({name}),llvm).task.pkl").write_bytes(pickle.dumps((tasks, list(weights.values()))))
        (folder / f"({name}).relay.pkl").write_bytes(b"never read")


def imported(tree: Path, out: Path, *, trust_pickle: bool = False) -> Any:
    source = tenset_source(tree, trust_pickle=trust_pickle)
    build_from([source], out, split=published_split(source), errors="skip", allow_odd_targets=True)
    return open_dataset(out).manifest


def test_a_tree_is_imported_without_its_pickles(tree: Path, tmp_path: Path) -> None:
    write_networks(tree, {"resnet_50,[(1,3,224,224)]": {"a": 1}})
    manifest = imported(tree, tmp_path / "out")
    assert [p.name for p in manifest.platforms] == list(PLATFORMS)
    assert [p.target for p in manifest.platforms] == [TARGET.format(p) for p in PLATFORMS]
    assert sum(manifest.skipped.values()) == 2, manifest.skipped
    assert len(manifest.skipped) == 2, manifest.skipped  # two reasons
    assert manifest.platforms[1].measurements == 4 * 40 - 2
    assert {(t.split, tuple(t.weights)) for t in manifest.tasks} == {("train", ("records",))}
    data = load_measured(tmp_path / "out", LAYOUT)
    assert len(data) == manifest.platforms[0].measurements  # the second platform adds no program


def test_trusted_pickles_tell_networks_and_the_published_split(tree: Path, tmp_path: Path) -> None:
    a, b, c, d = keys(tree)
    write_networks(
        tree,
        {
            "resnet_50,[(1,3,224,224)]": {a: 2, b: 1, "not measured": 5},
            "resnet_50,[(4,3,240,240)]": {b: 3},
            "bert_tiny,[(1,128)]": {c: 12},
        },
    )
    manifest = imported(tree, tmp_path / "out", trust_pickle=True)
    tasks = {task.workload_key: task for task in manifest.tasks}
    assert tasks.keys() == {a, b, c, d}
    assert (tasks[a].split, tasks[a].weights) == ("test", {"resnet_50-224": 2})
    assert (tasks[b].split, tasks[b].weights) == ("test", {"resnet_50-224": 1})
    assert tasks[b].also_in == {"resnet_50-240-b4": 3}
    assert (tasks[c].split, tasks[c].weights) == ("test", {"bert_tiny-128": 12})
    assert (tasks[d].split, tasks[d].weights) == ("train", {"records": 1})


def test_a_pickle_runs_nothing(tree: Path) -> None:
    """Not even when trusted: what it names is never imported."""

    class Bomb:
        def __reduce__(self) -> Any:
            return Path.touch, (tree / "exploded",)

    write_networks(tree, {})
    file = tree / "network_info" / "((resnet_50,[(1,3,224,224)]),llvm).task.pkl"
    file.write_bytes(pickle.dumps(([Bomb()], [1])))
    assert tenset_source(tree).table is None
    with pytest.raises(
        DatasetError, match="expected a pickle of a network's tasks and weights, found TypeError"
    ):
        tenset_source(tree, trust_pickle=True)
    assert not (tree / "exploded").exists()


def test_the_pickles_of_tvm_are_read(tree: Path) -> None:
    load_tvm()
    task = operator_task("conv2d", "llvm")
    (tree / "network_info").mkdir()
    file = tree / "network_info" / "((resnext_50,[(1,3,224,224)]),llvm).task.pkl"
    file.write_bytes(pickle.dumps(([task], [3])))
    table = tenset_source(tree, trust_pickle=True).table
    assert table is not None
    [[entry]] = table.values()
    assert (entry["workload_key"], entry["weight"]) == (task.workload_key, 3)
    assert entry["network"] == "resnext_50-224"


def test_other_targets_of_a_platform_are_noted(tree: Path, tmp_path: Path) -> None:
    file = min((tree / "measure_records" / PLATFORMS[0]).iterdir())
    lines = file.read_text().splitlines()
    lines[3] = lines[3].replace("-link-params=0 ", "")
    file.write_text("\n".join(lines) + "\n")
    manifest = imported(tree, tmp_path / "out")
    assert manifest.platforms[0].target == TARGET.format(PLATFORMS[0])
    assert len(manifest.notes) == 1
    assert manifest.notes[0].startswith(f"platform {PLATFORMS[0]}: also has records of llvm -keys=cpu -mcpu")


def test_a_folder_of_trees_is_one_tree(tree: Path, tmp_path: Path) -> None:
    (tmp_path / "scripts").mkdir()
    tree.rename(tmp_path / "scripts" / "dataset_cpu")
    (tmp_path / "scripts" / "dataset").symlink_to("dataset_cpu")
    source = tenset_source(tmp_path / "scripts")
    assert [group.platform for group in source.groups] == list(PLATFORMS)


def test_what_is_no_tree_is_refused(tmp_path: Path, tree: Path) -> None:
    with pytest.raises(
        DatasetError, match="expected a TenSet tree with a folder measure_records, found none"
    ):
        tenset_source(tmp_path / "elsewhere")
    with pytest.raises(DatasetError, match=r"network_info: expected \*\.task\.pkl of networks, found none"):
        tenset_source(tree, trust_pickle=True)
    (tree / "measure_records" / "empty").mkdir()
    with pytest.raises(DatasetError, match="empty: expected record files"):
        tenset_source(tree)


def test_the_names_of_networks() -> None:
    names = {
        "((resnet_50,[(1,3,224,224)]),llvm).task.pkl": "resnet_50-224",
        "((densenet_121,[(8,3,256,256)]),cuda).task.pkl": "densenet_121-256-b8",
        "((bert_base,[(1,128)]),llvm).task.pkl": "bert_base-128",
        "((bert_base,[1,128]),llvm).task.pkl": "bert_base-128",
    }
    assert {name: network_name(name) for name in names} == names
    with pytest.raises(DatasetError, match=r"^odd\.task\.pkl: expected a name like"):
        network_name("odd.task.pkl")


def test_the_published_split_needs_its_networks(tree: Path) -> None:
    assert published_split(tenset_source(tree)) == KeepSplits()
    write_networks(tree, {"bert_base,[(1,128)]": {keys(tree)[0]: 1}})
    split = published_split(tenset_source(tree, trust_pickle=True))
    assert split == FamilySplit(test=("bert_base-128",), validation=0.0)
