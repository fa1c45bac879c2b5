"""A model as a folder: config.json, model.safetensors and, if it has trees, those. Nothing is unpickled."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import safetensors.torch
import torch
from safetensors import SafetensorError
from torch import Tensor

from tlp_tvm.errors import ModelFileError
from tlp_tvm.files import write_whole
from tlp_tvm.model.config import ModelConfig, read_config
from tlp_tvm.model.scoring import ScoringModel
from tlp_tvm.model.tlp import TLP
from tlp_tvm.model.trees.store_trees import FILE as TREES
from tlp_tvm.model.trees.store_trees import read_store_trees
from tlp_tvm.model.weights_fit import check_weights, with_later_columns

CONFIG = "config.json"
WEIGHTS = "model.safetensors"
SHIPPED = Path(__file__).parent.parent / "pretrained"


def shipped_models() -> tuple[str, ...]:
    """Names of the models that come with the package."""
    return tuple(sorted(config.parent.name for config in SHIPPED.glob(f"*/{CONFIG}")))


def save_checkpoint(
    folder: str | os.PathLike[str], config: ModelConfig, weights: dict[str, Tensor]
) -> ModelConfig:
    """Write a model.

    Args:
        folder: created if missing. The config is written last: a folder that has one is complete.
        config: the model's description.
        weights: the network's state.

    Returns:
        The description as written, with the digest of the weights.

    Raises:
        ModelFileError: the weights are not of such a network, or not finite; nothing is written.
    """
    place = Path(folder)
    check_weights(config.settings, weights, str(place / WEIGHTS))
    place.mkdir(parents=True, exist_ok=True)
    data = safetensors.torch.save({name: tensor.cpu().contiguous() for name, tensor in weights.items()})
    digest = {"file": WEIGHTS, "sha256": hashlib.sha256(data).hexdigest()}
    written = ModelConfig(
        config.layout, config.settings, config.platforms, {**config.card, "weights": digest}
    )
    write_whole(place / WEIGHTS, data)
    write_whole(place / CONFIG, written.to_json())
    return written


def load_checkpoint(folder: str | os.PathLike[str]) -> ScoringModel:
    """Read a model folder.

    Raises:
        ModelFileError: the model is damaged, of another version, or made for another layout.
    """
    place = Path(folder)
    try:
        text = (place / CONFIG).read_bytes()
    except OSError as error:
        raise ModelFileError(
            f"{place}: expected a checkpoint folder with {CONFIG}, found {error.strerror}"
        ) from error
    config = read_config(text, str(place / CONFIG))
    weights = with_later_columns(config, _read_weights(place / WEIGHTS, config.card.get("weights")))
    check_weights(config.settings, weights, str(place / WEIGHTS))
    weights = {name: tensor.to(torch.float32) for name, tensor in weights.items()}
    network = TLP.with_weights(config.settings, weights)
    return ScoringModel(place.name, config, network, read_store_trees(place))


def _read_weights(path: Path, entry: object) -> dict[str, Tensor]:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise ModelFileError(f"{path}: expected the weights of the model, found {error.strerror}") from error
    expected = entry.get("sha256") if isinstance(entry, dict) else None
    found = hashlib.sha256(data).hexdigest()
    if expected != found:
        raise ModelFileError(
            f"{path}: expected weights with the SHA-256 {expected} of {CONFIG}, found {found}; "
            "the file is damaged or of another model: restore it"
        )
    try:
        return safetensors.torch.load(data)
    except (SafetensorError, KeyError) as error:
        raise ModelFileError(f"{path}: expected safetensors, found {error}") from error


def weights_digest(name: str | os.PathLike[str]) -> str:
    """SHA-256 of the file with a model's weights.

    Args:
        name: what `load_model` takes.

    Raises:
        OSError: there is none.
    """
    path = SHIPPED / name if name in shipped_models() else Path(name)
    return hashlib.sha256((path / WEIGHTS if path.is_dir() else path).read_bytes()).hexdigest()


def model_digest(name: str | os.PathLike[str]) -> str:
    """Of all that a model's choice depends on: its weights, and its trees where it has some.

    Args:
        name: what `load_model` takes.

    Raises:
        ModelFileError: there is none.
    """
    path = SHIPPED / name if name in shipped_models() else Path(name)
    trees = path / TREES
    try:
        known = hashlib.sha256(weights_digest(name).encode())
        known.update(trees.read_bytes() if trees.is_file() else b"")
    except OSError as error:
        raise _no_model(name) from error
    return known.hexdigest()


def load_weights(name: str | os.PathLike[str]) -> ScoringModel:
    """Load a model that contains no code: a shipped one or a checkpoint folder.

    Raises:
        ModelFileError: there is none, or as `load_checkpoint`.
    """
    if name in shipped_models():
        return load_checkpoint(SHIPPED / name)
    if Path(name).is_dir():
        return load_checkpoint(name)
    found = "a file, which may be an exported model, that is, code" if Path(name).is_file() else "neither"
    raise ModelFileError(
        f"{name}: expected a shipped model ({', '.join(shipped_models())}) or a checkpoint folder, "
        f"found {found}"
    )


def load_model(name: str | os.PathLike[str]) -> ScoringModel:
    """Load a model.

    Args:
        name: a model of the package (`shipped_models`), a checkpoint folder, or an exported .pt file.

    Raises:
        ModelFileError: there is no such model, or it is damaged, of another version, or made for another
            layout.
    """
    path = Path(name)
    if name in shipped_models() or path.is_dir():
        return load_weights(name)
    if path.is_file():
        from tlp_tvm.model.export import load_exported

        return load_exported(path)
    raise _no_model(name)


def _no_model(name: str | os.PathLike[str]) -> ModelFileError:
    return ModelFileError(
        f"{name}: expected a shipped model ({', '.join(shipped_models())}), a checkpoint folder or an "
        "exported .pt file, found none of them"
    )
