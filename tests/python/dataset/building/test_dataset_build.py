"""Records become a dataset of shards, and nothing of them is lost."""

from __future__ import annotations

import gzip
import json
import os
import random
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from logs import DATASETS
from programs import LAYOUT, TARGETS, line, program, table_entry, write_dataset
from tlp_tvm import read_records
from tlp_tvm.dataset import open_dataset
from tlp_tvm.dataset.building import build as building
from tlp_tvm.dataset.building.build import build_dataset
from tlp_tvm.dataset.building.split_rules import FamilySplit
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.errors import DatasetError, RecordError
from tlp_tvm.layout import FeatureLayout

EPYC = DATASETS / "epyc"


def assert_equal(built: MeasuredDataset, raw: MeasuredDataset) -> None:
    assert built.platforms == raw.platforms
    assert built.tasks == raw.tasks
    np.testing.assert_array_equal(built.task_index, raw.task_index)
    np.testing.assert_array_equal(built.latencies, raw.latencies)
    np.testing.assert_array_equal(built.labels, raw.labels)
    np.testing.assert_array_equal(built.counts, raw.counts)
    np.testing.assert_array_equal(built.features(), raw.features())


@pytest.fixture(scope="module")
def epyc(tmp_path_factory: pytest.TempPathFactory) -> Path:
    out = tmp_path_factory.mktemp("built") / "epyc"
    build_dataset([EPYC], out)
    return out


@pytest.mark.parametrize("preset", ["ansor", "paper-cpu"])
def test_a_built_dataset_is_what_its_records_are(epyc: Path, preset: str) -> None:
    layout = FeatureLayout.preset(preset)
    assert_equal(load_measured(epyc, layout), load_measured(EPYC, layout))


def test_platforms_are_chosen_in_order(epyc: Path) -> None:
    chosen = ["epyc-sse42-1c", "epyc-avx2-1c"]
    layout = FeatureLayout.preset("paper-cpu")
    built = load_measured(epyc, layout, platforms=chosen)
    assert [platform.name for platform in built.platforms] == chosen
    every = load_measured(EPYC, layout)
    np.testing.assert_array_equal(built.latencies, every.latencies[:, [2, 0]])
    one = load_measured(epyc, layout, platforms=chosen[:1])
    missed = np.isnan(every.latencies[:, 2])
    assert missed.sum() == 57
    np.testing.assert_array_equal(one.latencies[:, 0], every.latencies[~missed, 2])
    np.testing.assert_array_equal(one.features(), every.features()[~missed])


def test_programs_of_two_platforms_line_up_by_identity(epyc: Path) -> None:
    """Each measurement of every record is found again, under its task and its sequence."""
    dataset = open_dataset(epyc)
    found: dict[tuple[str, str, int], list[tuple[float, ...]]] = {}
    for batch in dataset.batches():
        np.testing.assert_array_equal(batch.records().sequence_hashes, batch.sequence_hashes)
        for m, row in enumerate(batch.programs):
            costs = batch.cost_values[batch.cost_offsets[m] : batch.cost_offsets[m + 1]]
            platform = dataset.manifest.platforms[batch.platforms[m]].name
            key = dataset.manifest.tasks[batch.tasks[row]].workload_key
            found.setdefault((platform, key, int(batch.sequence_hashes[row])), []).append(tuple(costs))
    count = 0
    for platform in dataset.manifest.platforms:
        records = read_records(EPYC / platform.name)
        assert platform.measurements == len(records)
        for i, sequence in enumerate(records.sequence_hashes):
            costs = records.cost_values[records.cost_offsets[i] : records.cost_offsets[i + 1]]
            key = records.tasks[records.task_ids[i]].workload_key
            assert tuple(costs) in found[platform.name, key, int(sequence)]
            count += 1
    assert sum(map(len, found.values())) == count == dataset.manifest.measurements == 7218


def test_the_steps_are_those_of_the_records(epyc: Path) -> None:
    batch = next(iter(open_dataset(epyc).batches()))
    first = read_records(min((EPYC / "epyc-avx2-1c" / "test").glob("*.gz")))
    assert json.loads(batch.steps[0].as_py()) == first.steps(0)
    assert batch.records().steps(0) == first.steps(0)


