"""Times a tuned network and its peers in turns, each in a process that sleeps while another runs."""

from __future__ import annotations

import contextlib
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from importlib import metadata
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.typing import NDArray

from tlp_tvm._core import __version__
from tlp_tvm.beside.beside_result import AGREEMENT, BesideResult, Timed, write_beside
from tlp_tvm.beside.counted_turns import Stretch, Turn, anywhere, fewest, in_one_place, steady
from tlp_tvm.beside.peer_kinds import OURS, PEERS, file_for_peers, refusal
from tlp_tvm.beside.peer_processes import PeerProcess, peer_process
from tlp_tvm.beside.runtimes import Job
from tlp_tvm.errors import BesideError
from tlp_tvm.framework import framework_named
from tlp_tvm.machine.cpu import this_cpu
from tlp_tvm.tuning.network.tuned_library import read_description
from tlp_tvm.tuning.network.turns import difference_of
from tlp_tvm.tuning.tune_settings import TuneResult, TuneSettings

TURNS = 7
SECONDS = 1.0
"""Of a turn of each."""

MOST_TURNS = 3
"""Times the wanted ones, where turns are left out, or differ."""

LEAST_TURNS = 3
"""Of each with the cores in one place; where there are fewer, turns count wherever the cores were."""

PAUSE = 0.25
"""Seconds before a turn, in which the threads of the one before fall asleep."""

_CPU = "llvm"

LOG = "beside.log"
"""In the folder of the tuning: what the peers print."""


def time_tuned(
    settings: TuneSettings, result: TuneResult, peers: Sequence[str], tell: Callable[[str], None]
) -> BesideResult:
    """Time what a tuning made beside its peers; with the threads that its target names.

    Args:
        settings: of the tuning.
        result: of it.
        peers: some of `peer_kinds.PEERS`.
        tell: receives a line before each step.

    Raises:
        BesideError: the network is no file, or does not run on this machine's CPU.
        TuningError: there is no tuned library.
    """
    framework = framework_named(settings.framework)
    if result.end_to_end is None or result.library is None or not result.target.startswith(_CPU):
        raise BesideError(
            f"`beside`: expected a network tuned for this machine's CPU, found one for {result.target}; "
            "tune it for this CPU"
        )
    threads = settings.measure.threads or framework.cores(framework.target(result.target, here=True))
    return time_beside(
        settings.out, settings.network, peers, threads=threads, programs=result.trials, tell=tell
    )


def time_beside(
    folder: Path,
    network: str,
    peers: Sequence[str],
    *,
    threads: int,
    programs: int,
    tell: Callable[[str], None] = lambda step: None,
    turns: int = 0,
    seconds: float = 0.0,
) -> BesideResult:
    """Time them, and write beside.json.

    Args:
        folder: of a tuning that ended.
        network: the file that was tuned.
        peers: some of `peer_kinds.PEERS`.
        threads: of each.
        programs: measured by the tuning.
        tell: receives a line before each step.
        turns: of each; 0 for `TURNS`.
        seconds: of a turn; 0 for `SECONDS`.

    Returns:
        What each took. A peer that cannot run the network has the reason instead.

    Raises:
        BesideError: the network is no file, or its tuned library does not run.
        TuningError: there is no tuned library.
    """
    path = file_for_peers(network, peers)
    name = str(read_description(folder)[0]["network"])
    with contextlib.ExitStack() as stack:
        scratch = Path(stack.enter_context(tempfile.TemporaryDirectory(dir=folder, prefix=".beside-")))
        log = stack.enter_context((folder / LOG).open("ab"))
        running: dict[str, PeerProcess] = {}
        timed: dict[str, Timed] = {}
        for peer in (OURS, *peers):
            tell(f"loading the network with {peer}")
            job = Job(peer, path, folder, scratch, threads)
            timed[peer] = _load(job, stack, log, running)
            _refuse_problem(folder, timed[OURS])
        tell(f"timing the network in turns with {', '.join(peers)}")
        left_out = _take_turns(running, timed, turns or TURNS, seconds or SECONDS)
        if left_out:
            tell(f"left out {left_out} turns: the machine was slowed down, or its cores were elsewhere")
    _refuse_problem(folder, timed[OURS])
    result = BesideResult(
        network=name,
        cpu=this_cpu().model,
        threads=threads,
        programs=programs,
        left_out=left_out,
        ours=timed[OURS],
        peers=tuple(timed[peer] for peer in peers),
    )
    write_beside(folder, result)
    return result


