"""A coverage-guided fuzzer (atheris, libFuzzer) of the record reader, against Python's json.

    python tests/fuzz/fuzz_records.py -runs=20000 tests/fuzz/corpus

Python's own reader of records (`reference.steps`) is instrumented: inputs that take a new branch there are
kept, as the cases that a record can be in. The native reader must come to the same record, or refuse too.
`tests/fuzz/corpus` holds what earlier runs found worth keeping; any option of libFuzzer works.
"""

from __future__ import annotations

import sys
from pathlib import Path

import atheris

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "python"))

with atheris.instrument_imports(include=["reference.steps", "json.decoder", "json.scanner"]):
    from reference import steps as reference

from tlp_tvm import _core


def native(line: bytes) -> tuple[object, ...] | None:
    """What the native reader makes of a line; None if it refuses."""
    block = _core.read_block(line + b"\n", "fuzz", 1, True, 1)
    if len(block) == 0:
        return None
    columns = _core.columns_of([block], 1)
    task = columns["tasks"][0]
    costs, error = columns["cost_values"].tolist(), int(columns["errors"][0])
    return (block.steps(0), costs, error, task[0], task[1], task[2])


def test_one_input(data: bytes) -> None:
    """One line of a log."""
    line = data.replace(b"\n", b" ")
    if not line.strip(b" \t\r"):
        return
    found = native(line)
    try:
        record = reference.parse(line)
    except reference.RefusedError:
        expected = None
    else:
        expected = (
            record.steps,
            record.costs,
            record.error,
            record.workload_key,
            record.target,
            record.hardware,
        )
    if found != expected:
        raise AssertionError(f"native: {found!r}; json: {expected!r}")


def main() -> None:
    """Hand over to libFuzzer."""
    atheris.Setup(sys.argv, test_one_input)
    atheris.Fuzz()


if __name__ == "__main__":
    main()
