"""Exported models: one file, the same scores in a fresh process, and no file that could run code."""

from __future__ import annotations

import json
import pickle
import shutil
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from places import DATA
from processes import run_python
from programs import LAYOUT, random_embeddings, tiny_config, tiny_settings
from tlp_tvm.errors import ModelFileError
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.checkpoint import load_model, save_checkpoint
from tlp_tvm.model.export import export_model
from tlp_tvm.model.scoring import ScoringModel
from tlp_tvm.model.tlp import TLP

FRESH = """
import numpy as np
from tlp_tvm import load_model
model = load_model({path!r})
np.save({scores!r}, model.score_all(np.load({x!r})))
report(platforms=model.platforms, layout=model.layout.digest, epochs=model.card["training"]["epochs"])
"""

ALONE = """
import json, sys, warnings
import numpy as np, torch
files = {{"tlp_tvm.json": ""}}
warnings.simplefilter("ignore")
network = torch.jit.load({path!r}, _extra_files=files)
np.save({scores!r}, network(torch.from_numpy(np.load({x!r}))).numpy())
config = json.loads(files["tlp_tvm.json"])
report(platforms=[p["name"] for p in config["platforms"]], ours="tlp_tvm" in sys.modules)
"""


def model_of(layout: FeatureLayout = LAYOUT, **options: Any) -> ScoringModel:
    config, network = tiny_config(layout, **options)
    return ScoringModel("tiny", config, network)


def refused(path: Path) -> str:
    with pytest.raises(ModelFileError) as error:
        load_model(path)
    return str(error.value)


@pytest.mark.parametrize("options", [{}, {"layers": 2}, {"faithful": True, "hidden": 16}, {"members": 2}])
@pytest.mark.parametrize("layout", [LAYOUT, FeatureLayout.preset("paper-cpu")])
def test_exported_scores_are_the_checkpoint_s(
    tmp_path: Path, layout: FeatureLayout, options: dict[str, Any]
) -> None:
    model = model_of(layout, **options)
    assert export_model(model, tmp_path / "model.pt") <= 1e-6
    exported = load_model(tmp_path / "model.pt")
    x = random_embeddings(layout, 50)
    for batch in (x, x[:1], x[:7], x):
        np.testing.assert_allclose(exported.score_all(batch), model.score_all(batch), rtol=0, atol=1e-6)
    assert exported.card == model.card


def test_a_fresh_process_scores_the_same(tmp_path: Path) -> None:
    config, network = tiny_config()
    save_checkpoint(tmp_path / "tiny", config, network.state_dict())
    model = load_model(tmp_path / "tiny")
    export_model(model, tmp_path / "model.pt")
    x = random_embeddings(count=50)
    np.save(tmp_path / "x.npy", x)
    names = {name: str(tmp_path / name) for name in ("model.pt", "x.npy", "scores.npy")}
    for code in (FRESH, ALONE):
        found = run_python(code.format(path=names["model.pt"], x=names["x.npy"], scores=names["scores.npy"]))
        assert found["platforms"] == list(model.platforms)
        assert not found.get("ours")
        np.testing.assert_allclose(np.load(tmp_path / "scores.npy"), model.score_all(x), rtol=1e-5, atol=1e-6)


def test_an_export_that_scores_otherwise_is_not_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    script = torch.jit.script
    model, other = model_of(), TLP(tiny_settings()).eval()
    monkeypatch.setattr(torch.jit, "script", lambda network: script(other))
    with pytest.raises(ModelFileError) as error:
        export_model(model, tmp_path / "model.pt")
    assert str(error.value).startswith(
        f"{tmp_path / 'model.pt'}: expected exported scores within 1e-06 of the checkpoint's, found a "
    )
    assert list(tmp_path.iterdir()) == []