def test_the_manifest_tells_of_tasks_and_platforms(epyc: Path) -> None:
    manifest = open_dataset(epyc).manifest
    assert (manifest.programs, manifest.measurements, manifest.framework) == (2425, 7218, "ansor")
    assert [p.target.split()[2] for p in manifest.platforms] == [
        "-mcpu=core-avx2",
        "-mcpu=skylake-avx512",
        "-mcpu=nehalem",
    ]
    entries = {e["workload_key"]: e for e in json.loads((EPYC / "tasks.json").read_text())}
    for task in manifest.tasks:
        entry = entries[task.workload_key]
        assert (task.flop, task.description) == (entry["flop"], entry["desc"])
        assert entry["network"] in task.weights | task.also_in
    assert manifest.split == {"rule": "keep"}


def test_partitions_change_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records of all tasks mixed, in tiny batches, through many partitions: the same programs."""
    lines = [
        text
        for file in sorted((EPYC / "epyc-avx2-1c").rglob("*.gz"))
        for text in gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    ]
    random.Random(3).shuffle(lines)
    log = tmp_path / "log.json"
    log.write_bytes(b"".join(lines))
    monkeypatch.setattr(building, "PARTITION_BYTES", log.stat().st_size // 6)
    monkeypatch.setattr("tlp_tvm.records.record_files.BLOCK_BYTES", 100_000)
    build_dataset([log], tmp_path / "out")
    assert len(open_dataset(tmp_path / "out").manifest.shards) == 7
    layout = FeatureLayout.preset("paper-cpu")
    assert_equal(load_measured(tmp_path / "out", layout), load_measured(log, layout))


def test_the_same_records_give_the_same_digest(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "source")
    for name in ("a", "b"):
        build_dataset([source], tmp_path / name)
    digests = [open_dataset(tmp_path / name).digest for name in ("a", "b")]
    assert digests[0] == digests[1]
    assert load_measured(tmp_path / "a", LAYOUT).digest == digests[0]
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b", "source"]


def test_plain_logs_are_named(tmp_path: Path) -> None:
    rng = random.Random(0)
    log = tmp_path / "log.json"
    log.write_text(line("alpha", 0, program(rng, 2, 1), [1.0]) + "\n")
    assert build_dataset([log], tmp_path / "a").platforms[0].name == TARGETS["alpha"]
    assert build_dataset([log], tmp_path / "b", platform="mine").platforms[0].name == "mine"
    assert build_dataset([log], tmp_path / "c").tasks[0].weights == {"records": 1}


def test_each_log_may_have_a_platform_of_its_own(tmp_path: Path) -> None:
    steps = program(random.Random(0), 2, 1)
    for name, platform in (("a", "alpha"), ("b", "beta")):
        (tmp_path / f"{name}.json").write_text(line(platform, 0, steps, [1.0]) + "\n")
    with (tmp_path / "b.json").open("a") as more:
        more.write(line("alpha", 0, steps, [2.0]) + "\n")
    sources = [f"one={tmp_path / 'a.json'}", f"two={tmp_path / 'b.json'}"]
    with pytest.raises(DatasetError, match="platform two: expected one target, found"):
        build_dataset(sources, tmp_path / "out")
    built = build_dataset(sources, tmp_path / "out", allow_odd_targets=True)
    assert [(p.name, p.target, p.measurements) for p in built.platforms] == [
        ("one", TARGETS["alpha"], 1),
        ("two", TARGETS["beta"], 2),
    ]
    assert built.programs == 1
    assert "platform two: also has records of " + TARGETS["alpha"] in built.notes[0]


def test_sources_are_joined(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "source")
    log = tmp_path / "more.json"
    steps = program(random.Random(9), 2, 77)
    log.write_text(line("alpha", 0, steps, [1e-9]) + "\n" + line("alpha", 40, steps, [3.0]) + "\n")
    alone = build_dataset([source], tmp_path / "alone")
    joined = build_dataset([source, log], tmp_path / "joined", platform="alpha")
    assert joined.programs == alone.programs + 2
    assert [p.name for p in joined.platforms] == ["alpha", "beta"]
    assert len(joined.tasks) == len(alone.tasks) + 1


def test_a_task_without_records_stays_in_the_table(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "source")
    entries = [*json.loads((source / "tasks.json").read_text()), table_entry(50, "test", "other", 7)]
    (source / "tasks.json").write_text(json.dumps(entries))
    build_dataset([source], tmp_path / "out")
    assert_equal(load_measured(tmp_path / "out", LAYOUT), load_measured(source, LAYOUT))
    assert open_dataset(tmp_path / "out").manifest.tasks[-1].programs == 0


def test_a_folder_of_the_collector_is_a_source(tmp_path: Path) -> None:
    """Plain .json beside its lock, its log and its description."""
    source = write_dataset(tmp_path / "source")
    for file in source.rglob("*.json.gz"):
        file.with_suffix("").write_bytes(gzip.decompress(file.read_bytes()))
        file.unlink()
    (source / "alpha" / ".lock").touch()
    (source / "alpha.log").write_text("what a child printed\n")
    (source / "collection.json").write_text("{}")
    build_dataset([source], tmp_path / "out")
    assert_equal(load_measured(tmp_path / "out", LAYOUT), load_measured(source, LAYOUT))


def test_failures_and_repeats_are_kept(tmp_path: Path) -> None:
    steps = program(random.Random(1), 4, 2)
    log = tmp_path / "log.json"
    records = [([1e10], 4), ([2.0, 4.0], 0), ([], 6), ([5.0], 0)]
    log.write_text("".join(line("alpha", 0, steps, costs, error) + "\n" for costs, error in records))
    build_dataset([log], tmp_path / "out")
    [batch] = open_dataset(tmp_path / "out").batches()
    assert (len(batch), batch.errors.tolist()) == (1, [4, 0, 6, 0])
    assert batch.latencies.tolist() == [np.inf, 3.0, np.inf, 5.0]
    assert np.diff(batch.cost_offsets).tolist() == [1, 2, 0, 1]
    assert load_measured(tmp_path / "out", LAYOUT).latencies.tolist() == [[4.0]]


def test_measurements_keep_their_order(tmp_path: Path) -> None:
    rng = random.Random(2)
    programs = [program(rng, 2, i + 1) for i in range(20)]
    measured = [(i, float(n + 1)) for i in range(20) for n in range(50)]
    rng.shuffle(measured)
    log = tmp_path / "log.json"
    log.write_text("".join(line("alpha", 0, programs[i], [cost]) + "\n" for i, cost in measured))
    build_dataset([log], tmp_path / "out")
    [batch] = open_dataset(tmp_path / "out").batches()
    first_seen = list(dict.fromkeys(i for i, _ in measured))
    for row, i in enumerate(first_seen):
        costs = batch.latencies[batch.programs == row]
        assert costs.tolist() == [cost for j, cost in measured if j == i]


def test_bad_lines_stop_a_build_or_are_counted(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "source")
    with (source / "beta" / "train" / "more.json").open("w") as file:
        file.write(line("beta", 0, program(random.Random(5), 2, 99), [1.0]) + "\nno record\n")
    with pytest.raises(RecordError, match=r"more\.json:2: "):
        build_dataset([source], tmp_path / "out")
    assert not (tmp_path / "out").exists()
    manifest = build_dataset([source], tmp_path / "out", errors="skip")
    assert list(manifest.skipped.values()) == [1]


def build_out(source: Path, out: Path) -> Path:
    build_dataset([source], out)
    return out


def test_a_split_that_cannot_be_is_refused_before_reading(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "source")
    (source / "beta" / "train" / "bad.json").write_text("no record\n")
    with pytest.raises(DatasetError, match="`test` vgg: expected a network"):
        build_dataset([source], tmp_path / "out", split=FamilySplit(test=("vgg",)))


def test_sources_that_disagree_are_refused(tmp_path: Path) -> None:
    source = write_dataset(tmp_path / "source")
    other = tmp_path / "other.json"
    other.write_text(line("beta", 0, program(random.Random(5), 2, 99), [1.0]) + "\n")
    with pytest.raises(DatasetError, match="platform alpha: expected one target, found"):
        build_dataset([source, other], tmp_path / "out", platform="alpha")
    with pytest.raises(DatasetError, match="expected a dataset folder or a record file, found nothing"):
        build_dataset([tmp_path / "none"], tmp_path / "out")
    with pytest.raises(DatasetError, match="expected records, found a built dataset; name what it was built"):
        build_dataset([source, build_out(source, tmp_path / "built")], tmp_path / "out")
    shutil.rmtree(tmp_path / "built")
    (tmp_path / "empty.json").write_text("\n")
    with pytest.raises(DatasetError, match="expected measure records, found none"):
        build_dataset([tmp_path / "empty.json"], tmp_path / "out")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["empty.json", "other.json", "source"]


def test_what_lies_there_gives_way_only_when_asked(tmp_path: Path) -> None:
    source, out = write_dataset(tmp_path / "source"), tmp_path / "out"
    first = build_dataset([source], out)
    (source / "beta" / "train" / "more.json").write_text(
        line("beta", 0, program(random.Random(5), 2, 99), [1.0]) + "\n"
    )
    with pytest.raises(DatasetError, match="found a built dataset; choose another folder, or replace it"):
        build_dataset([source], out)
    assert open_dataset(out).manifest == first
    second = build_dataset([source], out, replace=True)
    assert second.programs == first.programs + 1
    assert open_dataset(out).manifest == second
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").write_text("precious")
    with pytest.raises(DatasetError, match="expected a new or empty folder, found other files"):
        build_dataset([source], foreign, replace=True)
    assert (foreign / "thesis.tex").read_text() == "precious"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["foreign", "out", "source"]


def test_a_failed_replacement_leaves_the_dataset(tmp_path: Path) -> None:
    source, out = write_dataset(tmp_path / "source"), tmp_path / "out"
    first = build_dataset([source], out)
    bad = tmp_path / "bad.json"
    bad.write_text("no record\n")
    with pytest.raises(RecordError):
        build_dataset([source, bad], out, replace=True)
    dataset = open_dataset(out)
    dataset.verify()
    assert dataset.manifest == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["bad.json", "out", "source"]


def test_a_folder_that_cannot_take_its_place_leaves_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    source, out = write_dataset(tmp_path / "source"), tmp_path / "out"
    first = build_dataset([source], out)
    rename = Path.rename

    def refuse(path: Path, target: Path) -> Path:
        if path.name.endswith(".partial"):
            raise PermissionError("no")
        return rename(path, target)

    monkeypatch.setattr(Path, "rename", refuse)
    with pytest.raises(PermissionError):
        build_dataset([source], out, replace=True)
    assert open_dataset(out).manifest == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "source"]


def child(source: Path, out: Path, before: str = "", after: str = "pass") -> subprocess.Popen[str]:
    """A build with --replace in a process of its own; `before` runs in it first, `after` at each report."""
    code = f"""
