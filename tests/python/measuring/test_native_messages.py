"""What TVM's C++ writes to standard error is led elsewhere, or sifted."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from tlp_tvm.measuring.native_messages import (
    STANDARD_ERROR,
    native_messages_to,
    native_messages_without,
)


def test_native_messages_are_led_to_a_file_and_back(
    tmp_path: Path, capfd: pytest.CaptureFixture[str]
) -> None:
    with (tmp_path / "tvm.log").open("ab") as file, native_messages_to(file):
        os.write(STANDARD_ERROR, b"hidden\n")
    os.write(STANDARD_ERROR, b"shown\n")
    assert (tmp_path / "tvm.log").read_text() == "hidden\n"
    assert capfd.readouterr().err == "shown\n"


def test_lines_with_a_remark_are_dropped_and_others_come_late(capfd: pytest.CaptureFixture[str]) -> None:
    def ends_in_an_error() -> None:
        with native_messages_without(b"Scope"):
            os.write(STANDARD_ERROR, b"vm.cc:276: Scope Saving: \nwhat matters\n")
            os.write(STANDARD_ERROR, b"cut off")
            assert capfd.readouterr().err == ""
            raise OSError("the disk is full")

    with pytest.raises(OSError, match="full"):
        ends_in_an_error()
    assert capfd.readouterr().err == "what matters\ncut off"
