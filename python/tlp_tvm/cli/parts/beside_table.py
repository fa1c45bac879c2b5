"""The tuned network and its peers, for the terminal."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tlp_tvm.cli.parts.common import console, print_table

if TYPE_CHECKING:
    from tlp_tvm.beside.beside_result import BesideResult, Timed


def print_beside(result: BesideResult) -> None:
    """A row each, then what is wrong with a peer, and the ratio to the fastest."""
    from rich.table import Table

    title = f"{result.network} beside its peers, {result.threads} threads, {len(result.ours.turns)} turns"
    table = Table(title=title, title_justify="left")
    table.add_column("run by", overflow="fold")
    table.add_column("version", overflow="fold")
    for name in ("median ms", "lowest ms", "ours faster", "outputs differ"):
        table.add_column(name, justify="right")
    for each in (result.ours, *result.peers):
        table.add_row(each.name, each.version, *_figures(result, each))
    print_table(table)
    said = [peer.problem for peer in result.peers if peer.problem]
    if result.fastest is not None and result.speedup is not None:
        said.append(f"{result.speedup:.2f}x as fast as the fastest peer, {result.fastest.name}")
    for sentence in said:
        console.print(sentence, highlight=False, soft_wrap=True)


def _figures(result: BesideResult, each: Timed) -> tuple[str, str, str, str]:
    if each.latency is None or each.lowest is None or result.ours.latency is None:
        return "-", "-", "-", "-"
    ratio = "" if each is result.ours else f"{each.latency / result.ours.latency:.2f}x"
    difference = "" if each.difference is None else f"{each.difference:.1g}"
    return f"{each.latency * 1e3:.4g}", f"{each.lowest * 1e3:.4g}", ratio, difference
