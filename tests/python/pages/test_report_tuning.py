"""Pages of tuning runs: from real records, whole, stopped in the middle, and damaged."""

from __future__ import annotations

import gzip
import html
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from scipy.stats import spearmanr

from logs import DATASETS
from pages import others_asked_for
from tlp_tvm import load_model, read_records
from tlp_tvm.errors import RecordError, TuningError
from tlp_tvm.pages import report_page
from tlp_tvm.pages.past_run import read_run
from tlp_tvm.pages.predicted import Predicted, predict

PLATFORM = "epyc-avx512-2c"
TARGET = "llvm -keys=cpu -mcpu=skylake-avx512 -num-cores=2"
TASKS = ("train/dcgan__0a2469959b41", "train/squeezenet__127690165152", "test/resnet_50-224__bd58941134b6")
PROGRAMS = 12
DESCRIPTION = {
    "format": "tlp-tvm-run",
    "format_version": 1,
    "network": "a <network>",
    "target": TARGET,
    "model": "epyc",
    "seed": 3,
    "online": True,
    "measure": {"children": 2, "timing": {"repeat": 3}},
    "versions": {"tlp_tvm": "0.0.9", "tvm": "0.17.dev0"},
}


def records() -> list[dict[str, Any]]:
    """Of three tasks, in the order of time; the first two of them failed."""
    lines = []
    for name in TASKS:
        with gzip.open(DATASETS / "epyc" / PLATFORM / f"{name}.json.gz", "rt") as file:
            lines += [json.loads(line) for _, line in zip(range(PROGRAMS), file, strict=False)]
    lines.sort(key=lambda line: line["r"][3])
    for line, error in zip(lines, (6, 2), strict=False):
        line["r"][:2] = [[1e10], error]
    return lines


def key_of(record: dict[str, Any]) -> str:
    return str(record["i"][0][0])


def results(lines: list[dict[str, Any]]) -> dict[str, Any]:
    """What a tuning says of the records in the end."""
    tasks = []
    for i, key in enumerate(dict.fromkeys(map(key_of, lines))):
        ran = [np.median(line["r"][0]) for line in lines if key_of(line) == key and line["r"][1] == 0]
        tasks.append(
            {
                "name": f"vm_mod_fused_nn_conv2d_{i}",
                "workload_key": key,
                "weight": i + 1,
                "flops": 1e9,
                "trials": PROGRAMS,
                "failures": PROGRAMS - len(ran),
                "first": ran[0],
                "best": min(ran),
                "chosen": True,
            }
        )
    return {
        "platform": PLATFORM,
        "trials": len(lines),
        "reused": 0,
        "failures": {"compiles too long: over 20 s": 1},
        "tasks": tasks,
        "estimate": sum(task["best"] * task["weight"] for task in tasks),
        "end_to_end": {
            "untuned": [0.02, 0.021],
            "tuned": [0.01, 0.011],
            "difference": 1e-6,
            "untuned_latency": 0.0205,
            "tuned_latency": 0.0105,
            "speedup": 1.952,
        },
        "seconds": {"tasks": 1.5, "search": 40.0, "measure": 60.0},
        "library": None,
        "no_library": "no compiler",
    }


def write_run(folder: Path, content: dict[str, Any], log: str) -> Path:
    folder.mkdir()
    (folder / "run.json").write_text(json.dumps(content))
    (folder / "log.json").write_text(log)
    return folder


def log_of(lines: list[dict[str, Any]]) -> str:
    return "".join(json.dumps(line) + "\n" for line in lines)


def whole_run(folder: Path) -> Path:
    """A small one, tuned by a model that no page opens."""
    lines = records()[:4]
    content = {**DESCRIPTION, **results(lines), "model": "another"}
    return write_run(folder, content, log_of(lines))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    lines = records()
    folder = tmp_path_factory.mktemp("runs") / "whole"
    return write_run(folder, {**DESCRIPTION, **results(lines)}, log_of(lines))


def test_the_page_of_a_run_has_everything(whole: Path) -> None:
    before = sorted(path.name for path in whole.iterdir())

    page = report_page(whole)

    assert others_asked_for(page) == []
    assert sorted(path.name for path in whole.iterdir()) == before
    assert page.count("<svg") == page.count("</svg>") == 4 + len(TASKS)
    assert "<h1>a &lt;network&gt;</h1>" in page
    assert 'class="note"' not in page
    for words in ("20.5 ms", "10.5 ms", "1.95x", "programs, 2 failed", "1.7 min", "measure, timing, repeat"):
        assert words in page
    for heading in ("Tasks", "Predicted against measured", "Failures", "Settings", "Results", "Versions"):
        assert f"<h2>{heading}</h2>" in page
    for cell in ("compiles too long", "over 20 s (1)", "does not compile", "no compiler", "0.0.9"):
        assert f">{cell}<" in page


