"""Embeddings of records where the caller wants them: in one array used again, or without padding."""

from __future__ import annotations

from importlib import resources

import numpy as np
import pytest

from logs import DATASETS
from tlp_tvm.ansor.reading.records import iter_records
from tlp_tvm.embedding import EncodingReport
from tlp_tvm.errors import LayoutError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.record_batch import RecordBatch
from tlp_tvm.records.detect import read_records


@pytest.fixture(scope="module")
def batch() -> RecordBatch:
    return read_records(sorted((DATASETS / "epyc").rglob("*.json.gz"))[::25])


@pytest.fixture(params=["ansor", "paper-cpu", "short"])
def layout(request: pytest.FixtureRequest) -> FeatureLayout:
    if request.param == "short":  # so that programs lose rows
        return FeatureLayout.preset("ansor").with_shape(length=5)
    return FeatureLayout.preset(request.param)


def test_one_array_takes_batch_after_batch(batch: RecordBatch, layout: FeatureLayout) -> None:
    out = np.full((len(batch), layout.length, layout.width), np.float32(-7))
    begin = 0
    whole = batch.encode(layout)
    for part in iter_records(batch.files, batch_size=50):
        written = part.encode(layout, out=out)
        assert np.shares_memory(written, out)
        assert written.tobytes() == whole[begin : begin + len(part)].tobytes()
        begin += len(part)
    assert begin == len(batch)


def test_an_array_that_is_too_small_or_no_float32_is_refused(batch: RecordBatch) -> None:
    layout = FeatureLayout.preset("paper-cpu")
    shape = (len(batch) - 1, layout.length, layout.width)
    with pytest.raises(ValueError, match=r"out: expected a float32 array of shape"):
        batch.encode(layout, out=np.zeros(shape, np.float32))
    with pytest.raises(TypeError):
        batch.encode(layout, out=np.zeros((len(batch), *shape[1:]), np.float64))  # type: ignore[arg-type]


@pytest.mark.parametrize("threads", [1, 4])
def test_rows_are_those_of_the_whole_embedding(
    batch: RecordBatch, layout: FeatureLayout, threads: int
) -> None:
    whole_report, report = EncodingReport(), EncodingReport()
    whole = batch.encode(layout, report=whole_report)
    counts = np.minimum(batch.lengths, layout.length)

    rows, offsets = batch.encode_rows(layout, threads=threads, report=report)

    assert rows.dtype == np.float32
    assert np.diff(offsets).tolist() == counts.tolist()
    assert rows.tobytes() == whole[np.arange(layout.length) < counts[:, None]].tobytes()
    assert report == whole_report


def test_rows_of_chosen_records_stand_in_the_order_chosen(batch: RecordBatch, layout: FeatureLayout) -> None:
    whole = batch.encode(layout)
    chosen = np.random.default_rng(1).permutation(len(batch))[:40]
    chosen[-1] = chosen[0]

    rows, offsets = batch.encode_rows(layout, chosen)

    for k, record in enumerate(chosen):
        kept = min(int(batch.lengths[record]), layout.length)
        assert rows[offsets[k] : offsets[k + 1]].tobytes() == whole[record, :kept].tobytes()
    none, offsets = batch.encode_rows(layout, chosen[:0])
    assert none.shape == (0, layout.width)
    assert offsets.tolist() == [0]


def test_a_record_that_is_not_there_is_refused(batch: RecordBatch) -> None:
    with pytest.raises(IndexError):
        batch.encode_rows(FeatureLayout.preset("ansor"), np.array([len(batch)]))


def test_hashes_do_not_depend_on_threads(batch: RecordBatch) -> None:
    one_by_one = np.concatenate([block.hashes() for block in batch.programs.blocks])
    assert batch.sequence_hashes.tolist() == one_by_one.tolist()


def test_a_layout_has_rows_and_columns() -> None:
    layout = FeatureLayout.preset("ansor")
    assert layout.with_shape() == layout
    for shape in ({"length": 0}, {"width": 0}, {"length": -1}):
        with pytest.raises(LayoutError):
            layout.with_shape(**shape)


def test_the_package_says_that_it_is_typed() -> None:
    assert resources.files("tlp_tvm").joinpath("py.typed").is_file()
