"""The scoreboard's table and picture, from the kept results."""

from __future__ import annotations

import math
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from tlp_tvm.files import fresh_file
from tlp_tvm.machine.core_distance import placements

_LONG = 1e3
"""Milliseconds from which all digits before the point are written."""

Kept = Mapping[str, Mapping[str, Any]]
"""Of a processor: network -> stage, as "ansor-15" -> what it gave; stages in the order in which they ran."""

Processors = Mapping[str, Kept]
"""What a processor calls itself -> what was measured there."""


def fastest(stage: Mapping[str, Any]) -> tuple[str, float]:
    """Name and median of the fastest peer whose outputs agree, seconds; infinity if there is none."""
    sound = [
        (peer["latency"], peer["name"]) for peer in stage["peers"] if peer["turns"] and not peer["problem"]
    ]
    latency, name = min(sound, default=(math.inf, "-"))
    return name, latency


def ratio(stage: Mapping[str, Any]) -> float:
    """How many times faster than the fastest peer of the same turns ours is; NaN without a peer."""
    latency = fastest(stage)[1]
    return latency / float(stage["ours"]["latency"]) if math.isfinite(latency) else math.nan


def ratio_of_lowest(stage: Mapping[str, Any]) -> float:
    """The same by the lowest turn of each: with as little as possible of the host's other work."""
    turns = [min(peer["turns"]) for peer in stage["peers"] if peer["turns"] and not peer["problem"]]
    return min(turns) / min(stage["ours"]["turns"]) if turns else math.nan


def over_labels(stage: Mapping[str, Any]) -> float | None:
    """What tuned operators take inside the network over the sum of their labels; None where none has one."""
    explained = stage.get("explained")
    return 1 + float(explained["inside"] / explained["labels"]) if explained and explained["labels"] else None


def core_trip(stage: Mapping[str, Any]) -> float | None:
    """How far the cores were in our turns, as a round trip in seconds; None where nobody looked."""
    trips = stage["ours"].get("round_trips")
    return statistics.median(trips) if trips else None


def in_order(kept: Processors) -> list[str]:
    """Processors, the one with most networks first: ratios of two are not to be mixed."""
    return sorted((cpu for cpu in kept if kept[cpu]), key=lambda cpu: (-len(kept[cpu]), cpu))


def page(kept: Processors, titles: Mapping[str, str]) -> list[str]:
    """The picture, and a table for each processor."""
    if not (processors := in_order(kept)):
        return ["", "Not measured yet.", ""]
    text = ["", f"![speed beside the fastest peer, {processors[0]}](networks.png)", ""]
    return text + [line for cpu in processors for line in (f"### {cpu}", "", *lines(kept[cpu], titles))]


def lines(kept: Kept, titles: Mapping[str, str]) -> list[str]:
    """The table of a processor, what it was measured on, and the means."""
    networks = [name for name in titles if kept.get(name)]
    found = [list(kept[name].values()) for name in networks]
    peers = list(dict.fromkeys(peer["name"] for rows in found for row in rows for peer in row["peers"]))
    stages = sorted({stage for name in networks for stage in kept[name]}, key=order_of)
    heads = ["network", *(f"{peer}, ms" for peer in peers), "TVM untuned, ms"]
    heads += ["at the peak, ms", *(f"{stage_words(stage)}: ms | beside the fastest peer" for stage in stages)]
    text = [f"| {' | '.join(heads)} |", "|---" * (3 + len(peers) + 2 * len(stages)) + "|"]
    for name, rows in zip(networks, found, strict=True):
        last = rows[-1]
        cells = [titles[name], *(_peer(last, peer) for peer in peers), _ms(last["untuned"])]
        cells.append(_ms(last["at_peak"]) if last.get("at_peak") else "-")
        for stage in stages:
            row = kept[name].get(stage)
            cells += ["-", "-"] if row is None else [_ms(row["ours"]["latency"]), times(ratio(row))]
        text.append(f"| {' | '.join(cells)} |")
    means = ["geometric mean", *("" for _ in peers), "", ""]
    for stage in stages:
        means += ["", times(_mean([ratio(kept[name][stage]) for name in networks if stage in kept[name]]))]
    every = [row for rows in found for row in rows]
    threads = ", ".join(dict.fromkeys(f"{row['threads']} threads" for row in every))
    commits = ", ".join(
        dict.fromkeys(row.get(at, row["commit"]) for row in every for at in ("commit", "timed_at"))
    )
    about = (
        f"`python benchmarks/networks.py`, commit {commits}; {threads}. "
        "Medians of turns; figures of peers are those of the last stage. Higher ratios are better. At the "
        "peak: operations of the tuned tasks, as fast as the processor multiplies and adds in registers."
        + _quiet([(titles[name], list(kept[name].values())[-1]) for name in networks])
        + _cores([(titles[name], list(kept[name].values())[-1]) for name in networks])
        + _inside(every)
        + " [Row by row](networks-more.md#the-scoreboard-row-by-row)."
    )
    return [*text, f"| {' | '.join(means)} |", "", about, "", *_problems(networks, kept, titles)]


