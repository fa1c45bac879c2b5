"""TVM's builder of programs, with workers that are ready in time for the first program."""

from __future__ import annotations

from typing import Any

from tlp_tvm.metaschedule.loading.intrinsics import import_intrinsics
from tlp_tvm.metaschedule.loading.locate import load_tvm


def local_builder(**options: Any) -> Any:
    """`ms.builder.LocalBuilder` whose worker processes import TVM's intrinsics quickly.

    With the stock one, a program is killed after 30 seconds, which importing them can take alone.

    Args:
        options: of `LocalBuilder`.
    """
    load_tvm()
    from tvm.s_tir.meta_schedule.builder import LocalBuilder

    return LocalBuilder(initializer=import_intrinsics, **options)
