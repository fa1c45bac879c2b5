"""How fast are measure records read, and in how little memory?

Set-up: the lines of datasets/epyc, repeated to --megabytes of plain text. Rates in MB/s and records/s of
  - native: `read_records` without a layout's encoding, and with it, one thread and all;
  - Python: `json.loads` and a NumPy encoder, what one writes without the native reader;
  - simdjson: two bare passes over the same bytes (simdjson_pass.cc), nothing kept; needs Debian's
    libsimdjson-dev.
Checked before timing: native and Python embeddings of the first thousand records are equal in every number.
Takeaway: the ratios at the end. `--memory GB` reads a log of that size in batches and prints the peak memory.

    python benchmarks/records.py [--megabytes 64] [--memory 2]
"""

from __future__ import annotations

import argparse
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
from numpy.typing import NDArray

from tlp_tvm import _core
from tlp_tvm.ansor.record_files import record_files
from tlp_tvm.bench.timing import machine, rate_of
from tlp_tvm.features import FeatureLayout, extract_records

ROOT = Path(__file__).resolve().parent.parent
DATA = ROOT / "datasets" / "epyc"


def lines() -> Iterator[bytes]:
    """The lines of the dataset, for ever."""
    for file in itertools.cycle(record_files(DATA)):
        with gzip.open(file) as stream:
            yield from stream


def write_log(path: Path, size: int) -> int:
    """Write `size` bytes of records; returns how many records."""
    count = written = 0
    with path.open("wb") as file:
        for line in lines():
            file.write(line)
            count += 1
            written += len(line)
            if written >= size:
                return count
    raise AssertionError("the lines never end")


def python_reader(path: Path, layout: FeatureLayout, limit: int | None = None) -> NDArray[np.float32]:
    """`json.loads` and a NumPy encoder of a flat layout."""
    spec = layout.to_dict()
    one_hot = {
        kind: [float(i == k) for i in range(len(spec["kinds"]))] for k, kind in enumerate(spec["kinds"])
    }
    tokens = {key.split(".")[0]: names for key, names in spec["tokens"].items()}
    rows: list[NDArray[np.float32]] = []
    latencies: list[float] = []
    with path.open("rb") as file:
        for line in itertools.islice(file, limit):
            record = json.loads(line)
            latencies.append(float(np.mean(record["r"][0])))
            out = np.zeros((layout.length, layout.width), np.float32)
            for row, step in enumerate(record["i"][1][1][: layout.length]):
                values = list(one_hot[step[0]])
                for field in step[1:]:
                    if isinstance(field, list):
                        values += field
                    elif isinstance(field, str):
                        values.append(tokens[step[0]][field])
                    else:
                        values.append(field)
                values = values[: layout.width]
                out[row, : len(values)] = values
            rows.append(out)
    return np.stack(rows)


def simdjson_rates(path: Path, folder: Path) -> dict[str, float] | None:
    """Bytes per second of simdjson's passes; None, with a line why, where it is not installed."""
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


def speed(megabytes: int) -> None:
    """Print the rates and their ratios."""
    layout = FeatureLayout.preset("paper-cpu")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        log = folder / "log.json"
        size = megabytes << 20
        count = write_log(log, size)
        size = log.stat().st_size
        text = log.read_bytes()
        sample = folder / "sample.json"
        sample.write_bytes(b"".join(text.splitlines(keepends=True)[:1000]))
        expected = python_reader(sample, layout)
        assert np.array_equal(extract_records(sample, layout).features, expected), "the two readers differ"

        print(f"{count:,} records, {size / 1e6:,.0f} MB; MB/s (records/s), best repeat")

        def show(label: str, bytes_per_second: float) -> None:
            print(f"  {label:<42} {bytes_per_second / 1e6:9,.1f} ({bytes_per_second / size * count:11,.0f})")

        one = rate_of(lambda: _core.read_block(text, "log", 1, False, 1), size, least=5).best
        two = rate_of(lambda: _core.read_block(text, "log", 1, False, 2), size, least=5).best
        show("native, parse, 1 thread", one)
        show("native, parse, 2 threads", two)
        whole_one = rate_of(lambda: extract_records(log, layout, threads=1), size, least=3).best
        whole_two = rate_of(lambda: extract_records(log, layout, threads=2), size, least=3).best
        show("native, file to embedding, 1 thread", whole_one)
        show("native, file to embedding, 2 threads", whole_two)
        python_size = sample.stat().st_size
        python = rate_of(lambda: python_reader(sample, layout), python_size, least=3).best
        show("Python, file to embedding", python)
        passes = simdjson_rates(log, folder)
        if passes:
            show("simdjson, tree only", passes["dom"])
            show("simdjson, tree and every value", passes["values"])
        print("ratios")
        print(f"  native / Python, file to embedding, 1 thread   {whole_one / python:.1f}x")
        print(f"  2 threads / 1 thread, parse                    {two / one:.2f}x")
        print(f"  2 threads / 1 thread, file to embedding        {whole_two / whole_one:.2f}x")
        if passes:
            print(f"  simdjson's tree / native parse, 1 thread       {passes['dom'] / one:.2f}x")
            print(f"  simdjson's tree and values / native parse      {passes['values'] / one:.2f}x")


def memory(gigabytes: float) -> None:
    """Read a large log in batches, in a process of its own, and print the peak memory."""
    with tempfile.TemporaryDirectory() as name:
        log = Path(name) / "log.json"
        if shutil.disk_usage(name).free < gigabytes * 2e9:
            sys.exit(f"{name}: expected {gigabytes * 2:.0f} GB of free disk, found less")
        count = write_log(log, int(gigabytes * 1e9))
        code = (
            "import resource, sys; sys.path.insert(0, sys.argv[2]); import records as r;"
            "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss;"
            "n = sum(len(b) for b in r.iter_records(sys.argv[1]));"
            "print(n, before, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
        )
        done = subprocess.check_output(
            [sys.executable, "-c", code, str(log), str(Path(__file__).parent)], text=True
        )
        read, before, peak = map(int, done.split())
        assert read == count, f"{read} records read of {count}"
        print(f"{gigabytes:g} GB, {count:,} records: peak {peak / 1024:.0f} MB")
        print(f"  of which {before / 1024:.0f} MB before reading (Python, NumPy)")


def main() -> None:
    """Parse the command line and run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--megabytes", type=int, default=64, help="size of the log whose reading is timed")
    parser.add_argument("--memory", type=float, default=0, metavar="GB", help="also read a log of this size")
    options = parser.parse_args()
    print(", ".join(f"{key} {value}" for key, value in machine().items()))
    speed(options.megabytes)
    if options.memory:
        memory(options.memory)


if __name__ == "__main__":
    main()
