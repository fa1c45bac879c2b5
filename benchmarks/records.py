"""How fast are measure records read, and in how little memory?

Set-up: the lines of datasets/epyc, repeated to --megabytes of plain text, in one file. Rates of
  - parse: text in memory to records (`_core.parse_block`);
  - file to embedding: `extract_records`, which keeps records and embeddings of the whole file;
  - streamed: `iter_records`, each batch encoded into one reused array;
  - Python: `json.loads` and a NumPy encoder, without the native reader;
  - simdjson: two bare passes over the same bytes (simdjson_pass.cc), nothing kept; needs Debian's
    libsimdjson-dev.
Each runs on one thread and on two, in turn, best of --rounds. CPU seconds add up all threads: if they agree
and the clock does not, other work on the machine kept the second thread waiting.
Checked before timing: native and Python embeddings of the first thousand records are equal in every number.
Takeaway: the ratios at the end. `--memory GB` streams a log of that size and prints the peak memory.

    python benchmarks/records.py [--megabytes 64] [--rounds 9] [--layout paper-cpu] [--memory 2]
"""

from __future__ import annotations

import argparse
import functools
import gzip
import itertools
import json
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from tlp_tvm import _core
from tlp_tvm.ansor.reading.records import iter_records
from tlp_tvm.bench.python_route import PythonEncoder
from tlp_tvm.bench.timing import costs_of, machine, peak_memory
from tlp_tvm.embedding import Embedding
from tlp_tvm.features import extract_records
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.records.record_files import record_files

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "datasets" / "epyc"


def lines() -> Iterator[bytes]:
    """The lines of the dataset, repeated endlessly."""
    for file in itertools.cycle(record_files(DATA)):
        with gzip.open(file) as stream:
            yield from stream


def write_log(path: Path, size: int) -> int:
    """Write `size` bytes of records; returns their number."""
    count = written = 0
    with path.open("wb") as file:
        for line in lines():
            file.write(line)
            count += 1
            written += len(line)
            if written >= size:
                return count
    raise AssertionError("the lines never end")


def python_reader(path: Path, layout: FeatureLayout) -> Embedding:
    """`json.loads` and a NumPy encoder of a flat layout."""
    encoder = PythonEncoder(layout)
    rows: list[Embedding] = []
    latencies: list[float] = []
    with path.open("rb") as file:
        for line in file:
            record = json.loads(line)
            latencies.append(float(np.mean(record["r"][0])))
            rows.append(encoder.encode(record["i"][1][1]))
    return np.stack(rows)


def stream(path: Path, layout: FeatureLayout, out: Embedding, threads: int) -> int:
    """Embed a log batch by batch into one array; returns the number of records."""
    count = 0
    for batch in iter_records(path, batch_size=len(out), threads=threads):
        batch.encode(layout, threads=threads, out=out)
        count += len(batch)
    return count


def streaming_array(layout: FeatureLayout) -> Embedding:
    """An array for a batch of records."""
    return np.zeros((8192, layout.length, layout.width), np.float32)


