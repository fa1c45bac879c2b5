"""Per-store features of the project's own programs: rebuilt, cached, and named where that cannot be done."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from measured import AVX2, part_of_epyc
from tlp_tvm.adapting.informed import both
from tlp_tvm.ansor.reading import store_rows
from tlp_tvm.ansor.reading.records import steps_of_record
from tlp_tvm.dataset.building.build import build_dataset
from tlp_tvm.errors import DatasetError
from tlp_tvm.evaluation.baselines import BaselineSettings, make_baselines
from tlp_tvm.evaluation.baselines.informed_ranker import InformedRanker
from tlp_tvm.evaluation.baselines.pooled_trees import fit_trees, tiles_of
from tlp_tvm.evaluation.baselines.program_records import records_of
from tlp_tvm.evaluation.baselines.store_features import StoreFeatures, own_file, store_features
from tlp_tvm.evaluation.corpus import Corpus
from tlp_tvm.evaluation.side_by_side import RANDOM, compare_rankers
from tlp_tvm.framework import framework_named
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metrics.correlation import ranks
from tlp_tvm.model.checkpoint import load_model
from tlp_tvm.model.scoring import ScoringModel
from tlp_tvm.model.trees.store_trees import STORE_WIDTH
from tlp_tvm.model.trees.tile_sizes import TILE_WIDTH

LAYOUT = FeatureLayout.preset("ansor")
NAMES = ["xgboost-features", "xgboost-tvm", "xgboost-tenset", "tenset-mlp"]
WITHOUT_CHANCE = ("xgboost-tvm", "xgboost-tenset")
"""Their trees see all rows and columns."""


@pytest.fixture(scope="module")
def source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("epyc")
    return part_of_epyc(folder, ["bert_small-128__863af811c027"], ["bert_tiny-128__b77812d9dfb1"])


@pytest.fixture(scope="module")
def corpus(source: Path) -> Corpus:
    return Corpus(source, LAYOUT)


@pytest.fixture(scope="module")
def cache(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cache")


@pytest.fixture(scope="module")
def features(corpus: Corpus, cache: Path) -> StoreFeatures:
    told: list[str] = []
    found = store_features(corpus, cache, told.append)
    assert sum("splitting bert_" in words for words in told) == 2
    return found


def settings(cache: Path) -> BaselineSettings:
    return BaselineSettings(rounds=10, epochs=3, cache=cache, device="cpu")


def test_every_program_has_rows(corpus: Corpus, features: StoreFeatures) -> None:
    assert features.missing == {}
    assert features.rows.shape == (features.counts.sum(), STORE_WIDTH)
    assert (features.counts > 0).all()
    rows, owner = features.of(np.array([5, 2, 5]))
    assert np.bincount(owner).tolist() == features.counts[[5, 2, 5]].tolist()
    begin = int(features.counts[:2].sum())
    np.testing.assert_array_equal(rows[owner == 1], features.rows[begin : begin + features.counts[2]])
    np.testing.assert_array_equal(rows[owner == 0], rows[owner == 2])
    assert len({features.of(np.array([i]))[0].tobytes() for i in range(len(corpus.whole))}) > 40


def test_they_are_computed_once_and_the_same_each_time(
    source: Path, corpus: Corpus, features: StoreFeatures, cache: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert store_features(corpus, cache, print) is features
    files = sorted(cache.glob(f"store-features/{corpus.whole.digest}/*.npz"))
    assert len(files) == 2
    before = files[0].read_bytes()
    files[0].write_bytes(before[: len(before) // 2])  # as a killed machine leaves it
    told: list[str] = []
    again = store_features(Corpus(source, LAYOUT), cache, told.append)
    assert sum("splitting" in words for words in told) == 1
    np.testing.assert_array_equal(again.rows, features.rows)
    np.testing.assert_array_equal(again.counts, features.counts)
    monkeypatch.setattr(type(framework_named("ansor")), "store_rows", None)  # which needs TVM
    np.testing.assert_array_equal(store_features(Corpus(source, LAYOUT), cache, print).rows, features.rows)


def test_a_corpus_with_other_labels_has_the_same_programs(corpus: Corpus, features: StoreFeatures) -> None:
    known = np.where(np.arange(len(corpus.whole))[:, None] % 2, np.nan, corpus.whole.latencies)
    other = corpus.learning_from(known, [0])
    assert [platform.name for platform in other.whole.platforms] == [AVX2]
    np.testing.assert_array_equal(other.whole.latencies[:, 0], known[:, 0])
    np.testing.assert_array_equal(other.judged.latencies[:, 0], known[corpus.judged_programs, 0])
    assert other.whole.digest != corpus.whole.digest  # so that no training is mistaken for one on all labels
    assert store_features(other, Path("nowhere"), print) is features
    np.testing.assert_array_equal(other.embeddings(LAYOUT, corpus.judged_programs), corpus.judged.features())


def test_of_files_side_by_side_a_framework_takes_its_own(tmp_path: Path) -> None:
    for name in ("net.pt", "net.pt2", "other.onnx"):
        (tmp_path / name).touch()
    for name in ("net.pt", "net.pt2"):
        assert own_file(str(tmp_path / name), ".pt2") == str(tmp_path / "net.pt2")
        assert own_file(str(tmp_path / name), ".pt") == str(tmp_path / "net.pt")
    assert own_file(str(tmp_path / "other.onnx"), ".pt2") == str(tmp_path / "other.onnx")


def test_tasks_of_other_platforms_are_passed_over(source: Path, tmp_path: Path, cache: Path) -> None:
    folder = tmp_path / "two"
    shutil.copytree(source, folder)
    shutil.move(folder / AVX2 / "train", folder / "elsewhere" / "train")
    build_dataset([folder], tmp_path / "built")
    corpus = Corpus(tmp_path / "built", LAYOUT, platforms=[AVX2])

    found = store_features(corpus, cache, print)

    assert list(found.missing.values()) == ["none of its programs ran on the chosen platforms"]
    assert not any("without features" in note for note in found.notes(corpus))


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("features")
def test_a_seed_says_it_all_and_seen_labels_count(name: str, corpus: Corpus, cache: Path) -> None:
    def fitted(seed: int) -> list[float]:
        assert made.fit(corpus, seed, lambda words: None) == {}
        return list(made.scores(corpus.judged_programs, 0))

    [made] = make_baselines([name], settings(cache))
    first = fitted(1)
    assert np.isfinite(first).all()
    assert len(set(first)) > 12
    seen, rest = corpus.judged_programs[:16], corpus.judged_programs[16:]
    assert not np.array_equal(made.scores_after(seen, rest, 0), first[16:])
    assert list(made.scores(corpus.judged_programs, 0)) == first
    assert (fitted(2) == first) == (name in WITHOUT_CHANCE)
    assert fitted(1) == first
    assert made.notes == []


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.usefixtures("features")
def test_networks_that_cannot_be_rebuilt_are_named(
    name: str, source: Path, cache: Path, tmp_path: Path
) -> None:
    folder = tmp_path / "elsewhere"
    shutil.copytree(source, folder)
    part_of_epyc(tmp_path / "more", [], ["bert_base-128__92fb8a6a1a63"])
    shutil.copy(next((tmp_path / "more").glob("*/test/*")), folder / AVX2 / "test")
    table = json.loads((source / "tasks.json").read_text())
    [base] = json.loads((tmp_path / "more/tasks.json").read_text())
    (folder / "tasks.json").write_text(json.dumps([*table, base | {"network": "somebodys_net"}]))
    corpus = Corpus(folder, LAYOUT)
    shutil.copytree(next(cache.glob("store-features/*")), cache / "store-features" / corpus.whole.digest)
    made = make_baselines([name], settings(cache))
    comparison = compare_rankers(corpus, made, ks=(1,))
    assert comparison.not_computable == {
        name: {base["workload_key"]: "none of its networks has it when built here: somebodys_net"}
    }
    found = {(row.ranker, row.network) for row in comparison.rows}
    assert {network for ranker, network in found if ranker == name} == {"bert_tiny-128"}
    assert {network for ranker, network in found if ranker == RANDOM} == {
        "bert_tiny-128", "somebodys_net", "all networks", "mean over tasks",
        "all networks, far", "mean over tasks, far",
    }  # fmt: skip
    shutil.rmtree(cache / "store-features" / corpus.whole.digest)


def test_training_tasks_without_features_are_noted(corpus: Corpus, features: StoreFeatures) -> None:
    lost = features.counts.copy()
    train = corpus.whole.programs_of(corpus.training_tasks[0])
    lost[train] = 0
    [note] = StoreFeatures(features.rows, lost, {corpus.training_tasks[0]: "why"}).notes(corpus)
    key = corpus.whole.tasks[corpus.training_tasks[0]].workload_key
    assert note == f"1 training tasks without features were not learned from: {key}"
    lost[train[1:]] = 1
    [note] = StoreFeatures(features.rows, lost, {}).notes(corpus)
    assert note == "1 programs that TVM could not lower again count as the slowest"


def test_records_are_the_programs_in_their_order(source: Path, tmp_path: Path) -> None:
    build_dataset([source], tmp_path / "built")
    for place in (source, tmp_path / "built"):
        corpus = Corpus(place, LAYOUT)
        lines = records_of(corpus, range(len(corpus.whole.tasks)))
        for task, of_task in lines.items():
            programs = corpus.whole.programs_of(task)
            assert [len(steps_of_record(line)) for line in of_task] == corpus.whole.counts[programs].tolist()
            log = tmp_path / "log.json"
            log.write_text("".join(line.replace('[["[]", ""]', '[["[]", "llvm"]') for line in of_task))
            np.testing.assert_array_equal(
                Corpus(log, LAYOUT).whole.features(), corpus.whole.features(programs)
            )


def test_files_that_change_meanwhile_are_refused(source: Path, tmp_path: Path) -> None:
    folder = tmp_path / "changing"
    shutil.copytree(source, folder)
    corpus = Corpus(folder, LAYOUT)
    [file] = folder.glob("*/test/*")
    lines = gzip.decompress(file.read_bytes()).splitlines(keepends=True)
    file.write_bytes(gzip.compress(b"".join(lines[:9])))
    with pytest.raises(
        DatasetError, match="expected 24 programs of .*, found 9: its files changed meanwhile"
    ):
        records_of(corpus, [0])


@pytest.mark.usefixtures("features")
def test_trees_of_all_platforms_rank_what_they_learned(corpus: Corpus, cache: Path) -> None:
    told: list[str] = []
    trees = fit_trees(corpus, settings(cache), 0, told.append)
    assert trees.platforms == tuple(platform.name for platform in corpus.whole.platforms)
    assert (len(trees.leaves), trees.tiles) == (10, TILE_WIDTH)
    found = store_features(corpus, cache, print)
    programs = corpus.whole.programs_of(corpus.training_tasks[0])
    rows, _ = found.of(programs)
    speeds = trees.speeds(rows, found.counts[programs], tiles_of(corpus, programs), AVX2)
    labels = corpus.whole.labels[programs, trees.platforms.index(AVX2)]
    assert np.corrcoef(ranks(speeds), ranks(labels))[0, 1] > 0.7
    again = fit_trees(corpus, settings(cache), 0, told.append)
    np.testing.assert_array_equal(again.leaves, trees.leaves)


def test_trees_without_anything_to_learn_from_are_refused(
    source: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(store_rows, "rebuilt_tasks", lambda tasks, targets, tell: [])
    with pytest.raises(DatasetError) as error:
        fit_trees(Corpus(source, LAYOUT), settings(tmp_path), 0, print)
    assert str(error.value) == (
        "`trees`: expected training tasks with per-store features, found none; give the files of their "
        "networks with `networks`"
    )


@pytest.mark.usefixtures("features")
def test_a_model_is_ranked_with_its_trees(corpus: Corpus, cache: Path) -> None:
    trees = fit_trees(corpus, settings(cache), 0, print)
    network = load_model("x86")
    model = ScoringModel("mine", network.config, network.network, trees)
    ranker = InformedRanker(model, "mine with trees", settings(cache))
    assert ranker.fit(corpus, 0, print) == {}
    found = store_features(corpus, cache, print)
    judged = corpus.judged_programs
    for column, platform in enumerate(trees.platforms):
        alone = network.score(corpus.embeddings(network.layout, judged), platform)
        rows, tiles = found.of(judged)[0], tiles_of(corpus, judged)
        speeds = trees.speeds(rows, found.counts[judged], tiles, platform)
        np.testing.assert_allclose(ranker.scores(judged, column), both(alone, speeds), rtol=1e-5)
