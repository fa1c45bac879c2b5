"""The tables of `torch_models.py`, in docs/networks.md."""

from __future__ import annotations

import json
import statistics
from typing import Any

from commits import ROOT
from marked_pages import put

from tlp_tvm.metaschedule.torch_compile.beside_eager import is_slower

KEPT = ROOT / "docs" / "results" / "torch-models.json"
PAGE = ROOT / "docs" / "networks.md"
PEERS = {"eager": "eager", "inductor": "Inductor", "onnxruntime": "ONNX Runtime"}
OURS = "tlp_tvm"
HEADS = (
    *("model", "first call, s", "cached, s", "difference", *(f"{name}, ms" for name in PEERS.values())),
    *(
        "tlp_tvm, ms",
        *(f"beside {name}" for name in PEERS.values()),
        "graphs of TVM",
        "of PyTorch",
        "runs by",
    ),
)


def lines_of(known: dict[str, Any]) -> list[str]:
    """A table: a row a model, and the geometric means and medians of those that TVM runs.

    Args:
        known: what `torch_models.py` keeps of a processor: model -> what two processes found, "new" and
            "again".
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
        lines.append(f"| {words} {'| ' * (4 + len(PEERS))}| {' | '.join(middle)} | | | |")
    return lines


def write_page(kept: dict[str, Any]) -> None:
    """Rewrite the tables, one for each processor."""
    lines = []
    for cpu, known in kept.items():
        commits = ", ".join(sorted({found["commit"] for found in known.values()}))
        lines += ["", f"{cpu}, commit {commits}:", "", *lines_of(known)]
    put(PAGE, "torch", "\n".join([*lines, "", "`python benchmarks/torch_models.py --peers`.", ""]))


if __name__ == "__main__":
    write_page(json.loads(KEPT.read_text(encoding="utf-8")))
