"""What `tlp_tvm.metaschedule` lists is there; its names are loaded late."""

from __future__ import annotations

import pytest

from tlp_tvm import metaschedule


@pytest.mark.parametrize("name", metaschedule.__all__)
def test_a_public_name_is_found(name: str) -> None:
    assert hasattr(metaschedule, name)
