"""How fast is a dataset of millions of records built, in how little memory, and how fast does it open?

Set-up: --records records of datasets/epyc, repeated under new shapes, one file per task and platform. The
build runs in its own process. Shards are also written without compression, with lz4 and with zstd; sizes are
those of datasets/epyc itself, as the repeated data packs too well.
Checked before anything is printed: the counts and every checksum.
Takeaway: records/s, peak memory, seconds to open, and the time for TenSet's 52 million records at that rate.

    python benchmarks/dataset_build.py [--records 5000000] [--folder DIR]
"""

from __future__ import annotations

import argparse
import gzip
import json
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import pyarrow as pa

from tlp_tvm.bench.timing import machine, peak_memory, rate_of
from tlp_tvm.dataset import open_dataset
from tlp_tvm.dataset.building.build import build_dataset
from tlp_tvm.dataset.reading.shards import ROWS_A_BATCH, SCHEMA, ShardReader
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.records.record_files import record_files

DATA = Path(__file__).resolve().parent.parent / "datasets" / "epyc"
TENSET_RECORDS = 52_000_000
BYTES_A_RECORD = 900


def write_tree(folder: Path, records: int) -> tuple[int, int]:
    """Write the data under new shapes; returns the number of records and bytes."""
    table = [entry for entry in json.loads((DATA / "tasks.json").read_text()) if entry["measured"]]
    texts = {file: gzip.decompress(Path(file).read_bytes()) for file in record_files(DATA)}
    entries: list[dict[str, Any]] = []
    written = size = copy = 0
    while written < records:
        copy += 1
        for entry in table:
            key = new_shapes(entry["workload_key"], copy)
            entries.append(entry | {"workload_key": key, "task": f"{entry['task']}-{copy}"})
        for file, text in texts.items():
            place = folder / Path(file).relative_to(DATA)
            place.parent.mkdir(parents=True, exist_ok=True)
            head = text[: text.index(b"\n")]
            old = json.dumps(json.loads(head)["i"][0][0]).encode()
            new = json.dumps(new_shapes(json.loads(old), copy)).encode()
            copied = text.replace(old, new)
            place.with_name(f"{place.name.split('.')[0]}-{copy}.json").write_bytes(copied)
            written += text.count(b"\n")
            size += len(copied)
    (folder / "tasks.json").write_text(json.dumps(entries))
    return written, size


def new_shapes(key: str, copy: int) -> str:
    """A workload key at another batch size."""
    name, *shapes = json.loads(key)
    return json.dumps([name, *([shape[0] * 1000 + copy, *shape[1:]] for shape in shapes)])


def build(tree: Path, out: Path) -> None:
    """The child process: build, then print seconds and peak memory."""
    before = peak_memory()
    steps: dict[str, float] = {}
    began = time.perf_counter()

    def progress(at: Any) -> None:
        steps[at.step] = time.perf_counter() - began

    manifest = build_dataset([tree], out, progress=progress)
    took = time.perf_counter() - began
    peak = peak_memory()
    print(
        json.dumps(
            {
                "seconds": took,
                "first_pass": steps["reading"],
                "before_mb": before / 1024,
                "peak_mb": peak / 1024,
                "programs": manifest.programs,
                "measurements": manifest.measurements,
            }
        )
    )


def compare_compression(out: Path, folder: Path) -> None:
    """Print the size of datasets/epyc and the rates of one large shard, packed and not."""
    layout = FeatureLayout.preset("ansor")
    build_dataset([DATA], folder / "epyc")
    real = shard_of(folder / "epyc")
    table = shard_of(out)
    path = folder / "shard.arrow"
    print(f"codecs: size of datasets/epyc; rates of a shard of {len(table):,} programs, best of three")
    for codec in (None, "lz4", "zstd"):
        write(path, real, codec)
        size = path.stat().st_size / len(real)
        written = rate_of(lambda codec=codec: write(path, table, codec), len(table), least=3).best
        unpacked = rate_of(lambda: list(ShardReader(path).batches()), len(table), least=3).best
        encoded = rate_of(
            lambda: [len(batch.records().encode(layout)) for batch in ShardReader(path).batches()],
            len(table),
            least=3,
        ).best
        print(
            f"  {codec or 'none':<5} {size:6.1f} B/program, written {written:10,.0f}/s, "
            f"unpacked {unpacked:10,.0f}/s, unpacked, parsed and embedded {encoded:10,.0f}/s"
        )


