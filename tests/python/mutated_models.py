"""Model files and layouts with damage, and what has to hold of each that is read all the same."""

from __future__ import annotations

import hashlib
import json
import struct
import tempfile
import zipfile
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import safetensors.torch
import torch
from numpy.typing import NDArray

from logs import STEPS
from mutations import Mutator
from programs import random_embeddings, tiny_config
from reference import layouts as reference
from tlp_tvm import _core
from tlp_tvm.errors import LayoutError, ModelFileError
from tlp_tvm.layout import PRESETS, FeatureLayout
from tlp_tvm.model.checkpoint import load_checkpoint, save_checkpoint
from tlp_tvm.model.export import export_model, load_exported
from tlp_tvm.model.native import native_network
from tlp_tvm.model.scoring import ScoringModel
from tlp_tvm.model.tlp import TLP

SHARES = {"config": 40, "weights": 15, "exported": 10, "layout": 20, "native": 15}
"""Of a hundred cases."""

MODELS: tuple[dict[str, Any], ...] = (
    {"positions": True, "members": 2},
    {"layers": 2, "dropout": 0.1},
    {"hidden": 24, "attention_heads": 6, "heads": 1},
    {"layout": FeatureLayout.preset("paper-cpu"), "faithful": True, "attention_heads": 2},
    {"layout": FeatureLayout.preset("paper-gpu")},
)

SANE = 1e3
"""Weights up to here are compared; of larger ones rounding decides what a softmax looks at."""

TRACE = (
    b'[[["GetSBlock",[],["C","main"],["b0"]],["GetLoops",["b0"],[],["l1","l2"]],'
    b'["SamplePerfectTile",["l1"],[2,64],["v3","v4"]],["Split",["l1","None",8,"v3","v4"],[1,0],["l5","l6"]],'
    b'["SampleCategorical",[],[[0,16],[0.25,0.75]],["v7"]],["Annotate",["b0","v7"],["unroll"],[]],'
    b'["CacheRead",["b0",["b0"]],[0,"shared"],["b8"]],["EnterPostproc",[],[],[]]],[[2,[4,2]],[4,1]]]\n'
)


