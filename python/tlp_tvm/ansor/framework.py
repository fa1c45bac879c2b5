"""Ansor, as a collection sees it (`framework.Framework`)."""

from __future__ import annotations

import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tlp_tvm.ansor.loading.locate import load_tvm, tvm_info
from tlp_tvm.ansor.reading.records import iter_records
from tlp_tvm.ansor.search.programs import StateSource
from tlp_tvm.ansor.search.tune_inputs import cores_of, target_of
from tlp_tvm.collection.planning import PlannedTask, plan_tasks
from tlp_tvm.measuring.child import Outcome
from tlp_tvm.measuring.pool import FAILED_COST, MeasureSettings, MeasuringPool
from tlp_tvm.measuring.remote import RemotePool

if TYPE_CHECKING:
    from tlp_tvm.collection.program_source import Prior
    from tlp_tvm.measuring.remote_worker import Fleet


class _Ansor:
    """Stateless."""

    name = "ansor"

    def target(self, text: str, *, here: bool) -> Any:
        return target_of(text, here=here)

    def cores(self, target: Any) -> int:
        return cores_of(target)

    def platform_name(self, target: Any) -> str:
        """For example "llvm-core-avx2-2c"."""
        words = [
            str(target.kind.name),
            *(str(target.attrs[name]) for name in ("mcpu", "arch") if name in target.attrs),
        ]
        if target.kind.name == "llvm":
            words.append(f"{cores_of(target)}c")
        return re.sub(r"[^\w.]+", "-", "-".join(words))

    def plan(
        self, networks: Sequence[str], target: Any, tell: Callable[[str], None], split_for: Any
    ) -> list[PlannedTask]:
        return plan_tasks(networks, target, tell, split_for)

    def split_for(self, noted: str | None, files: Sequence[Path]) -> Any:
        if noted is None:
            noted = next(iter_records([str(files[0])])).tasks[0].target
        return load_tvm().target.Target(noted)

    def source(self, task: PlannedTask, seed: int, prior: Prior | None = None) -> StateSource:
        return StateSource(task, seed, prior)

    def pool(
        self, how: MeasureSettings, output: IO[Any], check: Callable[[], None], fleet: Fleet | None
    ) -> MeasuringPool | RemotePool:
        if fleet is None:
            return MeasuringPool(how, output, check=check, for_tvm=False)
        return RemotePool(how, fleet, output, check)

    def record(self, task: PlannedTask, program: Any, outcome: Outcome, compiled_s: float) -> str:
        auto_scheduler = load_tvm().auto_scheduler
        costs = [FAILED_COST] if outcome.error else list(outcome.costs)
        seconds = compiled_s + (outcome.seconds if outcome.costs else 0.0)
        result = auto_scheduler.MeasureResult(costs, outcome.error, "", seconds, int(time.time()))
        return str(auto_scheduler.measure_record.dump_record_to_string(program, result))

    def tvm_version(self) -> str:
        return tvm_info().version


FRAMEWORK = _Ansor()
