"""A short run of the coverage-guided fuzzer, from the kept corpus (tests/fuzz)."""

from __future__ import annotations

import resource
import subprocess
import sys
from pathlib import Path

from places import ROOT

FUZZER = ROOT / "tests" / "fuzz" / "fuzz_records.py"


def _fuzz(program: Path, tmp_path: Path) -> subprocess.CompletedProcess[str]:
    fresh = tmp_path / "corpus"  # new inputs go to the first folder; the kept ones stay as they are
    fresh.mkdir()
    # A child's peak memory counts what the process had that it was forked from.
    peak_mb = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    command = [
        sys.executable,
        str(program),
        "-runs=30000",
        "-seed=1",
        f"-rss_limit_mb={peak_mb + 2048}",
        str(fresh),
        str(FUZZER.parent / "corpus"),
    ]
    return subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=False)


def test_native_reader_and_json_agree(tmp_path: Path) -> None:
    done = _fuzz(FUZZER, tmp_path)
    assert done.returncode == 0, done.stdout[-2000:] + done.stderr[-2000:]
    assert "Done 30000 runs" in done.stderr


def test_the_fuzzer_finds_a_planted_fault(tmp_path: Path) -> None:
    """A reader that takes CI for CR is caught within the same budget: the check can fail."""
    source = FUZZER.read_text()
    for right, wrong in (
        ("block.steps(0)", '[["CR", *s[1:]] if s[0] == "CI" else s for s in block.steps(0)]'),
        ("Path(__file__).resolve().parent.parent", f"Path({str(FUZZER.parent.parent)!r})"),
    ):
        assert right in source
        source = source.replace(right, wrong)
    planted = tmp_path / "planted.py"
    planted.write_text(source)
    done = _fuzz(planted, tmp_path)
    assert done.returncode != 0
    assert "AssertionError: native: " in done.stdout