def _digest(layout: Any) -> str:
    text = json.dumps(layout, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _sentence(error: Exception) -> str:
    """Refused, if in a way that a reader can use."""
    text = str(error)
    assert "expected" in text, text
    assert "found" in text, text
    return "refused"


def _mutated_array(mutator: Mutator, array: NDArray[np.float32]) -> NDArray[Any]:
    """Of another shape, type or order in memory, or with other numbers."""
    kind = mutator.random.randrange(8)
    if kind == 0:
        return array[..., :-1]
    if kind == 1:
        return array.T
    if kind == 2:
        return array[None]
    if kind == 3:
        return np.concatenate([array, array])
    if kind == 4:
        return array.astype(mutator.random.choice((np.float64, np.float16, np.int32)))
    if kind == 5:
        return np.full_like(array, mutator.random.choice((np.nan, np.inf, 0.0, 2.0)))
    return np.asfortranarray(array) if kind == 6 else array[::-1]


class Cases:
    """Runs mutations of files that it makes first."""

    def __init__(self) -> None:
        """Make the files that are whole."""
        self.case: Any = None
        self._temporary = tempfile.TemporaryDirectory()
        self.folder = Path(self._temporary.name)
        self.cards: list[dict[str, Any]] = []
        self.weights: list[bytes] = []
        self.exported: list[dict[str, bytes]] = []
        self.natives: list[ScoringModel] = []
        for options in MODELS:
            config, network = tiny_config(**options)
            if native_network(config.settings, network) is not None:
                self.natives.append(ScoringModel("tiny", config, network))
            written = save_checkpoint(self.folder, config, network.state_dict())
            self.cards.append(written.card)
            self.weights.append((self.folder / "model.safetensors").read_bytes())
            export_model(ScoringModel("tiny", config, network), self.folder / "model.pt")
            with zipfile.ZipFile(self.folder / "model.pt") as archive:
                self.exported.append({info.filename: archive.read(info) for info in archive.infolist()})
        ansor = json.dumps({"i": [["[]", "llvm"], [[], STEPS * 2]], "r": [[1.0], 0, 1.0, 1], "v": "v0.6"})
        self.programs: dict[str, Any] = {
            "ansor": _core.read_block(ansor.encode() + b"\n", "programs", 1, False, 1),
            "metaschedule": _core.read_traces(TRACE, "programs", 1, "trace", False),
        }

    def __enter__(self) -> Cases:
        """Itself."""
        return self

    def __exit__(self, *_: object) -> None:
        """Remove the files."""
        self._temporary.cleanup()

    def run(self, seed: str) -> str:
        """One mutation; says of what, and whether it was refused or read."""
        mutator = Mutator(seed)
        kind = mutator.random.choices(list(SHARES), list(SHARES.values()))[0]
        case: Callable[[Mutator], str] = getattr(self, f"_{kind}")
        with np.errstate(all="ignore"):
            return f"{kind} {case(mutator)}"

    def _mutated_card(self, mutator: Mutator, card: dict[str, Any]) -> bytes:
        part = mutator.random.choice(("model", "model", "model", "layout", "platforms", ""))
        card = {**card, part: mutator.tree(card[part])} if part else mutator.tree(card)
        if "layout" in card and mutator.happens(0.7):
            card["layout_digest"] = _digest(card["layout"])
        return mutator.text(card)

    def _config(self, mutator: Mutator) -> str:
        which = mutator.random.randrange(len(MODELS))
        text = self.case = self._mutated_card(mutator, self.cards[which])
        (self.folder / "config.json").write_bytes(text)
        (self.folder / "model.safetensors").write_bytes(self.weights[which])
        try:
            model = load_checkpoint(self.folder)
        except ModelFileError as error:
            return _sentence(error)
        return self._is_what_it_says(model, text)

    def _weights(self, mutator: Mutator) -> str:
        which = mutator.random.randrange(len(MODELS))
        data = self.weights[which]
        size = 8 + int.from_bytes(data[:8], "little")
        header, numbers = json.loads(data[8:size]), data[size:]
        kind = mutator.random.randrange(4)
        if kind == 0:
            data = mutator.bytes(data)
        elif kind == 1:
            at = 4 * mutator.random.randrange(len(numbers) // 4)
            value = mutator.random.choice((np.nan, np.inf, -np.inf, 0.0, 3e38, -7.0, 1e-45))
            data = data[: size + at] + struct.pack("<f", value) + data[size + at + 4 :]
        else:
            text = mutator.text(mutator.tree(header))
            data = len(text).to_bytes(8, "little") + text + numbers
        self.case = which, data
        digest = {"file": "model.safetensors", "sha256": hashlib.sha256(data).hexdigest()}
        config = json.dumps({**self.cards[which], "weights": digest}).encode()
        (self.folder / "config.json").write_bytes(config)
        (self.folder / "model.safetensors").write_bytes(data)
        try:
            model = load_checkpoint(self.folder)
        except ModelFileError as error:
            return _sentence(error)
        there = safetensors.torch.load(data)
        for name, tensor in model.network.state_dict().items():
            assert torch.equal(tensor, there[name].to(torch.float32)), name
        return self._is_what_it_says(model, config)

    def _exported(self, mutator: Mutator) -> str:
        entries = dict(mutator.random.choice(self.exported))
        name = next(name for name in entries if name.endswith("tlp_tvm.json"))
        text = self.case = self._mutated_card(mutator, json.loads(entries[name]))
        file = self.folder / "mutated.pt"
        with zipfile.ZipFile(file, "w") as archive:
            for key, value in {**entries, name: text}.items():
                archive.writestr(key, value)
        try:
            model = load_exported(file)
        except ModelFileError as error:
            return _sentence(error)
        return self._is_what_it_says(model, text)

    def _layout(self, mutator: Mutator) -> str:
        spec = FeatureLayout.preset(mutator.random.choice(list(PRESETS))).to_dict()
        part = mutator.random.choice(("fields", "tokens", "", ""))
        spec = {**spec, part: mutator.tree(spec[part])} if part in spec else mutator.tree(spec)
        text = self.case = mutator.text(spec)
        file = self.folder / "layout.json"
        file.write_bytes(text)
        try:
            layout = FeatureLayout.load(file)
        except LayoutError as error:
            return _sentence(error)
        spec = json.loads(text)
        assert layout.to_dict() == spec
        assert (layout.length, layout.width) == (spec["length"], spec["width"])
        block = self.programs[layout.framework]
        out = np.full((len(block), layout.length, layout.width), np.nan, np.float32)
        block.encode(layout.encoder, out, 1)
        expected = reference.embed(spec, _core.kinds_of(layout.framework), block.steps(0))
        np.testing.assert_array_equal(out[0], expected)
        return "read"

    def _native(self, mutator: Mutator) -> str:
        """The native network alone, which has no reader before it that refuses."""
        model = mutator.random.choice(self.natives)
        settings = model.config.settings
        shape = {name: getattr(settings, name) for name in (*_core.setting_ranges(), "positions")}
        tensors = {name: tensor.numpy() for name, tensor in model.network.state_dict().items()}
        if mutator.happens(0.5):
            shape = mutator.tree(shape)
        if mutator.happens(0.6):
            name = mutator.random.choice(list(tensors))
            tensors[name] = _mutated_array(mutator, tensors[name])
        if mutator.happens(0.1):
            tensors[mutator.random.choice(list(tensors)) + "x"] = np.zeros(3, np.float32)
        if mutator.happens(0.1):
            del tensors[mutator.random.choice(list(tensors))]
        self.case = shape, {name: array.shape for name, array in tensors.items()}
        try:
            native = _core.Network(tensors, **shape)
        except (ValueError, TypeError) as error:
            return "refused" if isinstance(error, TypeError) else _sentence(error)
        positions = shape.pop("positions")
        settings = replace(
            settings, positions=positions, **{name: int(value) for name, value in shape.items()}
        )
        with torch.device("meta"):
            shapes = {name: tensor.shape for name, tensor in TLP(settings).state_dict().items()}
        weights = {  # a matrix of one row is a vector natively
            name: torch.from_numpy(np.array(array, np.float32)).reshape(shapes[name])
            for name, array in tensors.items()
        }
        x = random_embeddings(model.layout, 3)
        if x.shape[1:] != (settings.length, settings.width):
            return "read"
        with torch.inference_mode():
            by_torch = TLP.with_weights(settings, weights)(torch.from_numpy(x)).numpy()
        np.testing.assert_allclose(native.score(x), by_torch, rtol=1e-4, atol=1e-4)
        return "read"

    def _is_what_it_says(self, model: ScoringModel, text: bytes) -> str:
        """A model that was read has the settings of its text, and scores alike natively and through torch."""
        card = json.loads(text)
        settings = json.dumps(model.config.settings.to_dict(), sort_keys=True)
        assert settings == json.dumps(card["model"], sort_keys=True), settings
        assert model.layout.to_dict() == card["layout"]
        assert [{"name": p.name, "target": p.target} for p in model.config.platforms] == [
            {"name": p["name"], "target": p["target"]} for p in card["platforms"]
        ]
        x = random_embeddings(model.layout, 3)
        scores = model.score_all(x)
        assert scores.shape == (len(x), len(model.platforms))
        weights = model.network.state_dict().values()
        if all(float(tensor.abs().max()) < SANE for tensor in weights if tensor.numel()):
            with torch.inference_mode():
                by_torch = model.network(torch.from_numpy(x)).numpy()
            np.testing.assert_allclose(scores, by_torch, rtol=1e-4, atol=1e-4)
        return "read"