def summary(kept: Processors, titles: Mapping[str, str]) -> list[str]:
    """What the README says of each processor."""
    said = {cpu: found for cpu in in_order(kept) if (found := _sentences(cpu, kept[cpu], titles))}
    if not said:
        return [""]
    text = [
        "",
        f"![speed of tuned networks beside the fastest peer, {next(iter(said))}](docs/networks.png)",
        "",
    ]
    return [*text, *(line for found in said.values() for line in found), ""]


def _sentences(cpu: str, kept: Kept, titles: Mapping[str, str]) -> list[str]:
    """The longest tunings of each framework that measured, and shorter ones of more networks."""
    networks = [name for name in titles if kept.get(name)]
    stages = {order_of(stage): stage for name in networks for stage in kept[name] if order_of(stage)[1]}
    text: list[str] = []
    most: Counter[str] = Counter()
    for (framework, minutes), stage in sorted(stages.items(), key=lambda each: (each[0][0], -each[0][1])):
        ratios = {titles[name]: ratio(kept[name][stage]) for name in networks if stage in kept[name]}
        ratios = {title: value for title, value in ratios.items() if not math.isnan(value)}
        if len(ratios) <= most[framework]:
            continue
        most[framework] = len(ratios)
        faster = [title for title, value in ratios.items() if value > 1]
        worst, best = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
        mean = times(_mean(list(ratios.values())))
        text.append(
            f"*{cpu}, {minutes:g} minutes of tuning with {framework}, beside the fastest of ONNX Runtime, "
            f"OpenVINO, TorchScript and torch.compile in the same turns: {mean} "
            f"in the geometric mean of {len(ratios)} networks ({times(ratios[worst])} {worst} to "
            f"{times(ratios[best])} {best}), faster on {len(faster)}. [Table](docs/networks.md#scoreboard).*"
        )
        text.append("")
    return text