def _load(job: Job, stack: contextlib.ExitStack, log: IO[Any], running: dict[str, PeerProcess]) -> Timed:
    """Start a process, and compare its outputs with ours; what does not run is not in `running`."""
    peer = job.peer
    known = Timed(peer, __version__ if peer == OURS else metadata.version(PEERS[peer].package))
    if peer != OURS and (reason := refusal(peer, job.network)):
        return replace(known, problem=reason)
    try:
        running[peer] = stack.enter_context(peer_process(job, log))
    except BesideError as error:
        return replace(known, problem=_does_not_run(job, error))
    if peer == OURS:
        return known
    return _compared(known, _outputs(job.scratch, OURS), _outputs(job.scratch, peer))


def _refuse_problem(folder: Path, ours: Timed) -> None:
    if ours.problem:
        raise BesideError(f"{folder}: expected a tuned network that runs, found: {ours.problem}")


def _does_not_run(job: Job, error: BaseException) -> str:
    if job.peer == OURS:
        return str(error)
    return f"{job.network}: expected a network that {job.peer} can run, found: {error}; leave it out"


def _outputs(scratch: Path, peer: str) -> list[NDArray[Any]]:
    with np.load(scratch / f"{peer}.npz") as arrays:
        return [arrays[name] for name in arrays.files]


def _compared(peer: Timed, ours: list[NDArray[Any]], its: list[NDArray[Any]]) -> Timed:
    shapes, found = [each.shape for each in ours], [each.shape for each in its]
    if shapes != found:
        return replace(
            peer, problem=f"{peer.name}: expected outputs of shapes {shapes}, found {found}; do not compare"
        )
    difference = difference_of(its, ours)
    sound = difference <= AGREEMENT  # not true of NaN
    problem = (
        f"{peer.name}: expected outputs within {AGREEMENT:g} of the largest value, found a difference of "
        f"{difference:.2g}; do not compare"
    )
    return replace(peer, difference=difference, problem="" if sound else problem)


def _take_turns(running: dict[str, PeerProcess], timed: dict[str, Timed], turns: int, seconds: float) -> int:
    """Time all in turns, on while too few count, or those that do differ.

    Args:
        running: processes by name; one that ends is taken out.
        timed: receives what each took.
        turns: wanted, at least.
        seconds: of a turn of each.

    Returns:
        How many turns were left out, of the library of which most were.
    """
    taken: list[dict[str, list[Stretch]]] = []
    kept: dict[str, list[Turn]] = {}
    for _ in range(MOST_TURNS * turns):
        taken.append({})
        for peer, process in list(running.items()):
            time.sleep(PAUSE)
            try:
                taken[-1][peer] = process.time(seconds)
            except BesideError as error:
                del running[peer]
                problem = f"{peer}: expected a peer that runs to the end, found: {error}; leave it out"
                timed[peer] = replace(timed[peer], turns=(), round_trips=(), problem=problem)
        if not running:
            return 0
        kept = in_one_place(taken, list(running))
        if fewest(kept) >= turns and steady(kept, OURS):
            break
    if fewest(kept) < min(turns, LEAST_TURNS):
        kept = anywhere(taken, list(running))
    for peer in running:
        timed[peer] = replace(
            timed[peer],
            turns=tuple(turn.seconds for turn in kept[peer]),
            round_trips=tuple(turn.round_trip for turn in kept[peer]),
        )
    return len(taken) - fewest(kept)
