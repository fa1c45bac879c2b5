"""What a cross-validation picked: kept, read again, and summed up by both metrics."""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from places import ROOT, benchmark
from tlp_tvm.metrics.topk import RankedTask, mean_top_k, top_k

Tasks = list[tuple[RankedTask, bool | None]]
OF = ["datasets/cold"]


@pytest.fixture
def picks(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    return benchmark("picks", monkeypatch)


def some_tasks(seed: int, near: tuple[bool | None, ...]) -> Tasks:
    chance = np.random.default_rng(seed)
    return [
        (RankedTask(chance.uniform(1e-5, 1e-2, 12), chance.random(12), float(1 + i)), is_near)
        for i, is_near in enumerate(near)
    ]


def means(cells: list[str]) -> list[float]:
    return [float(cell.split()[0]) for cell in cells[1:]]


def test_figures_are_those_of_the_metrics(picks: ModuleType, tmp_path: Path) -> None:
    tasks, more = some_tasks(0, (True, False, True)), some_tasks(1, (False,) * 2)
    kept = picks.Picks(tmp_path / "kept.json", OF)
    kept.add("network", 0, "text", tasks, "abc1234")
    kept.add("network", 0, "images", more, "abc1234")
    kept.save()

    everything, near, far = picks.Picks(tmp_path / "kept.json", OF).rows("network", ["text", "images"])

    for cells, chosen in (
        (everything, tasks + more),
        (near, [tasks[0], tasks[2]]),
        (far, [tasks[1], *more]),
    ):
        ranked = [task for task, _ in chosen]
        expected = [figure(ranked, k) for figure in (top_k, mean_top_k) for k in (1, 5)]
        assert means(cells) == pytest.approx(expected, abs=2e-3)
        assert int(cells[0].split()[0]) == len(chosen)
    assert [cells[0] for cells in (everything, near, far)] == ["5 all", "2 near", "3 far"]


def test_seeds_count_where_all_their_groups_are_there(picks: ModuleType, tmp_path: Path) -> None:
    kept = picks.Picks(tmp_path / "kept.json", OF)
    for seed, groups in ((0, ("text", "images")), (1, ("text", "images")), (2, ("text",))):
        for group in groups:
            tasks = some_tasks(len(group), (True,) * 4)
            kept.add("network", seed, group, [(shuffled(task, seed), near) for task, near in tasks], "abc")

    [cells, _] = kept.rows("network", ["text", "images"])

    assert kept.seeds("network", ["text", "images"]) == [0, 1]
    assert all(" ± " in cell for cell in cells[1:])
    assert list(kept.rows("trees", ["text"])) == []


def shuffled(task: RankedTask, seed: int) -> RankedTask:
    return RankedTask(task.latencies, np.random.default_rng(seed).permutation(task.scores), task.weight)


def test_without_near_duplicates_known_there_is_one_row(picks: ModuleType, tmp_path: Path) -> None:
    kept = picks.Picks(tmp_path / "kept.json", OF)
    kept.add("network", 0, "text", some_tasks(0, (None, None)), "abc")

    assert [cells[0] for cells in kept.rows("network", ["text"])] == ["2 all"]


def test_picks_of_other_datasets_are_not_read(picks: ModuleType, tmp_path: Path) -> None:
    kept = picks.Picks(tmp_path / "kept.json", OF)
    kept.add("network", 0, "text", some_tasks(0, (True,)), "abc")
    kept.save()

    assert picks.Picks(tmp_path / "kept.json", OF).has_any("text", 0)
    assert not picks.Picks(tmp_path / "kept.json", [*OF, "datasets/cold-zen5"]).has_any("text", 0)
    assert not picks.Picks(tmp_path / "kept.json", OF).has_any("text", 1)


def test_each_kept_table_is_on_the_pages(monkeypatch: pytest.MonkeyPatch) -> None:
    front, back = ((ROOT / "docs" / name).read_text() for name in ("results.md", "results-more.md"))
    claim_tables, ablations, families, processors = (
        benchmark(name, monkeypatch)
        for name in ("claim_tables", "ablations", "family_folds", "processor_folds")
    )
    made = {
        "ablations.py": ablations.tables(ablations.Picks(ablations.KEPT, ablations.OF)),
        "processor_folds.py": processors.tables(processors.kept_of("zen1-avx2-2t")),
    }
    for framework in families.SOURCES:
        made[f"family_folds.py --framework {framework}"] = families.tables(families.kept_of(framework))

    for command, found in made.items():
        assert claim_tables.behind(found) in back, f"run {command} --tables"
        for table in found.tables if found.commits else ():
            assert "\n".join(claim_tables.claim_table(table)) in front, f"run {command} --tables"
