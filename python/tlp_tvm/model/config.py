"""The description in a model file: config.json of a checkpoint folder, tlp_tvm.json of an exported file.

format, format_version       "tlp-tvm-model" and the version of this description
package_version              of the tlp_tvm that wrote it
layout, layout_digest        the embeddings that the model reads (`FeatureLayout.to_dict`) and their digest
model                        `TLPSettings`
platforms                    one per head: {"name", "target"}
label                        the quantity that the scores rank by
data                         {"digest": ..., ...} of the training data
training, seed               `TrainSettings`
metrics                      on validation and test tasks, and of a random pick
added                        if a head was added: {"platform", "replay": false, "to": the original model}
weights                      checkpoints only: {"file", "sha256"}
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from tlp_tvm._core import __version__
from tlp_tvm.errors import LayoutError, ModelFileError
from tlp_tvm.layout import PRESETS, FeatureLayout
from tlp_tvm.model.platform import Platform
from tlp_tvm.model.tlp import TLPSettings

FORMAT = "tlp-tvm-model"
FORMAT_VERSION = 1
LABEL = "min latency of the task on the platform / latency, in (0, 1]; failed: 0"

BEFORE: dict[tuple[str, int], tuple[int, tuple[str, ...]]] = {
    ("ansor", 1): (64, ("twos", "sums")),
    ("ansor", 2): (68, ("sums",)),
    ("metaschedule", 1): (104, ("twos", "sums")),
    ("metaschedule", 2): (110, ("sums",)),
}
"""Columns of earlier versions of layouts, and what fields did not show; later ones have more at the end."""

REQUIRED: dict[str, type] = {
    "format": str,
    "format_version": int,
    "package_version": str,
    "layout": dict,
    "layout_digest": str,
    "model": dict,
    "platforms": list,
    "label": str,
    "data": dict,
    "training": dict,
    "seed": int,
    "metrics": dict,
}


@dataclass(frozen=True)
class ModelConfig:
    """A checked description."""

    layout: FeatureLayout
    settings: TLPSettings
    platforms: tuple[Platform, ...]
    card: dict[str, Any]
    """The whole description, as written; of an earlier version of a layout, as this one has it."""
    columns: int = 0
    """Those that the file's weights know, where its layout was of an earlier version; 0: all."""

    def to_json(self) -> str:
        """The text of the description."""
        return json.dumps(self.card, indent=1) + "\n"


def describe(
    layout: FeatureLayout,
    settings: TLPSettings,
    platforms: Sequence[Platform],
    *,
    data: dict[str, Any],
    training: dict[str, Any],
    seed: int,
    metrics: dict[str, Any],
) -> ModelConfig:
    """The description of a model made by this version."""
    card = {
        "format": FORMAT,
        "format_version": FORMAT_VERSION,
        "package_version": __version__,
        "layout": layout.to_dict(),
        "layout_digest": layout.digest,
        "model": settings.to_dict(),
        "platforms": [{"name": p.name, "target": p.target} for p in platforms],
        "label": LABEL,
        "data": data,
        "training": training,
        "seed": seed,
        "metrics": metrics,
    }
    return ModelConfig(layout, settings, tuple(platforms), card)


def read_config(text: str | bytes, where: str) -> ModelConfig:
    """Check a description.

    Args:
        text: JSON.
        where: names the file in errors.

    Raises:
        ModelFileError: the description is damaged, of another version, or contradicts itself.
    """
    card = _entries(text, where)
    layout = _layout(card, where)
    columns, _ = BEFORE.get((layout.name, card["layout"]["version"]), (0, ()))
    if columns and card["model"].get("width") == columns:
        card |= {"layout": layout.to_dict(), "layout_digest": layout.digest}
        card["model"] = {**card["model"], "width": layout.width}
    try:
        settings = TLPSettings.from_dict(card["model"])
    except ValueError as error:
        raise ModelFileError(
            f"{where}: model: {error}; restore the file, or train the model again"
        ) from error
    platforms = _platforms(card["platforms"], where)
    for name, expected, ours in (
        ("length", layout.length, settings.length),
        ("width", layout.width, settings.width),
        ("one_hot", len(layout.kinds), settings.one_hot),
        ("heads", len(platforms), settings.heads),
        ("raw_numbers", layout.numbers == "raw", settings.raw_numbers),
    ):
        if expected != ours:
            raise ModelFileError(
                f"{where}: expected a model whose {name} is the {expected} of its layout and platforms, "
                f"found {ours}; restore the file"
            )
    return ModelConfig(layout, settings, platforms, card, columns)


