"""A live state and the record that TVM writes of it are the same program, in every primitive and layout."""

from __future__ import annotations

import functools
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from reference import published
from tlp_tvm import FeatureLayout, extract_records, extract_states
from tlp_tvm.ansor import load_tvm, steps_of
from tlp_tvm.ansor.networks.tasks import OPERATORS, operator_task
from tlp_tvm.ansor.search.sampling import sample_states, written_steps

STATES = 500
CPU = "llvm -mcpu=core-avx2 -num-cores=2"
CUDA = "cuda -arch=sm_70"
CASES = [(name, CPU) for name in OPERATORS] + [(name, CUDA) for name in ("conv2d", "dense", "batch_matmul")]
LAYOUTS = ("ansor", "paper-cpu", "paper-gpu")

cases = pytest.mark.parametrize(("operator", "target"), CASES, ids=[f"{n}-{t.split()[0]}" for n, t in CASES])


@functools.cache
def sampled(operator: str, target: str) -> tuple[Any, list[Any]]:
    """A task and its states; sampled once for all tests."""
    task = operator_task(operator, target)
    return task, sample_states(task, STATES)


@cases
def test_steps_are_those_that_tvm_writes(operator: str, target: str) -> None:
    task, states = sampled(operator, target)
    assert len(states) >= STATES

    for state in states:
        # As texts: 1 and True are equal in Python, and not in a record.
        assert json.dumps(steps_of(state)) == json.dumps(written_steps(task, state))


@cases
def test_embedding_of_a_state_is_that_of_its_record(operator: str, target: str, tmp_path: Path) -> None:
    task, states = sampled(operator, target)
    auto_scheduler = load_tvm().auto_scheduler
    log = tmp_path / "states.json"
    auto_scheduler.save_records(
        str(log),
        [auto_scheduler.MeasureInput(task, state) for state in states],
        [auto_scheduler.MeasureResult([1.0], 0, "", 0.1, 1)] * len(states),
    )

    for name in LAYOUTS:
        layout = FeatureLayout.preset(name)
        from_states = extract_states(states, layout)
        from_records = extract_records(log, layout).features
        assert from_records is not None
        assert from_states.shape == (len(states), layout.length, layout.width)
        # Bit for bit: as integers, -0.0 differs from 0.0.
        np.testing.assert_array_equal(from_states.view(np.uint32), from_records.view(np.uint32))
        by_writer = extract_states(states[:50], layout, route="record")
        np.testing.assert_array_equal(by_writer.view(np.uint32), from_states[:50].view(np.uint32))


def test_the_sampled_programs_have_all_that_ansors_own_rules_make() -> None:
    kinds = {step[0] for case in CASES for state in sampled(*case)[1] for step in steps_of(state)}

    # SA is in Ansor's vocabulary, but none of its sketch rules writes it; the self-check covers it.
    assert kinds == {"AN", "FU", "PR", "RE", "SP", "FSP", "FFSP", "CA", "CI", "CR", "CHR", "CHW", "RF"}


@pytest.mark.parametrize("operator", ["conv2d", "dense", "batch_matmul"])
@pytest.mark.parametrize("shape", [published.GPU.cropped, published.GPU.full])
def test_paper_gpu_equals_the_published_extraction_on_sampled_states(
    operator: str, shape: tuple[int, int]
) -> None:
    task, states = sampled(operator, CUDA)
    layout = FeatureLayout.preset("paper-gpu").with_shape(length=shape[0], width=shape[1])
    expected = [published.embed(published.GPU, written_steps(task, state), shape) for state in states]
    np.testing.assert_array_equal(extract_states(states, layout), np.stack(expected))
