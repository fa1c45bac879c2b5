"""Embeddings of records: equal to the published extraction, and what the default layout shows."""

from __future__ import annotations

import gzip
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tlp_tvm
from logs import DATASETS, STEPS, WriteLog
from places import DATA
from reference import published
from reference import steps as reference
from tlp_tvm.features import extract_records
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.records.detect import read_records

CUDA_LOG = DATA / "cuda.json"
"""Programs that TVM sampled for `cuda -arch=sm_70`, three an operator; never measured."""

PUBLISHED = {"paper-cpu": published.CPU, "paper-gpu": published.GPU}


def programs_of(path: Path) -> list[list[Any]]:
    data = path.read_bytes()
    lines = (gzip.decompress(data) if path.suffix == ".gz" else data).splitlines()
    return [reference.parse(line).steps for line in lines]


def log_of(programs: list[list[Any]]) -> list[Any]:
    return [{"i": [["k", "llvm"], [[], steps]], "r": [[1], 0, 1, 1]} for steps in programs]


# The published layouts.


@pytest.mark.parametrize("platform", ["epyc-avx512-2c", "epyc-avx2-1c", "epyc-sse42-1c"])
@pytest.mark.parametrize("crop", [True, False])
def test_paper_cpu_equals_the_published_extraction_on_every_measured_program(
    platform: str, crop: bool
) -> None:
    shape = published.CPU.cropped if crop else published.CPU.full
    layout = FeatureLayout.preset("paper-cpu").with_shape(length=shape[0], width=shape[1])
    paths = sorted((DATASETS / "epyc" / platform).rglob("*.json.gz"))
    programs = [program for path in paths for program in programs_of(path)]
    assert len(programs) > 2300

    batch = extract_records(paths, layout)

    assert batch.features is not None
    assert batch.features.dtype == np.float32
    expected = [published.embed(published.CPU, program, shape) for program in programs]
    np.testing.assert_array_equal(batch.features, np.stack(expected))
    assert batch.report is not None
    assert not batch.report.unknown_kinds
    assert not batch.report.unknown_tokens


@pytest.mark.parametrize("shape", [published.GPU.cropped, published.GPU.full])
def test_paper_gpu_equals_the_published_extraction_on_cuda_programs(shape: tuple[int, int]) -> None:
    layout = FeatureLayout.preset("paper-gpu").with_shape(length=shape[0], width=shape[1])

    batch = extract_records(CUDA_LOG, layout)

    expected = [published.embed(published.GPU, program, shape) for program in programs_of(CUDA_LOG)]
    np.testing.assert_array_equal(batch.features, np.stack(expected))
    assert batch.report is not None
    assert not batch.report.unknown_kinds
    assert not batch.report.unknown_tokens


def test_the_presets_crop_as_published() -> None:
    shapes = {name: (layout.length, layout.width) for name, layout in presets().items()}
    assert shapes["paper-cpu"] == (25, 22) == published.CPU.cropped
    assert shapes["paper-gpu"] == (40, 20) == published.GPU.cropped


def presets() -> dict[str, FeatureLayout]:
    return {name: FeatureLayout.preset(name) for name in ("ansor", "paper-cpu", "paper-gpu")}


@pytest.mark.parametrize("name", PUBLISHED)
def test_every_published_kind_and_token_has_its_column(name: str, write_log: WriteLog) -> None:
    spec = PUBLISHED[name]
    program = [step for step in STEPS if step[0] in spec.kinds and step[0] not in ("PR", "CHW")]
    program += [["PR", 1, 0, f"auto_unroll_max_step${depth}"] for depth in spec.unroll]
    program += [["CHW", 1, scope] for scope in published.CACHE_WRITE_SCOPES]

    batch = extract_records(write_log(log_of([program])), FeatureLayout.preset(name))

    assert batch.features is not None
    np.testing.assert_array_equal(batch.features[0], published.embed(spec, program))


@pytest.mark.parametrize("name", PUBLISHED)
def test_the_tail_of_a_long_program_goes_and_is_counted(name: str, write_log: WriteLog) -> None:
    spec = PUBLISHED[name]
    program = [["RE", stage, list(range(10, 38))] for stage in range(spec.full[0])]

    batch = extract_records(write_log(log_of([program])), FeatureLayout.preset(name))

    assert batch.features is not None
    np.testing.assert_array_equal(batch.features[0], published.embed(spec, program))
    assert batch.report is not None
    assert batch.report.cut_rows == spec.full[0] - spec.cropped[0]
    assert batch.report.cut_columns == spec.cropped[0] * (11 + 1 + 28 - spec.cropped[1])


def test_what_a_layout_lacks_is_counted_and_shifts_nothing(write_log: WriteLog) -> None:
    program = [
        ["CHR", 4, "warp", [5, 6]],
        ["PR", 2, 7, "auto_unroll_max_step$1024"],
        ["CHW", 3, "warp"],
        ["CI", 9],
    ]

    batch = extract_records(write_log(log_of([program])), FeatureLayout.preset("paper-cpu"))

    assert batch.features is not None
    one_hot, fields = np.split(batch.features[0, :4], [11], axis=1)
    kinds = published.CPU.kinds
    assert [tuple(np.flatnonzero(row)) for row in one_hot] == [
        (),
        (kinds.index("PR"),),
        (kinds.index("CHW"),),
        (kinds.index("CI"),),
    ]
    assert fields[:, :4].tolist() == [[4, 0, 5, 6], [2, 7, 0, 0], [3, 0, 0, 0], [9, 0, 0, 0]]
    assert batch.report is not None
    assert batch.report.unknown_kinds == {"CHR": 1}
    assert batch.report.unknown_tokens == {
        "PR.pragma_type=auto_unroll_max_step$1024": 1,
        "CHR.scope_name=warp": 1,
        "CHW.scope_name=warp": 1,
    }