def simdjson_rates(path: Path, folder: Path) -> dict[str, float] | None:
    """Bytes per second of simdjson's passes; None, and a line that says why, if it is not installed."""
    program = folder / "simdjson_pass"
    command = [
        "g++",
        "-O3",
        "-std=c++17",
        str(Path(__file__).with_name("simdjson_pass.cc")),
        "-o",
        str(program),
        "-lsimdjson",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        print("simdjson: not measured, its library is missing (Debian: apt-get install libsimdjson-dev)")
        return None
    rates: dict[str, float] = json.loads(subprocess.check_output([str(program), str(path), "5"]))
    return rates


def speed(megabytes: int, rounds: int, layout_name: str) -> None:
    """Print the rates and their ratios."""
    layout, flat = FeatureLayout.preset(layout_name), FeatureLayout.preset("paper-cpu")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "log.json"
        count = write_log(log, megabytes << 20)
        text = log.read_bytes()
        sample = folder / "sample.json"
        sample.write_bytes(b"".join(text.splitlines(keepends=True)[:1000]))
        sample_size = sample.stat().st_size
        expected = python_reader(sample, flat)
        assert np.array_equal(extract_records(sample, flat).features, expected), "the two readers differ"
        out = streaming_array(layout)
        costs = costs_of(
            {
                "Python, file to embedding": lambda: python_reader(sample, flat),
                **{
                    f"{what}, {threads} thread{'s' * (threads > 1)}": functools.partial(work, threads)
                    for what, work in {
                        "parse": lambda threads: _core.parse_block(text, False, threads),
                        "file to embedding": lambda threads: extract_records(log, layout, threads=threads),
                        "streamed": lambda threads: stream(log, layout, out, threads),
                    }.items()
                    for threads in (1, 2)
                },
            },
            rounds=rounds,
        )
        passes = simdjson_rates(log, folder)

    print(f"{count:,} records, {len(text) / 1e6:,.0f} MB, layout {layout.name}; best of {rounds} rounds")
    print(f"  {'':<28} {'MB/s':>9} {'records/s':>12} {'CPU s':>7}")
    rates = {}
    for label, cost in costs.items():
        size = sample_size if label.startswith("Python") else len(text)
        rates[label] = size / cost.seconds
        records = rates[label] / len(text) * count
        print(f"  {label:<28} {rates[label] / 1e6:9,.1f} {records:12,.0f} {cost.cpu_seconds:7.3f}")
    for label, rate in (passes or {}).items():
        print(f"  simdjson, {label:<18} {rate / 1e6:9,.1f} {rate / len(text) * count:12,.0f}")
    print("ratios")
    python = rates["Python, file to embedding"]
    for what in ("file to embedding", "streamed"):
        print(f"  native / Python, {what}, 1 thread: {rates[f'{what}, 1 thread'] / python:.1f}x")
    for what in ("parse", "file to embedding", "streamed"):
        one, two = f"{what}, 1 thread", f"{what}, 2 threads"
        more = costs[two].cpu_seconds / costs[one].cpu_seconds
        print(f"  2 threads / 1 thread, {what}: {rates[two] / rates[one]:.2f}x (CPU seconds {more:.2f}x)")
    for label, rate in (passes or {}).items():
        print(f"  simdjson's {label} / native parse, 1 thread: {rate / rates['parse, 1 thread']:.2f}x")


def memory(gigabytes: float, layout_name: str) -> None:
    """Stream a large log in its own process and print the peak memory."""
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "log.json"
        if shutil.disk_usage(name).free < gigabytes * 2e9:
            sys.exit(f"{name}: expected {gigabytes * 2:.0f} GB of free disk, found less")
        count = write_log(log, int(gigabytes * 1e9))
        for what, embeds in (("records alone", False), (f"embedded in the layout {layout_name}", True)):
            command = [sys.executable, __file__, "--read", str(log), "--layout", layout_name]
            command += ["--embed"] * embeds
            read, before, peak = map(int, subprocess.check_output(command, text=True).split())
            assert read == count, f"{read} records read of {count}"
            print(f"{gigabytes:g} GB, {count:,} records, {what}: peak {peak / 1024:.0f} MB")
            print(f"  of which {before / 1024:.0f} MB before reading (Python, NumPy)")


def read_and_weigh(log: Path, layout: FeatureLayout | None) -> None:
    """The child of `memory`: number of records, and peak memory in KiB before and after reading."""
    before = peak_memory()
    if layout is None:
        count = sum(len(batch) for batch in iter_records(log))
    else:
        count = stream(log, layout, streaming_array(layout), 0)
    print(count, before, peak_memory())


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=64, help="size of the log to time; 0 for none")
    parser.add_argument("--rounds", type=int, default=9, help="how often each piece of work is timed")
    parser.add_argument("--layout", default="paper-cpu", help="layout of the native embeddings")
    parser.add_argument("--memory", type=float, default=0, metavar="GB", help="also read a log of this size")
    parser.add_argument("--read", type=Path, help=argparse.SUPPRESS)
    parser.add_argument("--embed", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.read:
        read_and_weigh(options.read, FeatureLayout.preset(options.layout) if options.embed else None)
        return
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    if options.megabytes:
        speed(options.megabytes, options.rounds, options.layout)
    if options.memory:
        memory(options.memory, options.layout)


if __name__ == "__main__":
    main()
