"""What the tests of MetaSchedule share. They run in its environment: `make test-metaschedule`."""

from __future__ import annotations

import functools
from typing import Any

import torch

from tlp_tvm.metaschedule.networks.workloads import TARGETS, workload
from tlp_tvm.metaschedule.search.sampling import sample_traces

torch.set_num_threads(1)  # more only wait for each other in networks this small


@functools.cache
def programs(name: str, target: str, count: int = 24) -> tuple[Any, ...]:
    """Sampled schedules of an operator."""
    return tuple(sample_traces(workload(name), TARGETS[target], count))
