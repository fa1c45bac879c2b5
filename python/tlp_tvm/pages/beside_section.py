"""The section of a tuning's page on the peers that the tuned network was timed beside."""

from __future__ import annotations

from pathlib import Path

from tlp_tvm.beside.beside_result import AGREEMENT, BesideResult, Timed, read_beside
from tlp_tvm.pages.page import Html, joined, notes, section, tag

_TEXT = (
    "Each in a process of its own that slept while another ran: {turns} turns on the same inputs with "
    "{threads} threads on {cpu}, after {programs:,} measured programs. Ours faster: median of the peer by "
    f"ours. Outputs must agree within {AGREEMENT:g} of the largest value."
)


def beside_section(folder: Path, programs: int) -> list[Html]:
    """A table of the peers; nothing if there are none.

    Args:
        folder: of the tuning.
        programs: that its log holds.

    Raises:
        BesideError: beside.json is damaged.
    """
    result = read_beside(folder)
    if result is None:
        return []
    text = _TEXT.format(
        turns=len(result.ours.turns), threads=result.threads, cpu=result.cpu, programs=result.programs
    )
    said = [peer.problem for peer in result.peers if peer.problem]
    if result.programs != programs:
        said.append(
            f"The peers were timed after {result.programs:,} programs; the log holds {programs:,} now."
        )
    columns = ["run by", "version", ">median", ">lowest", ">ours faster", ">outputs differ"]
    rows = [_row(result, each) for each in (result.ours, *result.peers)]
    return [joined([section("Beside other runtimes", text, columns, rows, whole=True), notes(said)])]


def beside_numbers(folder: Path) -> dict[str, str]:
    """Cards: the fastest peer, and how much faster ours is; nothing without one.

    Args:
        folder: of the tuning.
    """
    result = read_beside(folder)
    if result is None or result.fastest is None or result.speedup is None:
        return {}
    return {
        f"fastest peer, {result.fastest.name}": _ms(result.fastest.latency),
        "beside it": f"{result.speedup:.2f}x",
    }


def _row(result: BesideResult, each: Timed) -> list[object]:
    if each.latency is None or not result.ours.latency:
        return [each.name, each.version, "-", "-", "-", "-"]
    ratio = "" if each is result.ours else f"{each.latency / result.ours.latency:.2f}x"
    difference = "" if each.difference is None else f"{each.difference:.1g}"
    return [each.name, each.version, tag("b", _ms(each.latency)), _ms(each.lowest), ratio, difference]


def _ms(seconds: float | None) -> str:
    return "-" if seconds is None else f"{seconds * 1e3:.3g} ms"
