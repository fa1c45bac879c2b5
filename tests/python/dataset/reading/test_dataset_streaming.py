"""A streamed dataset is the dataset: the same numbers, with the programs left on the disk."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path

import numpy as np
import pytest

from programs import LAYOUT, write_dataset
from tlp_tvm.dataset.building.build import build_dataset
from tlp_tvm.dataset.reading import loading, shards, streaming
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.dataset.reading.streaming import StreamedDataset
from tlp_tvm.errors import DatasetError

SPLITS = ("train",) * 7 + ("test",) * 2


@pytest.fixture
def built(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """162 programs of 9 tasks in blocks of 10, so that every task lies in two blocks or three."""
    monkeypatch.setattr(shards, "ROWS_A_BATCH", 10)
    build_dataset([write_dataset(tmp_path / "records", SPLITS)], tmp_path / "built")
    return tmp_path / "built"


@pytest.fixture
def few_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streaming, "NEIGHBOURHOOD_BLOCKS", 2)
    monkeypatch.setattr(streaming, "KEPT_BLOCKS", 4)


def streamed(path: Path, **options: object) -> StreamedDataset:
    data = load_measured(path, LAYOUT, stream=True, **options)  # type: ignore[arg-type]
    assert isinstance(data, StreamedDataset)
    return data


def assert_equal(stream: MeasuredDataset, memory: MeasuredDataset) -> None:
    for each in fields(MeasuredDataset):
        if each.name not in ("primitives", "starts"):
            ours, theirs = getattr(stream, each.name), getattr(memory, each.name)
            np.testing.assert_array_equal(ours, theirs, each.name)
    np.testing.assert_array_equal(stream.labels, memory.labels)
    np.testing.assert_array_equal(stream.features(), memory.features())


@pytest.mark.parametrize("platforms", [None, ["beta"]])
def test_it_has_the_numbers_of_the_one_in_memory(
    built: Path, few_blocks: None, platforms: list[str] | None
) -> None:
    stream, memory = streamed(built, platforms=platforms), load_measured(built, LAYOUT, platforms=platforms)
    assert_equal(stream, memory)
    assert stream.primitives.size == 0
    assert_equal(stream.of_split("test"), memory.of_split("test"))


def test_programs_come_in_the_order_that_they_are_asked_for(built: Path, few_blocks: None) -> None:
    stream, memory = streamed(built, threads=2), load_measured(built, LAYOUT)
    chosen = np.random.default_rng(0).permutation(len(memory))[:77]
    np.testing.assert_array_equal(stream.features(chosen), memory.features(chosen))
    assert stream.features(chosen[:0]).shape == (0, LAYOUT.length, LAYOUT.width)


def test_few_blocks_are_in_memory_at_once(built: Path, few_blocks: None) -> None:
    stream = streamed(built)
    blocks = stream.blocks
    assert len(blocks.begins) - 1 == 17
    for begin in range(0, len(stream), 7):
        stream.features(slice(begin, begin + 7))
        assert len(blocks._kept) <= 4


def test_neighbourhoods_have_every_task_once_and_touch_few_blocks(built: Path, few_blocks: None) -> None:
    data = streamed(built)
    orders = []
    for seed in (0, 0, 1):
        groups = list(data.neighbourhoods(np.random.default_rng(seed)))
        assert sorted(np.concatenate(groups)) == list(range(9))
        assert all(len(group) == 2 for group in groups[:-1])
        orders.append([group.tolist() for group in groups])
    assert orders[0] == orders[1] != orders[2]


def test_tasks_of_a_small_dataset_are_mixed_as_in_memory(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streaming, "NEIGHBOURHOOD_BLOCKS", 17)
    rng = np.random.default_rng(0)
    [group] = streamed(built).neighbourhoods(rng)
    assert group.tolist() == list(range(9))
    assert rng.random() == np.random.default_rng(0).random()  # nothing was drawn


def test_large_datasets_are_streamed_unless_told_otherwise(
    built: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not isinstance(load_measured(built, LAYOUT, stream=None), StreamedDataset)
    monkeypatch.setattr(loading, "STREAM_FROM", 162)
    assert isinstance(load_measured(built, LAYOUT, stream=None), StreamedDataset)
    assert not isinstance(load_measured(built, LAYOUT), StreamedDataset)


def test_records_cannot_be_streamed(tmp_path: Path) -> None:
    folder = write_dataset(tmp_path / "records")
    with pytest.raises(DatasetError) as error:
        load_measured(folder, LAYOUT, stream=True)
    assert str(error.value) == (
        f"{folder}: expected a built dataset to stream from, found records; build one of them with "
        "`tlp-tvm dataset build`"
    )
    assert len(load_measured(folder, LAYOUT, stream=None)) == 108


def test_a_shard_that_was_damaged_while_open_is_an_error(built: Path, few_blocks: None) -> None:
    stream = streamed(built)
    shard = next(built.glob("**/*.arrow"))
    data = bytearray(shard.read_bytes())
    begin, end = len(data) // 4, len(data) // 2
    data[begin:end] = bytes(end - begin)
    with shard.open("r+b") as file:
        file.write(data)
    with pytest.raises(DatasetError, match="expected a whole shard, found .*; build the dataset again"):
        stream.features()