def test_tasks_say_what_the_log_says(whole: Path) -> None:
    run, content = read_run(whole), json.loads((whole / "run.json").read_text())

    assert run.ended
    assert (run.unreported, run.cut) == (0, False)
    for task, told in zip(run.tasks, content["tasks"], strict=True):
        assert (task.programs, task.failed) == (told["trials"], told["failures"])
        assert (task.first, task.best) == pytest.approx((told["first"], told["best"]))
    assert run.estimate == pytest.approx(content["estimate"])
    heaviest = max(run.tasks, key=lambda task: task.best * task.weight)
    cells = (f"{1 / heaviest.best:.3g}", f"{heaviest.best * heaviest.weight / run.estimate:.1%}")
    page = report_page(whole)
    for cell in (f"<b>{heaviest.best * 1e3:.3g} ms</b>", f"<b>{cells[0]}</b>", f">{cells[1]}<"):
        assert cell in page


def test_operations_that_tvm_cannot_count_are_no_rate(whole: Path) -> None:
    content = json.loads((whole / "run.json").read_text())
    assert "<b>-</b>" not in report_page(whole)
    content["tasks"][0]["flops"] = -1.0
    (whole / "run.json").write_text(json.dumps(content))
    assert "<b>-</b>" in report_page(whole)


def test_time_is_that_of_the_records(whole: Path) -> None:
    clock, lines = read_run(whole).clock, records()

    assert clock[-1] - clock[0] == lines[-1]["r"][3] - lines[0]["r"][3] > 0
    assert clock[0] == pytest.approx(lines[0]["r"][2])


def test_scores_are_those_of_the_model_and_of_the_right_programs(whole: Path) -> None:
    run = read_run(whole)

    predicted = predict(run, None)

    assert isinstance(predicted, Predicted)
    assert (predicted.model, predicted.platform) == ("epyc", PLATFORM)
    model, correlations = load_model("epyc"), []
    for name in TASKS:
        batch = read_records(DATASETS / "epyc" / PLATFORM / f"{name}.json.gz")
        [task] = [i for i, task in enumerate(run.tasks) if task.workload_key == batch.tasks[0].workload_key]
        scores = model.score(batch.encode(model.layout)[:PROGRAMS], PLATFORM)
        mine = run.history.task_ids == task
        assert sorted(predicted.scores[mine]) == pytest.approx(sorted(scores), rel=1e-4)
        ran = mine & np.isfinite(run.history.latencies)
        correlations.append(spearmanr(predicted.scores[ran], 1 / run.history.latencies[ran]).statistic)
        assert predicted.correlation[task] == pytest.approx(correlations[-1])
        best = np.argmin(run.history.latencies[mine])
        place = list(np.argsort(-predicted.scores[mine])).index(best) + 1
        assert predicted.place_of_best[task] == place
    assert np.mean(correlations) > 0.4  # the model knows two of these tasks


def test_a_model_that_is_gone_is_said_on_the_page(whole: Path) -> None:
    page = report_page(whole, "gone")

    assert "The model cannot be loaded, so there are no scores: gone: expected a shipped model" in page
    assert page.count("<svg") == 4
    assert ">correlation<" not in page


def test_a_run_stopped_in_the_middle_has_a_page_of_its_log(tmp_path: Path) -> None:
    text = log_of(records())
    folder = write_run(tmp_path / "stopped", DESCRIPTION, text[:-100])

    run, page = read_run(folder), report_page(folder)

    assert (run.ended, run.cut) == (False, True)
    assert len(run.history) == len(TASKS) * PROGRAMS - 1
    assert (folder / "log.json").read_text() == text[:-100]
    assert "This run was stopped before its end." in page
    assert "The last line of the log is incomplete" in page
    assert page.count("<svg") == 3 + len(TASKS)
    assert f"platform {PLATFORM}" in page  # the target names it
    assert "GFLOP/s" not in page


def test_a_run_without_a_program_has_a_page(tmp_path: Path) -> None:
    begun = write_run(tmp_path / "begun", DESCRIPTION, "")
    chosen = results(records()) | {"trials": 0, "end_to_end": None, "failures": {}}
    chosen["tasks"] = [task | {"first": None, "best": None} for task in chosen["tasks"]]
    alone_chose = write_run(tmp_path / "chosen", {**DESCRIPTION, **chosen}, "")

    assert "No program was measured, so there is nothing" in report_page(begun)
    page = report_page(alone_chose)
    assert "the model alone chose one program of each task" in page
    assert "The network was not timed" in page
    assert "nn_conv2d_2" in page


