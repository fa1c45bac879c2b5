"""Integers that a network takes: found in the network, and good for peers too."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from exported import export_reader
from tlp_tvm.ansor.loading.locate import load_tvm
from tlp_tvm.ansor.networks.builtin import network_from
from tlp_tvm.ansor.networks.end_to_end import random_inputs
from tlp_tvm.ansor.networks.integer_inputs import integer_bounds


@pytest.mark.parametrize("name", ["net.pt", "net.onnx"])
def test_ids_are_rows_of_the_smallest_table_and_masks_are_bits(tmp_path: Path, name: str) -> None:
    module, parameters, inputs = network_from(str(export_reader(tmp_path / name)))

    assert integer_bounds(module, inputs) == {"ids": 50, "mask": 2}

    found = random_inputs(module, parameters)
    assert {each: (array.dtype, array.shape) for each, array in found.items()} == dict.fromkeys(
        ("ids", "mask"), (np.dtype("int64"), (1, 40))
    )
    assert 20 < found["ids"].max() < 50
    assert set(found["mask"].ravel()) == {0, 1}


def test_what_depends_on_shapes_alone_is_no_number(tmp_path: Path) -> None:
    relay = load_tvm().relay
    ids = relay.var("ids", shape=(3,), dtype="int64")
    mask = relay.cast(relay.ones_like(ids), "float32")
    looked_up = relay.take(relay.var("table", shape=(7, 2)), ids, axis=0)
    body = relay.multiply(looked_up, relay.expand_dims(mask, 1))
    module = load_tvm().IRModule.from_expr(relay.Function(relay.analysis.free_vars(body), body))
    assert integer_bounds(relay.transform.InferType()(module), {"ids"}) == {"ids": 7}
