"""A tuning run as one self-contained HTML page."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np

from tlp_tvm._core import __version__
from tlp_tvm.dataset.statistics.counting import FAILURES
from tlp_tvm.errors import TuningError
from tlp_tvm.pages.beside_section import beside_numbers, beside_section
from tlp_tvm.pages.page import (
    Html,
    cards,
    facts,
    figures,
    filled,
    heading,
    lines,
    notes,
    page,
    section,
    tag,
    title,
)
from tlp_tvm.pages.past_run import ReportedTask, TuningRun, read_run
from tlp_tvm.pages.predicted import Predicted, predict
from tlp_tvm.pages.tuning_plots import SCATTERS, curves, scatters
from tlp_tvm.tuning.network.turns import ROUNDING

WHOLE = 40
"""Up to this many tasks, the table does not scroll."""

_SETTINGS = (
    "network",
    "target",
    "cpu",
    "model",
    "platform",
    "online",
    "seed",
    "population",
    "measure",
    "choice",
)
_TASKS = (
    "Heaviest first. Before: the first program that ran; after: the fastest known. Share: of the weighted "
    "sum of the tasks' best latencies. Correlation: rank correlation of the model's scores and the measured "
    "speeds. Place: rank of the fastest program by score."
)
_PREDICTED = (
    "One point per measured program, later ones darker; the ring marks the fastest. A good model puts fast "
    "programs on the lower right. The search chose these programs by score, so the model separates them "
    "worse than random programs."
)


def tuning_page(folder: Path, model: str | None = None) -> str:
    """The page of a run.

    Args:
        folder: with run.json and the log.
        model: a shipped model or a checkpoint folder that scores the programs; None for the run's own, if it
            is a shipped one.

    Raises:
        TuningError: run.json is damaged, or there is no log.
        BesideError: beside.json is damaged.
        RecordError: the log is damaged.
    """
    run = read_run(folder)
    try:
        return _page(folder, run, predict(run, model))
    except (AttributeError, KeyError, IndexError, TypeError, ValueError) as error:
        raise TuningError(
            f"{folder / 'run.json'}: expected what a tuning writes, found {type(error).__name__}: {error}; "
            "run the same tuning again; measured programs are kept"
        ) from error


def _page(folder: Path, run: TuningRun, predicted: Predicted | str) -> str:
    heaviest = sorted(range(len(run.tasks)), key=lambda i: -_share(run, run.tasks[i]))
    network = run.content["network"]
    parts = [
        title(network, _lead(run)),
        notes(_notes(run)),
        cards(_numbers(run) | beside_numbers(folder)),
        figures(curves(run, heaviest)),
        *beside_section(folder, len(run.history)),
        section("Tasks", _TASKS, *_tasks(run, heaviest, predicted), whole=len(run.tasks) <= WHOLE),
        *_predicted(run, heaviest, predicted),
        *_failures(run),
        facts("Settings", "From run.json.", {n: run.content.get(n) for n in _SETTINGS}),
        facts("Results", "Files in the folder of the run.", _left(run)),
        facts("Versions", "", {**run.content.get("versions", {}), "this page": f"tlp_tvm {__version__}"}),
        tag("footer", folder),
    ]
    return page(f"{network}: tuning", parts)


def _lead(run: TuningRun) -> str:
    content = run.content
    learning = ""
    if "online" in content and len(run.history):
        learning = ", learning from the measurements" if content["online"] else ", not learning"
    head = f" (platform {content['platform']})" if content.get("platform") else ""
    return f"Tuned for {content['target']} by the model {content['model']}{head}{learning}."


def _notes(run: TuningRun) -> list[str]:
    content, said = run.content, []
    if not run.ended:
        said.append(
            "This run was stopped before its end. The page shows its log; "
            + ("" if "planned" in content else "names, weights and operations of the tasks, ")
            + "the latency of the whole network and the time spent are not known yet."
            + ("" if "planned" in content else " Each task counts once.")
        )
    elif run.unreported > 0:
        said.append(
            f"This run was resumed and stopped: {run.unreported} programs of its log are newer than the "
            "results; the latency of the whole network and the time spent are older."
        )
    elif run.unreported < 0:
        said.append(f"The log lacks {-run.unreported} programs that the results count.")
    if run.cut:
        said.append("The last line of the log is incomplete and left out.")
    if run.ended and not len(run.history):
        said.append("No program was measured: the model alone chose one program of each task.")
    ended = content.get("end_to_end")
    if run.ended and ended is None:
        said.append("The network was not timed: its target is not the machine that tuned it.")
    if ended is not None and ended["difference"] > ROUNDING:
        said.append(
            f"The outputs of the tuned network differ from those of the untuned one by "
            f"{ended['difference']:.1g}, more than rounding: do not use these records."
        )
    if ended is not None and ended["speedup"] < 1:
        said.append("The network is faster untuned.")
    for task in run.tasks:
        if task.chosen is False:
            slower = task.best < float("inf")
            why = f"Inside, {task.name} is slower" if slower else f"No program of {task.name} ran"
            said.append(f"{why}: it keeps TVM's own schedule.")
    return said


def _numbers(run: TuningRun) -> dict[str, str]:
    content, numbers = run.content, {}
    if (ended := content.get("end_to_end")) is not None:
        numbers["network, untuned"] = _ms(ended["untuned_latency"])
        numbers["network, tuned"] = _ms(ended["tuned_latency"])
        numbers["speedup"] = f"{ended['speedup']:.2f}x"
    if np.isfinite(run.estimate):
        numbers["sum of tasks' best"] = _ms(run.estimate)
    numbers["tasks"] = f"{len(run.tasks):,}"
    numbers[f"programs, {int(run.history.failures.sum()):,} failed"] = f"{len(run.history):,}"
    if content.get("warm"):
        numbers["from earlier logs"] = f"{int(content['warm']):,}"
    if spent := sum(content.get("seconds", {}).values()):
        numbers["spent"] = f"{spent / 60:.1f} min"
    elif len(run.clock):
        numbers["first to last program"] = f"{run.clock[-1] / 60:.1f} min"
    return numbers


def _ms(seconds: float) -> str:
    return f"{seconds * 1e3:.3g} ms"


def _share(run: TuningRun, task: ReportedTask) -> float:
    return task.best * task.weight / run.estimate if np.isfinite(task.best) else 0.0


def _tasks(
    run: TuningRun, heaviest: list[int], predicted: Predicted | str
) -> tuple[list[str], list[list[object]]]:
    names = ["~task", ">times", ">programs", ">failed", ">before", ">after", ">faster"]
    names += [">GFLOP/s before", ">after", ">share", ">correlation", ">place"]
    rows: list[list[object]] = []
    for i in heaviest:
        task = run.tasks[i]
        first, best = np.isfinite(task.first), np.isfinite(task.best)
        flops = task.flops
        rows.append(
            [
                lines([task.name, tag("code", task.workload_key)]),
                task.weight if flops is not None else "",
                f"{task.programs:,}",
                f"{task.failed:,}" if task.failed else "",
                _ms(task.first) if first else "",
                tag("b", _ms(task.best)) if best else "",
                f"{task.first / task.best:.2f}x" if first and best else "",
                _rate(flops, task.first),
                tag("b", rate) if (rate := _rate(flops, task.best)) else "",
                f"{_share(run, task):.1%}" if best else "",
                *_of_model(predicted, i, task),
            ]
        )
    return filled(names, rows)


def _rate(flops: float | None, latency: float) -> str:
    """GFLOP/s; "-" where TVM cannot count the operations, empty where nothing ran."""
    if flops is None or not np.isfinite(latency):
        return ""
    return f"{flops / latency / 1e9:.3g}" if flops > 0 else "-"


def _of_model(predicted: Predicted | str, i: int, task: ReportedTask) -> tuple[str, str]:
    if isinstance(predicted, str):
        return "", ""
    correlation, place = predicted.correlation[i], predicted.place_of_best[i]
    return (
        "" if np.isnan(correlation) else f"{correlation:.2f}",
        f"{place} of {task.programs}" if place else "",
    )


def _predicted(run: TuningRun, heaviest: list[int], predicted: Predicted | str) -> list[Html]:
    name = "Predicted against measured"
    if isinstance(predicted, str):
        return [heading(name, predicted)]
    known = predicted.correlation[~np.isnan(predicted.correlation)]
    scored_by = f"Scores of {predicted.model}, platform {predicted.platform}"
    text = f"{scored_by}, before it learned from this run. {_PREDICTED}"
    if len(known):
        text += f" Rank correlation, mean of {len(known)} tasks: {known.mean():.2f}."
    if len(run.tasks) > SCATTERS:
        text += f" Only the {SCATTERS} heaviest tasks are shown."
    return [heading(name, text), figures(scatters(run, predicted, heaviest), small=True)]


def _failures(run: TuningRun) -> list[Html]:
    errors = run.batch.errors[run.rows]
    failed = np.isinf(run.history.latencies)
    if not failed.any():
        return [heading("Failures", "No program failed.")]
    details: dict[str, list[str]] = {}
    for reason, count in run.content.get("failures", {}).items():
        kind, _, message = reason.partition(":")
        details.setdefault(kind, []).append(f"{message.strip()} ({count})" if message else "")
    rows: list[list[object]] = []
    for number, count in zip(*np.unique(errors[failed], return_counts=True), strict=True):
        of_tasks = np.unique(run.history.task_ids[failed & (errors == number)])
        kind = FAILURES.get(int(number), f"error {number}")
        rows.append(
            [
                kind,
                f"{count:,}",
                f"{count / len(failed):.1%}",
                ", ".join(run.tasks[i].name for i in of_tasks),
                "; ".join(filter(None, details.get(kind, []))),
            ]
        )
    text = "Counts from the log; messages from the command that ended the run."
    return [section("Failures", text, ["reason", ">programs", ">share", "~tasks", "~messages"], rows)]


def _left(run: TuningRun) -> dict[str, Any]:
    content = run.content
    ended = content.get("end_to_end") or {}
    left = {
        "log": f"{run.log}, {len(run.history):,} programs",
        "best programs": content.get("best") and Path(content["best"]).name,
        "library": content.get("library") and Path(content["library"]).name,
        "no library": content.get("no_library"),
        "outputs differ by": f"{ended['difference']:.1g}" if ended else None,
    }
    for name in ("untuned", "tuned"):
        if ended:
            left[f"timings {name}, ms"] = ", ".join(f"{seconds * 1e3:.4g}" for seconds in ended[name])
    return left
