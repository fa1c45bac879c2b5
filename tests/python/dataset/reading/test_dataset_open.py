"""A built dataset is opened whole, or refused with a sentence that says what is wrong with it."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from programs import LAYOUT, write_dataset
from tlp_tvm.dataset import open_dataset
from tlp_tvm.dataset.building.build import build_dataset
from tlp_tvm.dataset.reading import manifest
from tlp_tvm.dataset.reading.load_measured import load_measured
from tlp_tvm.dataset.reading.shards import SCHEMA, ShardReader
from tlp_tvm.errors import DatasetError, RecordError

SHARD = "programs-00000.arrow"


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("dataset")
    build_dataset([write_dataset(folder / "source")], folder / "built")
    return folder / "built"


@pytest.fixture
def copy(built: Path, tmp_path: Path) -> Path:
    shutil.copytree(built, tmp_path / "copy")
    return tmp_path / "copy"


def refusal(folder: Path, use: Callable[[Any], object] = lambda dataset: dataset) -> str:
    with pytest.raises(DatasetError) as error:
        use(open_dataset(folder))
    return str(error.value).removeprefix(f"{folder}/")


def rewritten(folder: Path, *, without: str = "", **members: Any) -> None:
    """Change members of the manifest, and its digest with them."""
    path = folder / "manifest.json"
    told = json.loads(path.read_text()) | members
    body = manifest._text({key: value for key, value in told.items() if key not in ("digest", without)})
    path.write_bytes(manifest._HEAD.format(manifest._digest(body)).encode() + body)


def everything(dataset: Any) -> None:
    for batch in dataset.batches():
        batch.records()


def test_a_whole_dataset_opens(built: Path) -> None:
    dataset = open_dataset(built)
    seen: list[int] = []
    dataset.verify(seen.append)
    assert sum(seen) == sum(shard.bytes for shard in dataset.manifest.shards)
    assert len(dataset) == 6 * 18


def test_shards_are_plain_arrow(built: Path) -> None:
    table = pa.ipc.open_file(pa.memory_map(str(built / SHARD))).read_all()
    assert table.schema == SCHEMA
    assert json.loads(table.column("steps")[0].as_py())[0][0] == "SP"


def test_no_dataset(tmp_path: Path) -> None:
    assert "expected a dataset that `tlp-tvm dataset build` wrote, found no manifest.json" in refusal(
        tmp_path
    )


def test_a_damaged_manifest(copy: Path) -> None:
    path = copy / "manifest.json"
    text = path.read_text()
    path.write_text(text[:-20])
    assert refusal(copy).startswith("manifest.json: expected JSON, found ")
    path.write_text(text.replace('"split": "test"', '"split": "train"', 1))
    message = refusal(copy)
    assert message.startswith("manifest.json: expected the digest ")
    assert message.endswith("it was changed or damaged; build the dataset again")
    path.write_text('{"format": "something else"}')
    assert refusal(copy).startswith('manifest.json: expected the format "tlp-tvm dataset", found ')
    path.write_text("[]")
    assert refusal(copy).endswith("found 'list'")


def test_another_version(copy: Path) -> None:
    rewritten(copy, version=2)
    assert refusal(copy).startswith("manifest.json: expected version 1, found 2; build the dataset again")


@pytest.mark.parametrize("member", ["tasks", "shards", "platforms", "split", "skipped", "framework"])
def test_a_member_is_missing(copy: Path, member: str) -> None:
    rewritten(copy, without=member)
    assert refusal(copy).startswith(f"manifest.json: expected the members of version 1, found '{member}'")


def test_a_missing_shard(copy: Path) -> None:
    size = (copy / SHARD).stat().st_size
    (copy / SHARD).unlink()
    assert refusal(copy).startswith(f"{SHARD}: expected a shard of {size:,} bytes, found no file; build")


def test_a_truncated_shard(copy: Path) -> None:
    data = (copy / SHARD).read_bytes()
    (copy / SHARD).write_bytes(data[:-1])
    assert f"expected a shard of {len(data):,} bytes, found {len(data) - 1:,}" in refusal(copy)
    with pytest.raises(DatasetError, match="expected a shard of"):
        load_measured(copy, LAYOUT)


@pytest.mark.parametrize("use", [everything, lambda dataset: dataset.verify()], ids=["read", "verify"])
def test_every_flipped_byte_is_found(copy: Path, use: Callable[[Any], object]) -> None:
    data = bytearray((copy / SHARD).read_bytes())
    for at in range(0, len(data), 211):
        data[at] ^= 0x41
        (copy / SHARD).write_bytes(data)
        message = refusal(copy, use)
        assert message.startswith(f"{SHARD}: expected SHA-256 ")
        assert message.endswith("it was changed or damaged; build the dataset again")
        data[at] ^= 0x41


def test_a_shard_that_is_damaged_whatever_its_checksum(copy: Path) -> None:
    """Whatever Arrow says then becomes a DatasetError, or the record reader's."""
    data = bytearray((copy / SHARD).read_bytes())
    ends = {"read": 0, "refused": 0}
    for at in range(0, len(data), 13):
        data[at] ^= 0x81
        (copy / SHARD).write_bytes(data)
        try:
            for batch in ShardReader(copy / SHARD).batches():
                batch.records()
            ends["read"] += 1
        except (DatasetError, RecordError):
            ends["refused"] += 1
        data[at] ^= 0x81
    assert ends["refused"] > ends["read"]


def test_a_file_that_is_no_shard(copy: Path) -> None:
    size = (copy / SHARD).stat().st_size
    (copy / SHARD).write_bytes(b"x" * size)
    with pytest.raises(
        DatasetError, match="arrow: expected a whole shard, found .*; build the dataset again"
    ):
        ShardReader(copy / SHARD)
    other = pa.table({"a": [1]})
    with pa.ipc.new_file(str(copy / SHARD), other.schema) as writer:
        writer.write_table(other)
    with pytest.raises(DatasetError, match=r"expected the columns of a shard, found \['a'\]"):
        ShardReader(copy / SHARD)


def test_a_manifest_that_does_not_fit_its_shards(copy: Path) -> None:
    told = json.loads((copy / "manifest.json").read_text())
    rewritten(copy, tasks=told["tasks"][:2])
    assert "expected tasks that manifest.json lists, found others" in refusal(copy, everything)
    shard = told["shards"][0]
    rewritten(copy, tasks=told["tasks"], shards=[shard | {"programs": shard["programs"] + 1}])
    assert refusal(copy, everything).startswith(f"{SHARD}: expected 109 programs, found 108;")


def test_a_platform_that_is_not_there(built: Path) -> None:
    with pytest.raises(DatasetError, match='expected one of the platforms alpha, beta, found "gamma"'):
        load_measured(built, LAYOUT, platforms=["gamma"])


@pytest.mark.parametrize("place", ["../shard.arrow", "/tmp/shard.arrow"])
def test_a_manifest_that_leads_elsewhere(copy: Path, place: str) -> None:
    shards = json.loads((copy / "manifest.json").read_text())["shards"]
    rewritten(copy, shards=[{**shards[0], "file": place}, *shards[1:]])
    assert refusal(copy) == (
        f"manifest.json: expected shards beside it, found {place}; do not open this dataset, or build it "
        "again"
    )
