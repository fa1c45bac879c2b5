"""Devices on other machines."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Fleet:
    """Devices of one kind behind a tracker.

    Attributes:
        host: of the tracker.
        port: of the tracker.
        key: under which the devices registered.
    """

    host: str
    port: int
    key: str

    def __str__(self) -> str:
        return f"{self.host}:{self.port}, key {self.key}"
