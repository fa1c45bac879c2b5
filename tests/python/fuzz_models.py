"""Damages model files and layouts in many ways: nothing may crash, and nothing may score otherwise unsaid.

    python tests/python/fuzz_models.py [--cases 20000] [--seed 1] [--first 0] [--core FILE]

A case is a checkpoint's config.json or model.safetensors, the description inside an exported file, or a
layout, mutated. It is refused in one sentence, or read: then a model scores natively as it does through torch
by the same settings, and a layout encodes as plain Python does (`reference.layouts`). --core is the extension
`_core` to test in the place of the installed one, such as one that `make sanitize` built; --first repeats a
run from that case on. The exit code is 1 at the first case that goes wrong.
"""

from __future__ import annotations

import argparse
import importlib.util
import sys
import time
from collections import Counter


def use_core(file: str) -> None:
    """Let this file be `tlp_tvm._core`."""
    spec = importlib.util.spec_from_file_location("tlp_tvm._core", file)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules["tlp_tvm._core"] = module
    spec.loader.exec_module(module)


def main() -> int:
    """Run the cases; returns the exit code."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--cases", type=int, default=20_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--core")
    options = parser.parse_args()
    if options.core:
        use_core(options.core)
    from mutated_models import Cases  # after `use_core`

    begin = time.monotonic()
    counts: Counter[str] = Counter()
    with Cases() as cases:
        for number in range(options.first, options.cases):
            try:
                counts[cases.run(f"{options.seed}/{number}")] += 1
            except Exception as error:
                print(f"case {number} of seed {options.seed}: {cases.case!r}", flush=True)
                raise error
            if (number + 1) % 10_000 == 0:
                print(f"{number + 1:,} cases, {time.monotonic() - begin:.0f} s", flush=True)
    total = ", ".join(f"{count:,} {what}" for what, count in sorted(counts.items()))
    took = f"{time.monotonic() - begin:.0f} s"
    print(f"{counts.total():,} mutations in {took}: {total}; no crash, no silent change")
    return 0


if __name__ == "__main__":
    sys.exit(main())