def shard_of(dataset: Path) -> pa.Table:
    """The first shard, in memory."""
    file = dataset / open_dataset(dataset).manifest.shards[0].file
    return pa.ipc.open_file(pa.OSFile(str(file))).read_all()


def write(path: Path, table: pa.Table, codec: str | None) -> None:
    """Write a shard."""
    options = pa.ipc.IpcWriteOptions(compression=codec)
    with pa.ipc.new_file(str(path), SCHEMA, options=options) as writer:
        writer.write_table(table, ROWS_A_BATCH)


OPENING = """
import sys, time
began = time.perf_counter()
from tlp_tvm.dataset import open_dataset
import tlp_tvm.dataset.reading.built
imported = time.perf_counter()
count = len(open_dataset(sys.argv[1]))
print(count, imported - began, time.perf_counter() - imported)
"""


def main() -> None:
    """Write the tree, build in a child, open, check, and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--records", type=int, default=5_000_000)
    parser.add_argument("--folder", help="where there is room for the tree (1.2 KB a record)")
    parser.add_argument("--build", nargs=2, metavar=("TREE", "OUT"), help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.build:
        build(Path(options.build[0]), Path(options.build[1]))
        return
    with tempfile.TemporaryDirectory(dir=options.folder) as name:
        folder = Path(name)
        if shutil.disk_usage(folder).free < options.records * BYTES_A_RECORD * 1.5:
            sys.exit(f"{folder}: expected {options.records * BYTES_A_RECORD * 1.5 / 1e9:.0f} GB of free disk")
        records, size = write_tree(folder / "tree", options.records)
        print(", ".join(f"{key} {value}" for key, value in machine().items()))
        out = folder / "built"
        command = [sys.executable, __file__, "--build", str(folder / "tree"), str(out)]
        told = json.loads(subprocess.check_output(command, text=True))
        assert told["measurements"] == records, told
        opening = [sys.executable, "-c", OPENING, str(out)]
        n, imports, opened = subprocess.check_output(opening, text=True).split()
        assert int(n) == told["programs"]
        dataset = open_dataset(out)
        dataset.verify()
        bytes_built = sum(shard.bytes for shard in dataset.manifest.shards)
        rate = records / told["seconds"]
        print(
            f"{records:,} records of {len(dataset):,} programs and {len(dataset.manifest.tasks):,} tasks, "
            f"{size / 1e9:.2f} GB of text in {len(record_files(folder / 'tree')):,} files"
        )
        print(
            f"built in {told['seconds']:.1f} s ({told['first_pass']:.1f} s of it the first pass): "
            f"{rate:,.0f} records/s, {size / told['seconds'] / 1e6:,.0f} MB/s"
        )
        print(f"peak memory {told['peak_mb']:,.0f} MB ({told['before_mb']:,.0f} MB of it before the build)")
        print(
            f"{bytes_built / 1e6:,.0f} MB in {len(dataset.manifest.shards)} shards, manifest "
            f"{(out / 'manifest.json').stat().st_size / 1e6:.1f} MB"
        )
        print(f"opened in {float(opened):.3f} s, after {float(imports):.2f} s of imports")
        print(f"TenSet's {TENSET_RECORDS:,} records at this rate: {TENSET_RECORDS / rate / 60:.0f} minutes")
        compare_compression(out, folder)


if __name__ == "__main__":
    main()