def test_numbers_beyond_float32_are_rounded_as_numpy_rounds_them(write_log: WriteLog) -> None:
    numbers = [2**24 + 1, 2**31 - 1, 2**53 + 1, 2**63 - 1, -(2**63), -1]
    program = [["SP", 1, 2, extent, [extent, 1], 1] for extent in numbers]
    batch = extract_records(write_log(log_of([program])), FeatureLayout.preset("paper-cpu"))
    assert batch.features is not None
    np.testing.assert_array_equal(batch.features[0], published.embed(published.CPU, program))


# The default layout.


def test_the_default_layout_knows_every_kind_and_token_of_the_measured_programs() -> None:
    batch = extract_records([DATASETS / "epyc", CUDA_LOG], FeatureLayout.preset("ansor"))
    assert batch.report is not None
    assert not batch.report.unknown_kinds
    assert not batch.report.unknown_tokens
    assert batch.report.cut_rows == 0
    assert batch.report.sequences == len(batch) == 7218 + 18


def test_rows_of_a_program_are_never_zero_and_rows_past_it_always() -> None:
    batch = extract_records([DATASETS / "epyc", CUDA_LOG], FeatureLayout.preset("ansor"))
    assert batch.features is not None
    rows = (batch.features != 0).any(axis=2)
    shown = np.minimum(batch.lengths, batch.features.shape[1])
    np.testing.assert_array_equal(rows, np.arange(rows.shape[1]) < shown[:, None])


def test_scaled_numbers_stay_small() -> None:
    batch = extract_records([DATASETS / "epyc", CUDA_LOG], FeatureLayout.preset("ansor"))
    assert batch.features is not None
    assert batch.features.min() >= 0
    assert batch.features.max() <= 4


def test_different_measured_programs_have_different_embeddings() -> None:
    batch = extract_records([DATASETS / "epyc", CUDA_LOG], FeatureLayout.preset("ansor"))
    assert batch.features is not None
    embeddings = {(task, x.tobytes()) for task, x in zip(batch.task_ids, batch.features, strict=True)}
    programs = set(zip(batch.task_ids.tolist(), batch.sequence_hashes.tolist(), strict=True))
    assert len(embeddings) == len(programs)


def test_a_long_program_keeps_its_head_and_its_tail(write_log: WriteLog) -> None:
    layout = FeatureLayout.preset("ansor")
    long = [["CI", stage] for stage in range(1, 2 * layout.length + 1)]
    short = long[: layout.length // 2] + long[-(layout.length - layout.length // 2) :]

    batch = extract_records(write_log(log_of([long, short])), layout)

    assert batch.features is not None
    np.testing.assert_array_equal(batch.features[0], batch.features[1])
    assert batch.lengths.tolist() == [2 * layout.length, layout.length]
    assert batch.report is not None
    assert (batch.report.cut_sequences, batch.report.cut_rows) == (1, layout.length)


def test_hashes_tell_programs_apart(write_log: WriteLog) -> None:
    programs = [
        STEPS,
        STEPS,
        STEPS[::-1],
        [["RE", 1, [2, 3]], ["FU", 4, []]],
        [["RE", 1, [2]], ["FU", 3, [4]]],
        [["PR", 1, 0, "ab"], ["PR", 1, 0, "c"]],
        [["PR", 1, 0, "a"], ["PR", 1, 0, "bc"]],
        [["CI", 1]],
        [["CR", 1]],
        [],
    ]
    hashes = read_records(write_log(log_of(programs))).sequence_hashes
    assert hashes.dtype == np.uint64
    assert hashes[0] == hashes[1]
    assert len(set(hashes.tolist())) == len(programs) - 1


def test_hashes_are_those_of_every_process_and_release(write_log: WriteLog) -> None:
    assert read_records(write_log(log_of([STEPS]))).sequence_hashes.tolist() == [10093111115879548604]


# The surface.


def test_a_batch_read_first_and_encoded_later_is_the_same(
    write_log: WriteLog, record: dict[str, Any]
) -> None:
    path = write_log([record] * 3)
    read = read_records(path)
    for layout in presets().values():
        extracted = extract_records(path, layout)
        assert extracted.features is not None
        assert read.features is None
        assert read.encode(layout).tobytes() == extracted.features.tobytes()


def test_a_record_is_written_as_it_was_read(write_log: WriteLog, record: dict[str, Any]) -> None:
    path = write_log([record])
    assert json.loads(read_records(path).line(0)) == record


@pytest.mark.parametrize("path", [CUDA_LOG, DATASETS / "epyc" / "epyc-avx2-1c" / "test"])
def test_a_log_written_by_us_says_the_same(path: Path, tmp_path: Path) -> None:
    batch = read_records(path)
    copy = tmp_path / "copy.json"
    copy.write_text("".join(batch.line(i) for i in range(len(batch))))

    again = read_records(copy)

    assert again.tasks == batch.tasks
    assert again.sequence_hashes.tolist() == batch.sequence_hashes.tolist()
    assert again.cost_values.tolist() == batch.cost_values.tolist()
    assert again.timestamps.tolist() == batch.timestamps.tolist()


def test_public_names_are_listed_and_found() -> None:
    for name in tlp_tvm.__all__:
        assert name in dir(tlp_tvm)
        assert hasattr(tlp_tvm, name)
    for name in tlp_tvm.ansor.__all__:
        assert hasattr(tlp_tvm.ansor, name)
    with pytest.raises(AttributeError, match="no attribute 'extract'"):
        _ = tlp_tvm.extract
