"""What `tlp_tvm.metaschedule` lists is there; its names are loaded late."""

from __future__ import annotations

import pytest

from tlp_tvm import metaschedule
from tlp_tvm.record_batch import RecordBatch


@pytest.mark.parametrize("name", metaschedule.__all__)
def test_a_public_name_is_found(name: str) -> None:
    assert hasattr(metaschedule, name)


def test_an_old_name_works_and_names_the_new_one() -> None:
    with pytest.warns(DeprecationWarning, match=r"TraceRecords is now tlp_tvm\.record_batch\.RecordBatch"):
        old = metaschedule.TraceRecords
    assert old is RecordBatch
