"""What is left out when programs are compiled makes them no others."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.measuring import work
from tlp_tvm.ansor.networks.tasks import operator_task
from tlp_tvm.ansor.search.sampling import sample_states

TARGET = "llvm -num-cores=1"


def output_of(program: Any) -> NDArray[np.float32]:
    """Of a serialized program, on the same random numbers every time."""
    compiled, _, message = work.compiled(program)
    assert compiled is not None, message
    generator = np.random.default_rng(0)
    shapes = [[int(extent) for extent in tensor.shape] for tensor in compiled.tensors]
    arrays = [load_tvm().nd.array(generator.standard_normal(shape).astype("float32")) for shape in shapes]
    compiled.module(*arrays)
    return np.asarray(arrays[-1].numpy())


@pytest.mark.parametrize("name", ["conv2d", "depthwise_conv2d", "softmax"])
def test_programs_compute_the_same_without_a_pass(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    task = operator_task(name, TARGET)
    states = sample_states(task, 16)[:3]
    programs = [load_tvm().auto_scheduler.MeasureInput(task, state).serialize() for state in states]
    without = [output_of(program) for program in programs]
    monkeypatch.setattr(work, "LEFT_OUT", [])
    for program, found in zip(programs, without, strict=True):
        np.testing.assert_allclose(found, output_of(program), rtol=1e-5, atol=1e-5)
