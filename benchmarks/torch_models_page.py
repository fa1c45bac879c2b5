"""The table of `torch_models.py`, in docs/networks.md."""

from __future__ import annotations

import json
import statistics
from typing import Any

from commits import ROOT
from marked_pages import put

from tlp_tvm.metaschedule.torch_compile.beside_eager import is_slower

KEPT = ROOT / "docs" / "results" / "torch-models.json"
PAGE = ROOT / "docs" / "networks.md"
PEERS = ("eager", "inductor")
OURS = "tlp_tvm"
HEADS = (
    *("model", "first call, s", "cached, s", "difference", "eager, ms", "Inductor, ms", "tlp_tvm, ms"),
    *("beside eager", "beside Inductor", "graphs of TVM", "of PyTorch", "runs by"),
)


def lines_of(known: dict[str, Any]) -> list[str]:
    """The table: a row a model, and the geometric means and medians of those that TVM runs.

    Args:
        known: what `torch_models.py` keeps: model -> "new" and "again", two processes' findings.
    """
    lines = [f"| {' | '.join(HEADS)} |", "|---" * len(HEADS) + "|"]
    ratios: dict[str, list[float]] = {peer: [] for peer in PEERS}
    as_run: dict[str, list[float]] = {peer: [] for peer in PEERS}
    for name, found in known.items():
        new, again = found["new"], found["again"]
        if "error" in new or "error" in again:
            lines.append(f"| {name} | {new.get('error') or again['error']} |" + " |" * (len(HEADS) - 2))
            continue
        times = new["latencies"]
        cells = [name, f"{new['first_s']:.1f}", f"{again['first_s']:.1f}", f"{new['difference']:.0e}"]
        cells += [f"{times[each] * 1e3:.3g}" if each in times else "-" for each in (*PEERS, OURS)]
        by_tvm = not is_slower(times[OURS], times["eager"])
        for peer in PEERS:
            ratio = times[peer] / times[OURS] if peer in times else None
            cells.append("-" if ratio is None else f"{ratio:.2f}x")
            if ratio is not None and new["compiled"]:
                ratios[peer].append(ratio)
                as_run[peer].append(ratio if by_tvm else times[peer] / times["eager"])
        cells += [str(new["compiled"]), str(sum(new["eager"].values())), "TVM" if by_tvm else "PyTorch"]
        lines.append(f"| {' | '.join(cells)} |")
    mean, median = statistics.geometric_mean, statistics.median
    for words, of, counted in (
        ("geometric mean", mean, ratios),
        ("median", median, ratios),
        ("geometric mean, as it runs", mean, as_run),
        ("median, as it runs", median, as_run),
    ):
        middle = [f"{of(counted[peer]):.2f}x" if counted[peer] else "-" for peer in PEERS]
        lines.append(f"| {words} | | | | | | | {' | '.join(middle)} | | | |")
    return lines


def write_page(known: dict[str, Any]) -> None:
    """Rewrite the table."""
    said = sorted({f"{found['cpu']}, commit {found['commit']}" for found in known.values()})
    how = f"`python benchmarks/torch_models.py --inductor`, {'; '.join(said)}."
    text = "\n".join(["", *lines_of(known), "", how, ""])
    put(PAGE, "torch", text)


if __name__ == "__main__":
    write_page(json.loads(KEPT.read_text(encoding="utf-8")))