def _entries(text: str | bytes, where: str) -> dict[str, Any]:
    """The entries of the description, each checked for its type."""
    try:
        card = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ModelFileError(f"{where}: expected the JSON of a model, found {error}") from error
    if not isinstance(card, dict) or card.get("format") != FORMAT:
        found = repr(card.get("format")) if isinstance(card, dict) else type(card).__name__
        raise ModelFileError(f'{where}: expected the format "{FORMAT}", found {found}')
    version = card.get("format_version")
    if type(version) is not int or version != FORMAT_VERSION:
        raise ModelFileError(
            f"{where}: expected format version {FORMAT_VERSION}, found {version!r}, written by "
            f"tlp_tvm {card.get('package_version')}; install that version, or train the model again"
        )
    for key, kind in REQUIRED.items():
        if type(card.get(key)) is not kind:
            found = repr(card[key]) if key in card else "no such entry"
            raise ModelFileError(f'{where}: expected "{key}" as {kind.__name__}, found {found}')
    return card


def _platforms(entries: list[Any], where: str) -> tuple[Platform, ...]:
    platforms: list[Platform] = []
    for i, entry in enumerate(entries):
        name, target = (entry.get("name"), entry.get("target")) if isinstance(entry, dict) else (None, None)
        if not (isinstance(name, str) and name and isinstance(target, str)):
            raise ModelFileError(
                f'{where}: platforms: {i}: expected {{"name": a text, "target": a text}}, found {entry!r}; '
                "restore the file"
            )
        if name in (platform.name for platform in platforms):
            raise ModelFileError(
                f"{where}: platforms: {i}: expected a unique name, found {name!r} again; restore the file"
            )
        platforms.append(Platform(name, target))
    return tuple(platforms)


def _layout(card: dict[str, Any], where: str) -> FeatureLayout:
    """The layout of a description; of an earlier version of one that ships, as it is now."""
    name, version = card["layout"].get("name"), card["layout"].get("version")
    now = FeatureLayout.preset(name) if isinstance(name, str) and name in PRESETS else None
    ours = version if now is None else now.to_dict()["version"]
    earlier = now is not None and type(version) is int and (name, version) in BEFORE
    other_version = (
        f'{where}: expected version {ours} of the layout "{name}", found {version}; install the '
        f"tlp_tvm that wrote it ({card['package_version']}), or train the model again"
    )
    if version != ours and not earlier:
        raise ModelFileError(other_version)
    try:
        layout = FeatureLayout.from_dict(card["layout"])
    except LayoutError as error:
        raise ModelFileError(f"{where}: {error}") from error
    if layout.digest != card["layout_digest"]:
        raise ModelFileError(
            f'{where}: expected the layout "{name}" with digest {card["layout_digest"]}, which the model was '
            f"trained on, found {layout.digest}; its vocabulary or columns were changed: restore the file"
        )
    if now is None or not earlier:
        return layout
    later = now.with_shape(length=layout.length)
    if as_before(later, version).digest != layout.digest:
        raise ModelFileError(other_version)
    return later


def as_before(later: FeatureLayout, version: int) -> FeatureLayout:
    """A layout as an earlier version had it.

    Args:
        later: as it is now.
        version: an earlier one of `BEFORE`.
    """
    spec = later.to_dict()
    columns, missing = BEFORE[later.name, version]
    spec |= {"version": version, "width": columns}
    for fields in spec["fields"].values():
        for rule in fields.values():
            for name in missing:
                rule.pop(name, None)
    return FeatureLayout.from_dict(spec)
