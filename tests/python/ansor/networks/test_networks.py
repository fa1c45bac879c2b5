"""Built-in networks: their names, their tasks as the dataset has them, their parameters."""

from __future__ import annotations

import json

import numpy as np
import pytest

from logs import DATASETS
from processes import random_states
from tlp_tvm.ansor.networks.builtin import canonical_name, load_network
from tlp_tvm.ansor.networks.tasks import extract_tasks
from tlp_tvm.errors import NetworkError
from tlp_tvm.network_names import ARCHITECTURES, NETWORKS, architecture_of

TASKS = json.loads((DATASETS / "epyc" / "tasks.json").read_text())
TARGET = "llvm -mcpu=skylake-avx512 -num-cores=2"


@pytest.mark.parametrize("network", ["mlp", "bert_tiny-128", "bert_mini-64-b4", "dcgan"])
def test_the_tasks_are_those_of_the_dataset(network: str) -> None:
    expected = {task["workload_key"]: task["weight"] for task in TASKS if task["network"] == network}

    tasks, weights = extract_tasks(network, TARGET)

    assert dict(zip((task.workload_key for task in tasks), weights, strict=True)) == expected


def test_names_and_splits_are_those_of_the_dataset() -> None:
    assert set(NETWORKS) == {task["network"] for task in TASKS}
    for task in TASKS:
        assert canonical_name(task["network"]) == task["network"]
        # A task that a test network shares with a training network is "test" in the dataset.
        assert NETWORKS[task["network"]].split == "train" or task["split"] == "test"


@pytest.mark.parametrize(
    ("name", "canonical"),
    [
        ("resnet-18", "resnet_18-224"),
        ("resnet_18-b4", "resnet_18-224-b4"),
        ("resnet-18-240-b4", "resnet_18-240-b4"),
        ("mobilenet", "mobilenet-224"),
        ("mlp", "mlp"),
        ("mlp-b16", "mlp"),
        ("mlp-b1", "mlp-b1"),
        ("bert-tiny", "bert_tiny-128"),
        ("vgg-11", "vgg_11"),
    ],
)
def test_short_names(name: str, canonical: str) -> None:
    assert canonical_name(name) == canonical
    assert architecture_of(name) is architecture_of(canonical)


@pytest.mark.parametrize("name", ["resnet", "resnet-18-", "resnet-180", "vgg_11-224", "", "mlp-b0x"])
def test_an_unknown_name_is_refused_with_the_known_ones(name: str) -> None:
    with pytest.raises(NetworkError) as refused:
        load_network(name)

    assert str(refused.value) == (
        f'expected the name of a network, found "{name}"; choose one of {", ".join(ARCHITECTURES)}, '
        "optionally with input size and batch: resnet_18-240-b4"
    )


@pytest.mark.parametrize("name", [name for name in ARCHITECTURES if name != "vgg_11"])
def test_every_architecture_can_be_built(name: str) -> None:
    """But for VGG, whose 130 million random parameters take seconds."""
    module, parameters, inputs = load_network(name)

    assert len(inputs) == 1
    variables = {variable.name_hint for variable in module["main"].params}
    assert variables == set(parameters) | set(inputs)


def test_size_and_batch_reach_the_input() -> None:
    assert load_network("mobilenet-96-b2")[2] == {"data": (2, 96, 96, 3)}
    assert load_network("bert_tiny-32-b3")[2] == {"x": (96, 128)}


@pytest.mark.parametrize("name", ["mlp", "bert_tiny"])
def test_parameters_are_the_same_every_time_and_numpys_state_stays(name: str) -> None:
    before = random_states()

    first, second = load_network(name)[1], load_network(name)[1]

    assert random_states() == before
    for key, value in first.items():
        np.testing.assert_array_equal(value.numpy(), second[key].numpy())
