"""Tasks of recorded programs, looked for in the built-in networks."""

from __future__ import annotations

from tlp_tvm.ansor.reading.store_rows import rebuilt_tasks


def test_networks_and_targets_that_are_not_known_give_no_task() -> None:
    tasks: dict[str, dict[str, int]] = {'["k", [4, 4]]': {"somebodys_net": 1}, "[]": {}}
    assert list(rebuilt_tasks(tasks, ["llvm -mcpu=core-avx2", "abacus"], lambda words: None)) == []
