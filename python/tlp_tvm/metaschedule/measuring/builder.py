"""TVM's builder of programs, with workers that are ready in time for the first program."""

from __future__ import annotations

from typing import Any

from tlp_tvm.metaschedule.loading.intrinsics import import_intrinsics
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.polynomials import use_polynomials


def local_builder(**options: Any) -> Any:
    """`ms.builder.LocalBuilder` whose worker processes import TVM's intrinsics quickly, and compile as here.

    With the stock one, a program is killed after 30 seconds, which importing them can take alone.

    Args:
        options: of `LocalBuilder`.
    """
    load_tvm()
    from tvm.s_tir.meta_schedule.builder import LocalBuilder

    return LocalBuilder(initializer=_ready, **options)


def _ready() -> None:
    import_intrinsics()
    use_polynomials()