import resource, sys, time
from tlp_tvm.dataset.building.build import build_dataset
def progress(at):
    print(at.step, flush=True)
    {after}
{before}
try:
    build_dataset([{str(source)!r}], {str(out)!r}, replace=True, progress=progress)
except OSError as error:
    sys.exit(f"{{type(error).__name__}}: {{error}}")
"""
    return subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    )


@pytest.mark.parametrize("step", ["reading", "writing"])
def test_a_killed_build_is_made_again(tmp_path: Path, step: str) -> None:
    source, out = write_dataset(tmp_path / "source"), tmp_path / "out"
    first = build_dataset([source], out)
    with child(source, out, after="time.sleep(60) if at.step == " + repr(step) + " else None") as process:
        assert process.stdout is not None
        while (told := process.stdout.readline().strip()) != step:
            assert told, process.stderr.read() if process.stderr else ""
        with pytest.raises(DatasetError, match="expected no other build of"):
            build_dataset([source], out, replace=True)
        os.kill(process.pid, signal.SIGKILL)
    assert (tmp_path / ".out.partial").exists()
    open_dataset(out).verify()
    assert open_dataset(out).manifest == first
    assert build_dataset([source], out, replace=True) == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "source"]


def test_a_kill_between_the_two_renames_loses_nothing(tmp_path: Path) -> None:
    source, out = write_dataset(tmp_path / "source"), tmp_path / "out"
    first = build_dataset([source], out)
    out.rename(tmp_path / ".out.old")
    with pytest.raises(DatasetError, match="found a built dataset"):
        build_dataset([source], out)
    assert open_dataset(out).manifest == first


def test_a_full_disk_leaves_what_lay_there(tmp_path: Path) -> None:
    out = tmp_path / "out"
    first = build_dataset([write_dataset(tmp_path / "source")], out)
    limit = "resource.setrlimit(resource.RLIMIT_FSIZE, (100_000, 100_000))"  # a shard of EPYC is larger
    with child(EPYC, out, before=limit) as process:
        _, message = process.communicate(timeout=60)
    assert process.returncode == 1
    assert "expected room to write a dataset, found none (File too large); the old content" in message
    assert str(out) in message
    assert open_dataset(out).manifest == first
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out", "source"]
