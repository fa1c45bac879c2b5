"""CARD.md: a readable description of a model, written from its config."""

from __future__ import annotations

import json
from typing import Any

HEAD = """# Model `{name}`

{kind} for programs of TVM's search `{framework}`, {parameters:,} parameters, trained by tlp-tvm {version}.
It ranks programs of one task on one platform, higher is better; scores of two tasks cannot be compared.

| | |
|---|---|
| platforms | {platforms} |
| layout | `{layout}`, digest `{layout_digest}` |
| label | {label} |
| data | {data} |
| data digest | `{digest}` |
| seed | {seed} |
| network | `{network}` |
| training | `{training}` |

The data digest is the SHA-256 of what `sha256sum` prints for the sorted record files and tasks.json.
"""

ADDED = """
## Added platform

The head of `{platform}` was added to a model with the weights `{weights}`. Only the new head was trained: all
other heads score as before, bit for bit. Data, seed and training above describe the addition; config.json has
those of the original model.
"""

CROSS_VALIDATION = """
## Held-out tasks by cross-validation

{folds} folds over the training tasks, mean over tasks and platforms; mean, lowest and highest of
{seeds} seeds. The last epoch counts, so no choice depends on the test tasks of a fold.

| | top-1 | top-5 | Spearman |
|---|---|---|---|
| this recipe | {top1} | {top5} | {spearman} |
| random pick | {random1} | {random5} | 0 |
"""

ROWS = """
## {title}

| platform | network | tasks | top-1 | top-5 | random top-1 | random top-5 | Spearman |
|---|---|---|---|---|---|---|---|
"""


def card_text(name: str, card: dict[str, Any], parameters: int) -> str:
    """The text of a card.

    Args:
        name: of the model.
        card: its description (`tlp_tvm.model.config`).
        parameters: number of learned weights.
    """
    data = card["data"]
    held_out = data["validation_tasks"]
    text = HEAD.format(
        name=name,
        kind="MTL-TLP" if len(card["platforms"]) > 1 else "TLP",
        framework=card["layout"]["framework"],
        parameters=parameters,
        version=card["package_version"],
        platforms="<br>".join(f"{p['name']}: `{p['target']}`" for p in card["platforms"]),
        layout=card["layout"]["name"],
        layout_digest=card["layout_digest"],
        label=card["label"],
        data=f"{data['programs']:,} programs of {data['tasks']} tasks, "
        f"split `{data['split']}`"
        + (f", {held_out} more tasks held out to choose the epoch" if held_out else ""),
        digest=data["digest"],
        seed=card["seed"],
        network=json.dumps(card["model"]),
        training=json.dumps(card["training"]),
    )
    if added := card.get("added"):
        weights = added["to"]["weights"]["sha256"]
        text += ADDED.format(platform=added["platform"], weights=weights)
    metrics = card["metrics"]
    if found := metrics.get("cross_validation"):
        text += CROSS_VALIDATION.format(
            folds=found["folds"],
            seeds=len(found["seeds"]),
            **{key: _spread(found[key]) for key in ("top1", "top5", "spearman")},
            random1=f"{found['random']['top1']:.3f}",
            random5=f"{found['random']['top5']:.3f}",
        )
    for key, title in (
        ("validation", "Tasks held out to choose the epoch"),
        ("test", "Networks held out (the test split)"),
    ):
        if key in metrics:
            text += ROWS.format(title=title) + "".join(_row(row) for row in metrics[key])
    return text


def _spread(spread: dict[str, float]) -> str:
    return f"{spread['mean']:.3f} ({spread['low']:.3f} to {spread['high']:.3f})"


def _row(row: dict[str, Any]) -> str:
    chance = " | ".join(
        f"{row['random'][k]['mean']:.3f} ({row['random'][k]['low']:.2f} to {row['random'][k]['high']:.2f})"
        for k in ("1", "5")
    )
    return (
        f"| {row['platform']} | {row['network']} | {row['tasks']} "
        f"| {row['top']['1']:.3f} | {row['top']['5']:.3f} | {chance} | {row['spearman']:.3f} |\n"
    )
