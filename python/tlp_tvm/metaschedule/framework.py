"""MetaSchedule, as a collection sees it (`framework.Framework`)."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any

from tlp_tvm.collection.planning import PlannedTask
from tlp_tvm.errors import CollectionError
from tlp_tvm.measuring.child import Outcome
from tlp_tvm.measuring.pool import FAILED_COST, MeasureSettings
from tlp_tvm.metaschedule.loading.locate import tvm_info
from tlp_tvm.metaschedule.loading.targets import cores_of, flags_of, target_of
from tlp_tvm.metaschedule.networks.tasks import plan_tasks
from tlp_tvm.metaschedule.search.measure import TracePool, arguments_of
from tlp_tvm.metaschedule.search.programs import TraceSource

if TYPE_CHECKING:
    from tlp_tvm.collection.program_source import Prior
    from tlp_tvm.measuring.remote_worker import Fleet


class _MetaSchedule:
    """Stateless."""

    name = "metaschedule"

    def target(self, text: str, *, here: bool) -> Any:
        return target_of(text, here=here)

    def cores(self, target: Any) -> int:
        return cores_of(target)

    def platform_name(self, target: Any) -> str:
        """For example "llvm-core-avx2-2c"."""
        kind, *flags = flags_of(target).split()
        words = [value for name, _, value in (flag.partition("=") for flag in flags) if name != "-num-cores"]
        cores = [f"{cores_of(target)}c"] if kind == "llvm" else []
        return re.sub(r"[^\w.]+", "-", "-".join([kind, *words, *cores]))

    def plan(
        self,
        networks: Sequence[str],
        target: Any,
        tell: Callable[[str], None],
        split_for: Any,
    ) -> list[PlannedTask]:
        return list(plan_tasks(networks, target, tell))

    def split_for(self, noted: str | None, files: Sequence[Path]) -> Any:
        return None

    def source(self, task: PlannedTask, seed: int, prior: Prior | None = None) -> TraceSource:
        return TraceSource(task, seed, prior)

    def pool(
        self, how: MeasureSettings, output: IO[Any], check: Callable[[], None], fleet: Fleet | None
    ) -> TracePool:
        if fleet is not None:
            raise CollectionError(
                "--tracker: expected a collection of ansor, found one of metaschedule, whose programs are "
                "measured on this machine alone; leave it out"
            )
        return TracePool(how, output, check)

    def record(self, task: PlannedTask, program: Any, outcome: Outcome, compiled_s: float) -> str:
        """A line of MetaSchedule's database, whose workload is line `task.workload` of its table."""
        costs = [FAILED_COST] if outcome.error else list(outcome.costs)
        arguments = json.dumps(arguments_of(program.schedule.mod))
        return (
            f"[{task.workload}, [{program.trace}, {json.dumps(costs)}, {program.task.target}, {arguments}]]"
        )

    def tvm_version(self) -> str:
        return tvm_info().version


FRAMEWORK = _MetaSchedule()
