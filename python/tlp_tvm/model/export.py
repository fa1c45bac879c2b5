"""A model as one self-describing TorchScript file that scores without this package.

In Python (`forward` maps (N, L, E) float32 to (N, P); C++ uses `torch::jit::load` in the same way):

files = {"tlp_tvm.json": ""}
network = torch.jit.load("model.pt", _extra_files=files)
config = json.loads(files["tlp_tvm.json"])                 # as in a checkpoint's config.json
"""

from __future__ import annotations

import copy
import io
import os
import warnings
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import torch

from tlp_tvm.errors import ModelFileError, last_line_of
from tlp_tvm.files import write_whole
from tlp_tvm.model.config import read_config
from tlp_tvm.model.scoring import ScoringModel
from tlp_tvm.model.tlp import TLP, TLPSettings
from tlp_tvm.model.weights_fit import check_weights, with_later_columns

METADATA = "tlp_tvm.json"
TOLERANCE = 1e-6
"""Largest difference of exported scores from the checkpoint's; relative for scores beyond 1."""

CHECK_PROGRAMS = 64


@contextmanager
def _torchscript() -> Iterator[None]:
    """TorchScript without its deprecation warning: nothing newer loads without this package."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=r"`torch\.jit\.\w+` is", category=DeprecationWarning)
        yield


def export_model(model: ScoringModel, path: str | os.PathLike[str]) -> float:
    """Write a model as one file.

    Args:
        model: loaded from a checkpoint.
        path: the file to write.

    Returns:
        The largest difference between its scores and the checkpoint's, on random programs.

    Raises:
        ModelFileError: the exported network scores differently from the checkpoint; nothing is written.
    """
    buffer = io.BytesIO()
    with _torchscript():
        # Not frozen: the native core reads the weights by name.
        script = torch.jit.script(copy.deepcopy(model.network).cpu().eval().requires_grad_(False))
        torch.jit.save(script, buffer, _extra_files={METADATA: model.config.to_json().encode()})
        buffer.seek(0)
        again = torch.jit.load(buffer, map_location="cpu")  # type: ignore[no-untyped-call]
    x = _made_up_programs(model)
    with torch.inference_mode():
        ours, theirs = model.network(x.to(model.device)).cpu(), again(x)
    difference = float(((ours - theirs).abs() / ours.abs().clamp(min=1.0)).max())
    if not difference <= TOLERANCE:
        raise ModelFileError(
            f"{path}: expected exported scores within {TOLERANCE} of the checkpoint's, found a difference of "
            f"{difference:.2g}; report it with your version of torch ({torch.__version__})"
        )
    write_whole(path, buffer.getvalue())
    return difference


def _made_up_programs(model: ScoringModel) -> torch.Tensor:
    """Random embeddings of every length, (n, L, E)."""
    layout = model.layout
    generator = torch.Generator().manual_seed(0)
    x = torch.rand(CHECK_PROGRAMS, layout.length, layout.width, generator=generator)
    kinds = torch.randint(len(layout.kinds), x.shape[:2], generator=generator)
    x[:, :, : len(layout.kinds)] = torch.nn.functional.one_hot(kinds, len(layout.kinds)).float()
    lengths = torch.linspace(0, layout.length, CHECK_PROGRAMS).long()
    return x * (torch.arange(layout.length) < lengths[:, None])[:, :, None]


def load_exported(path: str | os.PathLike[str]) -> ScoringModel:
    """Read an exported model. Its description is checked before torch sees the file.

    Raises:
        ModelFileError: the model is damaged, of another version, or made for another layout.
    """
    file = Path(path)
    config = read_config(_read_metadata(file), f"{file}: {METADATA}")
    try:
        with _torchscript():
            network = torch.jit.load(str(file), map_location="cpu")  # type: ignore[no-untyped-call]
    except RuntimeError as error:
        reason = str(error).strip().splitlines()[0]
        raise ModelFileError(
            f"{file}: expected a TorchScript module, found {reason}; export it again"
        ) from error
    if not config.columns:
        _check_network(file, config.settings, network)
        return ScoringModel(file.stem, config, network)
    _check_network(file, replace(config.settings, width=config.columns), network)
    if weights := network.state_dict():
        wider = TLP.with_weights(config.settings, with_later_columns(config, weights))
        with _torchscript():
            network = torch.jit.script(wider.eval().requires_grad_(False))
    else:
        network = _OfFirstColumns(network, config.columns)
    return ScoringModel(file.stem, config, network)


class _OfFirstColumns(torch.nn.Module):
    """A frozen network of a layout that has more columns now."""

    def __init__(self, network: torch.nn.Module, columns: int) -> None:
        super().__init__()
        self.network, self.columns = network, columns

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(n, L, E) -> (n, P)."""
        scores: torch.Tensor = self.network(x[..., : self.columns])
        return scores


def _check_network(file: Path, settings: TLPSettings, network: torch.nn.Module) -> None:
    """Refuse a network that differs from its description, which the native core scores by."""
    if weights := network.state_dict():
        check_weights(settings, weights, str(file))
        found: dict[str, set[Any]] = {
            "one_hot": {getattr(network, "one_hot", None)},
            "faithful": {not getattr(network, "masked", None)},
            "raw_numbers": {
                settings.raw_numbers if settings.faithful else getattr(network, "scale_numbers", None)
            },
            "attention_heads": {
                part.attention_heads for part in network.modules() if hasattr(part, "attention_heads")
            },
        }
    else:  # frozen, as in files of early versions: only its scores can be checked
        scores = _scores_of_nothing(file, settings, network)
        found = {"heads": {scores.shape[-1]}, "faithful": {bool(scores.any())}}
    for name, ones in found.items():
        ours = getattr(settings, name)
        if ones - {ours}:
            raise ModelFileError(
                f"{file}: {METADATA}: {name}: expected {' and '.join(map(str, ones))} as in the network of "
                f"the file, found {ours}; export it again"
            )


def _scores_of_nothing(file: Path, settings: TLPSettings, network: torch.nn.Module) -> torch.Tensor:
    """Scores of a program without a row: zeros, except for published networks."""
    try:
        with torch.inference_mode():
            scores: torch.Tensor = network(torch.zeros(1, settings.length, settings.width))
    except RuntimeError as error:
        raise ModelFileError(
            f"{file}: expected a network that scores programs of {settings.length} x {settings.width} "
            f"numbers, found it fails: {last_line_of(error)}; export it again"
        ) from error
    return scores


def _read_metadata(file: Path) -> bytes:
    try:
        with zipfile.ZipFile(file) as archive:
            if damaged := archive.testzip():
                raise zipfile.BadZipFile(f"a wrong checksum of {damaged}")
            entries = [name for name in archive.namelist() if name.endswith(f"/extra/{METADATA}")]
            if len(entries) != 1:
                raise ModelFileError(
                    f"{file}: expected a model that `tlp-tvm export` wrote, with {METADATA} inside, found "
                    "none; other files of torch are not opened, since opening them can run code"
                )
            return archive.read(entries[0])
    except (zipfile.BadZipFile, OSError, EOFError) as error:
        raise ModelFileError(f"{file}: expected an exported model, found {error}; export it again") from error