def test_tasks_that_keep_tvms_own_schedule_say_why(tmp_path: Path) -> None:
    content = {**DESCRIPTION, **results(records())}
    first, second, *_ = content["tasks"]
    first |= {"chosen": False}
    second |= {"chosen": False, "first": None, "best": None}

    log = log_of([line for line in records() if key_of(line) != second["workload_key"]])
    page = html.unescape(report_page(write_run(tmp_path / "run", content, log)))

    assert "Inside, nn_conv2d_0 is slower: it keeps TVM's own schedule." in page
    assert "No program of nn_conv2d_1 ran: it keeps TVM's own schedule." in page


def test_a_run_that_was_gone_on_with_says_what_is_old(tmp_path: Path) -> None:
    lines = records()
    content = {**DESCRIPTION, **results(lines[:30]), "trials": 30}
    content["end_to_end"] |= {"difference": 0.2, "speedup": 0.5}

    page = report_page(write_run(tmp_path / "run", content, log_of(lines)))

    assert "resumed and stopped: 6 programs of its log are newer than the results" in page
    assert "by 0.2, more than rounding: do not use these records" in page
    assert "The network is faster untuned." in page


def test_a_model_without_a_head_for_the_target_answers_with_the_mean_of_its_heads(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", DESCRIPTION | {"target": "llvm -mcpu=znver9"}, log_of(records()))

    predicted = predict(read_run(folder), None)

    assert isinstance(predicted, Predicted)
    assert predicted.platform == "mean"


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ("{", "expected JSON, found "),
        ("[]", 'expected "tlp-tvm-run" of version 1, found None'),
        ('{"format": "tlp-tvm-run", "format_version": 2}', r"found \('tlp-tvm-run', 2\)"),
        (json.dumps({**DESCRIPTION, "target": 3}), "expected what a tuning writes, found AttributeError"),
        (json.dumps({**DESCRIPTION, "tasks": [{}]}), "found KeyError: 'workload_key'; tune again"),
        (json.dumps({**DESCRIPTION, "tasks": [], "trials": "x"}), "found ValueError"),
        (json.dumps({**DESCRIPTION, "seconds": 3}), "found AttributeError"),
        (json.dumps({**DESCRIPTION, "end_to_end": {}}), "found KeyError: 'untuned_latency'"),
        (json.dumps({**DESCRIPTION, "versions": 7}), "found AttributeError"),
    ],
)
def test_a_damaged_run_is_refused(tmp_path: Path, content: str, found: str) -> None:
    folder = write_run(tmp_path / "run", {}, "")
    (folder / "run.json").write_text(content)

    with pytest.raises(TuningError, match=found) as error:
        report_page(folder)

    assert str(error.value).startswith(f"{folder}/run.json: ")


def test_a_run_without_a_log_is_refused(tmp_path: Path) -> None:
    folder = write_run(tmp_path / "run", DESCRIPTION, "")
    (folder / "log.json").unlink()

    with pytest.raises(TuningError, match=r"log\.json: expected the log of the run, found: No such file"):
        report_page(folder)


def test_a_damaged_log_is_refused_by_its_line(tmp_path: Path) -> None:
    text = log_of(records()[:3])
    folder = write_run(tmp_path / "run", DESCRIPTION, text.replace('"SP"', "SP", 1) + text[:50])

    with pytest.raises(RecordError, match=r"log\.json:1: "):
        report_page(folder)


def test_a_page_opens_no_model_that_a_run_names(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Somebody's folder must not choose what is loaded here: an exported model is code."""
    lines, theirs = records(), tmp_path / "theirs.pt"
    theirs.write_bytes(b"code")
    monkeypatch.setattr(torch.jit, "load", lambda *_: pytest.fail("a file was opened"))
    content = {**DESCRIPTION, **results(lines), "model": "epyc", "model_source": str(theirs)}
    folder = write_run(tmp_path / "run", content, log_of(lines))

    page = report_page(folder)
    asked = report_page(folder, str(theirs))

    assert f"The run was tuned by {theirs}, which is not a shipped model, and a page opens no file" in page
    assert (
        f"{theirs}: expected a shipped model (epyc, epyc-metaschedule, epyc-small, x86, x86-metaschedule) or "
        "a checkpoint folder, found a file, which may be an exported model, that is, code"
    ) in asked
    assert "Rank correlation, mean of" in report_page(folder, "epyc")


def test_a_damaged_result_is_a_sentence(tmp_path: Path) -> None:
    lines = records()
    content = {**DESCRIPTION, **results(lines)}
    del content["end_to_end"]["untuned"]
    folder = write_run(tmp_path / "run", content, log_of(lines))
    with pytest.raises(TuningError) as refused:
        report_page(folder)
    assert str(refused.value) == (
        f"{folder}/run.json: expected what a tuning writes, found KeyError: 'untuned'; "
        "run the same tuning again; measured programs are kept"
    )
