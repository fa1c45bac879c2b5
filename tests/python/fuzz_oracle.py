"""Compares the native reader with Python's json on millions of mutated lines: `make fuzz`.

    python tests/python/fuzz_oracle.py FUZZ_RECORDS [--lines 1000000] [--seed 1] [CORPUS_FILE...]

FUZZ_RECORDS is the program built from tests/cpp/fuzz_records.cc, with sanitizers or without. A line that the
native reader accepts must be the same record to `reference.steps`, and one that it refuses none there.
Progress and the result go to standard output; the exit code is 1 at the first disagreement.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time

from reference import steps as reference


def oracle(line: bytes) -> reference.Record | None:
    try:
        return reference.parse(line)
    except reference.RefusedError:
        return None


def disagreement(verdict: bytes, line: bytes) -> str:
    """What is wrong with the native reader's verdict on a line; nothing if nothing is."""
    if verdict.startswith(b"="):
        return "" if not line.strip(b" \t\r") else "taken for a blank line"
    expected = oracle(line)
    if verdict.startswith(b"-"):
        return "" if expected is None else f"refused ({verdict[1:].decode()}), but it is a record"
    if expected is None:
        return "accepted, but it is no record"
    return "" if reference.parse(verdict[1:]) == expected else "read as another record"


def main() -> int:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("corpus", nargs="*")
    parser.add_argument("--lines", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    command = [
        options.program,
        "--lines",
        str(options.lines),
        "--seed",
        str(options.seed),
        "--dump",
        *options.corpus,
    ]
    begin = time.monotonic()
    counts = {b"+": 0, b"-": 0, b"=": 0}
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        assert process.stdout is not None
        while verdict := process.stdout.readline():
            line = process.stdout.readline()[:-1]
            counts[verdict[:1]] += 1
            if what := disagreement(verdict[:-1], line):
                print(f"line {sum(counts.values())} of seed {options.seed}: {what}\n{line!r}\n{verdict!r}")
                process.kill()
                return 1
            if sum(counts.values()) % 1_000_000 == 0:
                print(f"{sum(counts.values()):,} lines, {time.monotonic() - begin:.0f} s", flush=True)
    total = sum(counts.values())
    print(f"{total:,} mutated lines: {counts[b'+']:,} accepted, {counts[b'-']:,} refused, json agrees")
    return process.returncode if total == options.lines else 1


if __name__ == "__main__":
    sys.exit(main())
