"""Batches are whole lists, in parts of similar length, made ahead of time."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from programs import LAYOUT
from tlp_tvm.dataset.reading.measured import MeasuredDataset
from tlp_tvm.training.ahead import AHEAD, made_ahead
from tlp_tvm.training.batches import PART_PROGRAMS, Lists, batch_of, epoch_of
from trainings import CPU, SETTINGS


def test_batches_are_whole_lists_and_an_epoch_is_every_program(data: MeasuredDataset) -> None:
    batches = list(epoch_of(data, SETTINGS, 0))
    assert [[len(each) for each in lists] for lists in batches] == [[18, 18]] * 3
    for lists in batches:
        assert all((data.task_index == task).sum() == 18 for each in lists for task in data.task_index[each])
    order = flat(batches)
    assert sorted(order) == list(range(len(data)))
    assert not np.array_equal(order, flat(list(epoch_of(data, SETTINGS, 1))))


def test_large_tasks_are_cut_into_lists_of_bounded_size(data: MeasuredDataset) -> None:
    batches = list(epoch_of(data, replace(SETTINGS, batch_programs=12, list_programs=7), 0))
    assert [[len(each) for each in lists] for lists in batches] == [[6, 6]] * 9
    assert all(len(set(data.task_index[each])) == 1 for lists in batches for each in lists)
    assert sorted(flat(batches)) == list(range(len(data)))


def test_parts_of_a_task_stay_lists_of_their_own(data: MeasuredDataset) -> None:
    programs = data.programs_of(2)
    lists = [programs[:4], programs[4:9]]
    batch = batch_of(data, lists, CPU, cut=True)
    assert sorted(batch.groups.tolist()) == [0] * 4 + [1] * 5
    assert batch.labels.shape == (9, 2)


@pytest.mark.parametrize("cut", [False, True])
def test_parts_are_programs_of_like_length(
    data: MeasuredDataset, monkeypatch: pytest.MonkeyPatch, cut: bool
) -> None:
    monkeypatch.setitem(PART_PROGRAMS, "cpu", 10)
    programs = np.random.default_rng(0).permutation(len(data))[:33]
    lists = [programs[:20], programs[20:]]
    batch = batch_of(data, lists, CPU, cut=cut)
    lengths = np.sort(data.counts[programs])
    assert [len(part) for part in batch.parts] == [9, 8, 8, 8]
    longest = [each.max() if cut else LAYOUT.length for each in np.array_split(lengths, 4)]
    assert [part.shape[1] for part in batch.parts] == longest
    order = np.argsort(data.counts[programs], kind="stable")
    rows = [row for part in batch.parts for row in np.asarray(part)]
    for x, program, label, group in zip(rows, programs[order], batch.labels, batch.groups, strict=True):
        np.testing.assert_array_equal(x, data.features(np.array([program]))[0, : len(x)])
        np.testing.assert_array_equal(label, data.labels[program])
        assert program in lists[int(group)]
    empty = batch_of(data, [], CPU, cut=cut)
    assert (empty.parts, empty.labels.shape) == ([], (0, 2))


def flat(batches: list[Lists]) -> Any:
    return np.concatenate([each for lists in batches for each in lists])


def test_batches_are_made_a_few_ahead_and_in_order() -> None:
    made: list[int] = []

    def make(i: int) -> int:
        if i == 20:
            raise ValueError("the twentieth")
        made.append(i)
        return i

    found = made_ahead(make, range(30))
    for i in range(20):
        assert next(found) == i
        assert len(made) <= i + AHEAD + 1
    with pytest.raises(ValueError, match="the twentieth"):
        next(found)
