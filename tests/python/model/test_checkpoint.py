"""Model folders: the same scores again, and every refusal by its text."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import safetensors.torch
import torch

from programs import LAYOUT, random_embeddings, tiny_config
from tlp_tvm import __version__
from tlp_tvm.errors import ModelFileError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.checkpoint import load_model, save_checkpoint, shipped_models
from tlp_tvm.model.setting_checks import FLAGS, RANGES
from tlp_tvm.model.weights_fit import CURE


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config, network = tiny_config()
    save_checkpoint(tmp_path / "model", config, network.state_dict())
    return tmp_path / "model"


def refused(path: Path | str) -> str:
    with pytest.raises(ModelFileError) as error:
        load_model(path)
    return str(error.value)


def change(folder: Path, edit: Callable[[dict[str, Any]], object]) -> None:
    card = json.loads((folder / "config.json").read_text())
    edit(card)
    (folder / "config.json").write_text(json.dumps(card))


def replace_weights(folder: Path, data: bytes) -> None:
    """With the digest of the new ones, so that only what is in them is wrong."""
    (folder / "model.safetensors").write_bytes(data)
    change(folder, lambda card: card["weights"].update(sha256=hashlib.sha256(data).hexdigest()))


@pytest.mark.parametrize("layout", [LAYOUT, FeatureLayout.preset("paper-cpu")])
@pytest.mark.parametrize(
    "options",
    [{}, {"layers": 2}, {"faithful": True, "heads": 1}],
)
def test_a_model_comes_back_the_same(tmp_path: Path, layout: FeatureLayout, options: dict[str, Any]) -> None:
    config, network = tiny_config(layout, **options)
    written = save_checkpoint(tmp_path, config, network.state_dict())
    model = load_model(tmp_path)
    x = random_embeddings(layout)
    with torch.inference_mode():
        np.testing.assert_allclose(
            model.score_all(x), network(torch.from_numpy(x)).numpy(), rtol=1e-5, atol=1e-6
        )
    assert model.layout == layout
    assert model.card == written.card
    assert model.config.settings == config.settings
    assert model.card["package_version"] == __version__


def test_nothing_half_written_is_left(folder: Path) -> None:
    assert sorted(p.name for p in folder.iterdir()) == ["config.json", "model.safetensors"]


def test_a_failed_write_keeps_the_old_model(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {p.name: p.read_bytes() for p in folder.iterdir()}

    def full(*_: object) -> int:
        raise OSError(28, "No space left on device")

    config, network = tiny_config()
    with monkeypatch.context() as patch:
        patch.setattr(Path, "write_bytes", full)
        with pytest.raises(OSError, match="No space left"):
            save_checkpoint(folder, config, network.state_dict())
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_weights_that_could_not_be_read_again_are_not_written(folder: Path) -> None:
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    (config, network), (_, other) = tiny_config(), tiny_config(layers=2)
    endless = {name: torch.full_like(tensor, torch.inf) for name, tensor in network.state_dict().items()}
    for weights, sentence in ((other.state_dict(), "expected the tensors of 1 layers"), (endless, "finite")):
        with pytest.raises(ModelFileError, match=sentence):
            save_checkpoint(folder, config, weights)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before


def test_no_such_model(tmp_path: Path) -> None:
    assert refused("nosuch") == (
        f"nosuch: expected a shipped model ({', '.join(shipped_models())}), a checkpoint folder or an "
        "exported .pt file, found none of them"
    )
    assert refused(tmp_path) == (
        f"{tmp_path}: expected a checkpoint folder with config.json, found No such file or directory"
    )


@pytest.mark.parametrize(
    ("edit", "sentence"),
    [
        (lambda card: card.update(format="other"), "expected the format \"tlp-tvm-model\", found 'other'"),
        (
            lambda card: card.update(format_version=2, package_version="9.9"),
            (
                "expected format version 1, found 2, written by tlp_tvm 9.9; install that version, or train "
                "the model again"
            ),
        ),
        (lambda card: card.pop("label"), 'expected "label" as str, found no such entry'),
        (lambda card: card.update(seed="3"), "expected \"seed\" as int, found '3'"),
        (
            lambda card: card["layout"].update(version=4),
            (
                'expected version 3 of the layout "ansor", found 4; install the tlp_tvm that wrote it '
                f"({__version__}), or train the model again"
            ),
        ),
        (
            lambda card: card["layout"]["tokens"]["PR.pragma_type"].update({"auto_unroll_max_step$16": 11}),
            f'expected the layout "ansor" with digest {LAYOUT.digest}, which the model was ',
        ),
        (
            lambda card: card["layout"]["kinds"].reverse(),
            f'expected the layout "ansor" with digest {LAYOUT.digest}, which the model was ',
        ),
        (lambda card: card["layout"].pop("kinds"), 'layout: expected "kinds", found no such entry'),
        (
            lambda card: card["model"].pop("hidden") and card["model"].update(size=3),
            'model: expected "hidden", found no such entry; restore the file, or train the model again',
        ),
        (
            lambda card: card["model"].update(size=3),
            "model: expected the settings of a model of this version, found 'size' too; restore ",
        ),
        (
            lambda card: card["platforms"].pop(),
            "expected a model whose heads is the 1 of its layout and platforms, found 2; restore the file",
        ),
        (
            lambda card: card["model"].update(width=63),
            "expected a model whose width is the 72 of its layout and platforms, found 63; restore the file",
        ),
        (
            lambda card: card["model"].update(raw_numbers=True),
            "expected a model whose raw_numbers is the False of its layout and platforms, found True;",
        ),
        (
            lambda card: card["platforms"][1].update(name=3),
            'platforms: 1: expected {"name": a text, "target": a text}, found {\'name\': 3, ',
        ),
        (
            lambda card: card["platforms"][1].update(name="alpha"),
            "platforms: 1: expected a unique name, found 'alpha' again; restore the file",
        ),
        (
            lambda card: card["layout"].update(name=["ansor"]),
            "layout: expected \"name\" to be a text, found ['ansor']",
        ),
        (
            lambda card: card["layout"].update(numbers="row"),
            "layout: expected \"numbers\" to be raw or scaled, found 'row'",
        ),
        (lambda card: card.update(seed=True), 'expected "seed" as int, found True'),
        (lambda card: card.update(format_version=True), "expected format version 1, found True, written by "),
    ],
)
def test_a_config_of_something_else_is_refused(
    folder: Path, edit: Callable[[dict[str, Any]], object], sentence: str
) -> None:
    change(folder, edit)
    assert refused(folder).startswith(f"{folder / 'config.json'}: {sentence}")


SETTINGS: list[tuple[str, list[Any], str]] = [
    *[
        (
            name,
            [first - 1, last + 1, True, float(first), "4", None],
            f"expected a number from {first} to {last}",
        )
        for name, (first, last) in RANGES.items()
    ],
    *[(name, [1, 0, "true", None], "expected true or false") for name in FLAGS],
    ("dropout", [-0.1, 1.0, float("nan"), float("inf"), "0", True], "expected a number from 0 to below 1"),
    ("backbone", ["lstm", 1, None, ["self-attention"]], "expected self-attention"),
    ("attention_heads", [3, 5, 32], r"expected a divisor of hidden (16)"),
    ("one_hot", [73], r"expected at most the width (72)"),
]


@pytest.mark.parametrize(("name", "values", "expected"), SETTINGS)
def test_a_setting_out_of_its_range_is_refused(
    folder: Path, name: str, values: list[Any], expected: str
) -> None:
    for value in values:
        change(folder, lambda card, value=value: card["model"].update({name: value}))  # type: ignore[misc]
        assert refused(folder) == (
            f"{folder / 'config.json'}: model: {name}: {expected}, found {value!r}; restore the file, or "
            "train the model again"
        )


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        ({"members": 2}, "expected the tensors of 2 members, as the settings say, found those of 1"),
        ({"layers": 256}, "expected the tensors of 256 layers, as the settings say, found those of 1"),
        ({"hidden": 32}, "members.0.heads.0.0.bias: expected (16,), found (8,)"),
        ({"positions": True}, "members.0.positions: expected (8, 16), found (0, 16)"),
        ({"faithful": True}, "expected the tensors of the model, found no members.0.widen.4.bias"),
    ],
)
def test_settings_that_the_weights_do_not_fit_are_refused(
    folder: Path, changes: dict[str, Any], expected: str
) -> None:
    change(folder, lambda card: card["model"].update(changes))
    assert refused(folder).startswith(f"{folder / 'model.safetensors'}: {expected}")


def test_damaged_configs_are_refused(folder: Path) -> None:
    config = folder / "config.json"
    config.write_bytes(config.read_bytes()[:100])
    assert refused(folder).startswith(f"{config}: expected the JSON of a model, found Unterminated string")
    config.write_text("[]")
    assert refused(folder) == f'{config}: expected the format "tlp-tvm-model", found list'
    config.write_text("[" * 100_000)
    assert refused(folder).startswith(
        f"{config}: expected the JSON of a model, found maximum recursion depth"
    )
    config.write_text("9" * 5000)
    assert refused(folder).startswith(f"{config}: expected the JSON of a model, found Exceeds the limit")


def test_damaged_weights_are_refused(folder: Path) -> None:
    weights = folder / "model.safetensors"
    data = weights.read_bytes()
    digest = hashlib.sha256(data).hexdigest()
    flipped = data[:-1] + bytes([data[-1] ^ 1])
    for damaged in (flipped, data[:-8]):
        weights.write_bytes(damaged)
        assert refused(folder) == (
            f"{weights}: expected weights with the SHA-256 {digest} of config.json, found "
            f"{hashlib.sha256(damaged).hexdigest()}; the file is damaged or of another model: restore it"
        )
    replace_weights(folder, data[:-8])
    assert refused(folder).startswith(f"{weights}: expected safetensors, found ")
    weights.unlink()
    assert refused(folder) == f"{weights}: expected the weights of the model, found No such file or directory"


def test_weights_of_another_model_are_refused(folder: Path) -> None:
    weights = folder / "model.safetensors"
    tensors = safetensors.torch.load(weights.read_bytes())
    bias = tensors.pop("members.0.heads.1.4.bias")
    replace_weights(folder, safetensors.torch.save(tensors))
    assert refused(folder) == (
        f"{weights}: expected the tensors of the model, found no members.0.heads.1.4.bias; {CURE}"
    )
    replace_weights(folder, safetensors.torch.save({**tensors, "members.0.heads.1.4.bias": bias.repeat(2)}))
    assert refused(folder) == f"{weights}: members.0.heads.1.4.bias: expected (1,), found (2,); {CURE}"
    replace_weights(
        folder, safetensors.torch.save({**tensors, "members.0.heads.1.4.bias": bias, "extra": bias.clone()})
    )
    assert refused(folder) == f"{weights}: extra: expected no such tensor, found (1,); {CURE}"
    for other, found in (
        (torch.ones(1, dtype=torch.int64), "floating-point numbers, found torch.int64"),
        (torch.tensor([torch.nan]), "finite numbers, found others"),
        (torch.tensor([1e300], dtype=torch.float64), "finite numbers, found others"),
    ):
        replace_weights(folder, safetensors.torch.save({**tensors, "members.0.heads.1.4.bias": other}))
        assert refused(folder) == f"{weights}: members.0.heads.1.4.bias: expected {found}; {CURE}"


def test_half_precision_weights_are_read(folder: Path) -> None:
    x = random_embeddings()
    whole = load_model(folder).score_all(x)
    tensors = safetensors.torch.load((folder / "model.safetensors").read_bytes())
    replace_weights(folder, safetensors.torch.save({name: tensor.half() for name, tensor in tensors.items()}))
    np.testing.assert_allclose(load_model(folder).score_all(x), whole, atol=1e-2)
