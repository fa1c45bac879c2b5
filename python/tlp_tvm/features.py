"""Records -> embeddings: the extraction of what is on the disk, of either framework.

Live states are `tlp_tvm.ansor`'s, live traces `tlp_tvm.metaschedule`'s; `tlp_tvm.extract_states` and
`tlp_tvm.extract_traces` lead there.
"""

from __future__ import annotations

from typing import Literal

from tlp_tvm.embedding import EncodingReport
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.record_batch import RecordBatch
from tlp_tvm.records.detect import Source, read_records


def extract_records(
    source: Source,
    layout: FeatureLayout,
    *,
    errors: Literal["raise", "skip"] = "raise",
    threads: int = 0,
) -> RecordBatch:
    """Read measure records and embed their programs.

    Args:
        source: a log, a list of logs, or a folder; plain or .gz (see `read_records`).
        layout: what to write where.
        errors: "raise" stops at the first bad line; "skip" passes over it and counts it in `skipped`.
        threads: native threads; 0 for all cores.

    Returns:
        The records, with `features` (N, L, E) and `pages` filled.

    Raises:
        RecordError: a line is no record, as `path:line: step: expected, found`.
        OSError: a file cannot be read.
    """
    batch = read_records(source, errors=errors, threads=threads)
    batch.report = EncodingReport()
    batch.features = batch.encode(layout, threads=threads, report=batch.report)
    return batch