def test_a_pickled_module_is_not_opened(tmp_path: Path) -> None:
    class Bomb:
        def __reduce__(self) -> tuple[Any, ...]:
            return (Path.touch, (tmp_path / "ran",))

    torch.save({"weights": Bomb()}, tmp_path / "model.pt")
    assert refused(tmp_path / "model.pt") == (
        f"{tmp_path / 'model.pt'}: expected a model that `tlp-tvm export` wrote, with tlp_tvm.json inside, "
        "found none; other files of torch are not opened, since opening them can run code"
    )
    (tmp_path / "old.pt").write_bytes(pickle.dumps(Bomb()))
    assert refused(tmp_path / "old.pt") == (
        f"{tmp_path / 'old.pt'}: expected an exported model, found File is not a zip file; export it again"
    )
    assert not (tmp_path / "ran").exists()


def test_damaged_files_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    export_model(model_of(), path)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) // 2])
    assert (
        refused(path) == f"{path}: expected an exported model, found File is not a zip file; export it again"
    )
    place = data.index(b"hidden")
    path.write_bytes(data[:place] + b"hiddem" + data[place + 6 :])
    assert refused(path).startswith(f"{path}: expected an exported model, found a wrong checksum of ")


def rewrite(path: Path, edit: Any) -> None:
    """Change the description inside an exported file, as a program that writes zip files could."""
    with zipfile.ZipFile(path) as archive:
        entries = {info.filename: archive.read(info) for info in archive.infolist()}
    name = next(name for name in entries if name.endswith("tlp_tvm.json"))
    card = json.loads(entries[name])
    edit(card)
    entries[name] = json.dumps(card).encode()
    with zipfile.ZipFile(path, "w") as archive:
        for key, value in entries.items():
            archive.writestr(key, value)


def test_other_versions_and_layouts_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    export_model(model_of(), path)
    rewrite(path, lambda card: card.update(format_version=7))
    assert refused(path).startswith(
        f"{path}: tlp_tvm.json: expected format version 1, found 7, written by tlp_tvm "
    )
    export_model(model_of(), path)
    rewrite(path, lambda card: card["layout"].update(version=4))
    assert refused(path).startswith(
        f'{path}: tlp_tvm.json: expected version 3 of the layout "ansor", found 4; '
    )
    export_model(model_of(), path)
    rewrite(path, lambda card: card["layout"]["kinds"].reverse())
    assert refused(path).startswith(f'{path}: tlp_tvm.json: expected the layout "ansor" with digest ')


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        (
            {"attention_heads": 8},
            "tlp_tvm.json: attention_heads: expected 4 as in the network of the file, found 8;",
        ),
        ({"hidden": 32}, "members.0.heads.0.0.bias: expected (16,), found (8,);"),
        ({"members": 2}, "expected the tensors of 2 members, as the settings say, found those of 1;"),
        (
            {"faithful": True, "raw_numbers": False},
            "expected the tensors of the model, found no members.0.widen.4.bias,",
        ),
    ],
)
def test_a_description_of_another_network_is_refused(
    tmp_path: Path, changes: dict[str, Any], expected: str
) -> None:
    """It would score otherwise here than where the file is run without this package."""
    path = tmp_path / "model.pt"
    export_model(model_of(), path)
    rewrite(path, lambda card: card["model"].update(changes))
    assert refused(path).startswith(f"{path}: {expected}")


def test_a_description_of_another_frozen_network_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "tiny.pt"
    shutil.copy(DATA / "model-v1" / "tiny.pt", path)
    rewrite(path, lambda card: card["model"].update(faithful=True))
    assert refused(path) == (
        f"{path}: tlp_tvm.json: faithful: expected False as in the network of the file, found True; export "
        "it again"
    )
    rewrite(path, lambda card: card["model"].update(faithful=False, heads=1) or card["platforms"].pop())
    assert refused(path) == (
        f"{path}: tlp_tvm.json: heads: expected 2 as in the network of the file, found 1; export it again"
    )


def test_a_description_around_no_network_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "model.pt"
    with zipfile.ZipFile(path, "w") as archive:
        archive.writestr("model/extra/tlp_tvm.json", model_of().config.to_json())
    assert refused(path).startswith(f"{path}: expected a TorchScript module, found ")