def _quiet(stages: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """How much of the ratios is other work of the host, as a sentence."""
    ratios = {title: ratio_of_lowest(stage) for title, stage in stages}
    worst, best = min(ratios, key=ratios.__getitem__), max(ratios, key=ratios.__getitem__)
    return (
        f" By the lowest turn of each library, {times(_mean(list(ratios.values())))} in the geometric mean "
        f"({times(ratios[worst])} {worst} to {times(ratios[best])} {best})."
    )


def _cores(stages: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Where the host had the cores in the turns that count, as a sentence."""
    found = {title: trip for title, stage in stages if (trip := core_trip(stage)) is not None}
    if not found:
        return ""
    words = []
    for low, high in placements(found.values()):
        there = [title for title, seconds in found.items() if low <= seconds <= high]
        words.append(f"{us(low)} to {us(high)} us ({', '.join(there)})")
    return (
        " Of these networks runs count in which the host left the cores in one place, by what a cache line "
        f"takes from one to the other and back: {', '.join(words)}."
    )


def us(seconds: float) -> str:
    """A round trip between cores, in microseconds."""
    return f"{seconds * 1e6:.2f}"


def _inside(stages: Sequence[Mapping[str, Any]]) -> str:
    """How well labels foretell the network, as a sentence."""
    ratios = [each for stage in stages if (each := over_labels(stage)) is not None]
    if not ratios:
        return ""
    return (
        f" Inside the networks, tuned operators take {min(ratios):.2f} to {max(ratios):.2f} times the sum of "
        f"their labels (median {statistics.median(ratios):.2f})."
    )


def draw(processors: Processors, titles: Mapping[str, str], path: Path) -> None:
    """Write the picture, of the processor with most networks.

    A row per network, speeds relative to the fastest peer of the same turns.
    """
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    cpu = next(iter(in_order(processors)), "")
    kept = processors.get(cpu, {})
    networks = [name for name in reversed(titles) if kept.get(name)]
    figure = Figure(figsize=(8, 1.4 + 0.42 * len(networks)), layout="constrained")
    axes = figure.subplots()
    every = sorted({order_of(stage) for name in networks for stage in kept[name]})
    shades = dict(zip(sorted({minutes for _, minutes in every}), _BLUES, strict=False))
    places = _places([framework for framework, _ in every])
    for row, name in enumerate(networks):
        stages = list(kept[name])
        last = kept[name][stages[-1]]
        for peer in last["peers"]:
            if peer["turns"] and not peer["problem"]:
                _dot(axes, row, fastest(last)[1] / peer["latency"], peer["name"])
        for stage in stages:
            framework, minutes = order_of(stage)
            shift, height = places[framework]
            speed = ratio(kept[name][stage])
            how = {"height": height, "color": shades.get(minutes, _BLUES[-1]), "edgecolor": "white"}
            # Behind those that are slower.
            axes.barh(row + shift, speed, label=stage_words(stage), zorder=2 - min(speed, 100) / 100, **how)
    axes.axvline(1, color="#5b6776", linewidth=1)
    axes.set_yticks(range(len(networks)), [titles[name] for name in networks])
    axes.set_ylim(-0.6, max(len(networks), 1) - 0.4)
    axes.set_xlim(0, None)
    axes.set_xlabel(f"speed relative to the fastest peer (higher is better), {cpu}")
    seen = dict(zip(*reversed(axes.get_legend_handles_labels()), strict=True))
    if seen:
        figure.legend(seen.values(), seen, loc="outside upper center", ncols=4, frameon=False, fontsize=8)
    FigureCanvasAgg(figure)
    with fresh_file(path) as fresh:
        figure.savefig(fresh, format="png", dpi=150)


_COLOURS = {"onnxruntime": "#7a8894", "openvino": "#b48a3c", "torch": "#c0564a", "torch-compile": "#8c5fa8"}
_BLUES = ("#c6dbef", "#6baed6", "#2171b5", "#08306b")


def _dot(axes: Any, row: int, speed: float, peer: str) -> None:
    axes.plot(speed, row, "o", color=_COLOURS.get(peer, "black"), markersize=5, label=peer, zorder=3)


def _places(frameworks: Sequence[str]) -> dict[str, tuple[float, float]]:
    """Framework to where its bar is in a row, and how high it is."""
    names = list(dict.fromkeys(frameworks))
    height = 0.7 / max(len(names), 1)
    return {name: (height * ((len(names) - 1) / 2 - i), height * 0.9) for i, name in enumerate(names)}


def order_of(stage: str) -> tuple[str, float]:
    """Framework and minutes of a stage, by which stages are sorted."""
    framework, _, minutes = stage.partition("-")
    return framework, float(minutes)


def stage_words(stage: str) -> str:
    """Of a stage, as "ansor, 5 min"."""
    framework, minutes = order_of(stage)
    return f"{framework}, {f'{minutes:g} min' if minutes else '0 programs'}"


def _peer(stage: Mapping[str, Any], name: str) -> str:
    latencies = [peer["latency"] for peer in stage["peers"] if peer["name"] == name and peer["turns"]]
    return _ms(latencies[0]) if latencies else "-"


def _mean(ratios: list[float]) -> float:
    known = [value for value in ratios if not math.isnan(value)]
    return statistics.geometric_mean(known) if known else math.nan


def _ms(seconds: float) -> str:
    ms = seconds * 1e3
    return f"{ms:.3g}" if ms < _LONG else f"{ms:.0f}"


def times(value: float) -> str:
    """A ratio, as "1.20x"; NaN as a dash."""
    return "-" if math.isnan(value) else f"{value:.2f}x"


def _problems(networks: list[str], kept: Kept, titles: Mapping[str, str]) -> list[str]:
    """What is wrong with a peer, once."""
    said = [
        f"- {titles[name]}: {peer['problem'].rpartition('/')[2]}"
        for name in networks
        for stage in kept[name].values()
        for peer in stage["peers"]
        if peer["problem"]
    ]
    found = list(dict.fromkeys(said))
    return [*found, ""] if found else []
