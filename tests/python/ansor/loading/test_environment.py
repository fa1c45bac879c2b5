"""The environment that child processes of TVM inherit."""

from __future__ import annotations

import os
import site
from pathlib import Path

import pytest

from tlp_tvm.ansor.loading.environment import keep_offline, lead_children


@pytest.fixture(autouse=True)
def _restore(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PYTHONPATH", "LD_LIBRARY_PATH", "TVM_LIBRARY_PATH", "TOPHUB_LOCATION"):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


def test_the_users_own_folders_stay_in_their_place(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTHONPATH", "/mine")
    monkeypatch.setenv("LD_LIBRARY_PATH", "/own/lib")

    for _ in range(2):
        lead_children(Path("/tvm/python"), Path("/tvm/build/libtvm.so"), [Path("/a"), Path("/b")])

    assert os.environ["PYTHONPATH"] == "/tvm/python:/mine"
    assert os.environ["LD_LIBRARY_PATH"] == "/own/lib:/a:/b"
    assert os.environ["TVM_LIBRARY_PATH"] == "/tvm/build"


def test_site_packages_does_not_go_in_front_of_the_standard_library() -> None:
    lead_children(Path(site.getsitepackages()[0]), Path("/x/libtvm.so"), [])

    assert "PYTHONPATH" not in os.environ
    assert "LD_LIBRARY_PATH" not in os.environ


def test_a_tophub_of_the_users_choice_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    keep_offline()
    assert os.environ["TOPHUB_LOCATION"] == "NONE"

    monkeypatch.setenv("TOPHUB_LOCATION", "AUTO")
    keep_offline()
    assert os.environ["TOPHUB_LOCATION"] == "AUTO"
