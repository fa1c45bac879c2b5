"""What a tuned network is timed beside, and what each needs; nothing of a peer is imported here."""

from __future__ import annotations

import importlib.util
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from tlp_tvm.errors import BesideError

ONNX = (".onnx",)
TORCH = (".pt", ".pth", ".torchscript", ".pt2")
"""Ends of the files that torch wrote."""

OURS = "tlp-tvm"
"""The tuned network among its peers."""


@dataclass(frozen=True)
class Peer:
    """Something else that runs networks.

    Attributes:
        package: whose version is shown.
        files: ends of the files that it runs.
    """

    package: str
    files: tuple[str, ...]


PEERS = {
    "onnxruntime": Peer("onnxruntime", ONNX + TORCH),
    "openvino": Peer("openvino", ONNX + TORCH),
    "torch": Peer("torch", TORCH),
    "torch-compile": Peer("torch", TORCH),
}
"""By the name that users type. `onnxruntime` and `openvino` run what torch wrote as an ONNX copy of it."""


def peers_named(names: str) -> tuple[str, ...]:
    """Peers of a list with commas, each once.

    Raises:
        BesideError: there is no such peer, or it is not installed.
    """
    peers = tuple(dict.fromkeys(name.strip() for name in names.split(",")))
    for name in peers:
        if name not in PEERS:
            raise BesideError(f'`beside`: expected some of {", ".join(PEERS)}, found "{name}"')
        if importlib.util.find_spec(PEERS[name].package) is None:
            raise BesideError(
                f"`beside` {name}: expected the package {PEERS[name].package}, found none; "
                "install tlp-tvm[peers]"
            )
    return peers


def file_for_peers(network: str, peers: Sequence[str]) -> Path:
    """The file of a network, if a peer runs it.

    Args:
        network: as it is tuned: a built-in name, or the path of a file.
        peers: some of `PEERS`.

    Raises:
        BesideError: it is no file, or no peer of these runs it.
    """
    path = Path(network)
    if path.suffix.lower() not in ONNX + TORCH:
        raise BesideError(
            f"`beside`: expected a network in a file, found the built-in {network}, which no peer can read; "
            "export a network, and tune the file"
        )
    if all(refusal(name, path) for name in peers):
        raise BesideError(f"`beside`: {refusal(peers[0], path)}")
    return path


def refusal(name: str, network: Path) -> str:
    """Why a peer does not run a file; empty if it may."""
    if network.suffix.lower() in PEERS[name].files:
        return ""
    return (
        f"{network}: expected a file that torch wrote for {name}, found {network.suffix}; "
        "tune the TorchScript file of the same network"
    )
