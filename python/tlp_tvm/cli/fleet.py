"""`tlp-tvm fleet`: TVM's RPC tracker and servers, for measuring on other machines."""

from __future__ import annotations

import os
from typing import Annotated

import typer

from tlp_tvm.cli.parts.common import console, one_sentence_errors
from tlp_tvm.errors import CollectionError
from tlp_tvm.machine.loop_threads import VARIABLE

app = typer.Typer(help="Measure on other devices: one tracker, one server per device.", no_args_is_help=True)


def address_of(tracker: str) -> tuple[str, int]:
    """Host and port of HOST:PORT.

    Raises:
        CollectionError: the text is not HOST:PORT.
    """
    host, _, port = tracker.rpartition(":")
    if not host or not port.isdigit():
        raise CollectionError(f'--tracker "{tracker}": expected HOST:PORT, such as 127.0.0.1:9190')
    return host, int(port)


@app.command()
@one_sentence_errors
def tracker(
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="Port to listen on.")] = 9190,
) -> None:
    """Run the tracker until it is stopped. It has no authentication: use trusted networks only.

    Example: tlp-tvm fleet tracker --host 127.0.0.1 --port 9190
    """
    from tlp_tvm.framework import DEFAULT, framework_named

    try:
        running = framework_named(DEFAULT).tracker(host, port)
    except (OSError, RuntimeError) as error:
        raise CollectionError(
            f"{host}:{port}: expected a free port, found none ({error}); choose another"
        ) from error
    if running.port != port:
        raise CollectionError(f"{host}:{port}: expected a free port, found it taken; choose another --port")
    console.print(f"tracker at {host}:{port}", highlight=False)
    running.proc.join()


@app.command()
@one_sentence_errors
def device(
    tracker: Annotated[str, typer.Option(metavar="HOST:PORT", help="Address of the tracker.")],
    key: Annotated[str, typer.Option(help="Name of this kind of device.")],
    host: Annotated[str, typer.Option(help="Address to listen on.")] = "127.0.0.1",
    port: Annotated[int, typer.Option(help="First port to try.")] = 9090,
    threads: Annotated[
        int, typer.Option(min=0, help="Threads of a measured program; 0 for TVM's choice.")
    ] = 0,
) -> None:
    """Run a device's server until it is stopped. Anyone who reaches the port can run code on it.

    Example: tlp-tvm fleet device --tracker 127.0.0.1:9190 --key my-cpu --threads 2
    """
    from tlp_tvm.framework import DEFAULT, framework_named

    address = address_of(tracker)
    if threads:
        os.environ[VARIABLE] = str(threads)  # the server's sessions inherit it
    server = framework_named(DEFAULT).server(host, port, key, address)
    console.print(f"device at {host}:{server.port} with key {key}", highlight=False)
    server.proc.join()
