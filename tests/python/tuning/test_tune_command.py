"""`tlp-tvm tune` as it is typed."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from programs import tiny_config
from tlp_tvm.cli.app import app
from tlp_tvm.layout import FeatureLayout
from tlp_tvm.model.checkpoint import save_checkpoint

TARGET = "llvm -mcpu=core-avx2 -num-cores=1"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config, network = tiny_config(FeatureLayout.preset("ansor"))
    folder = tmp_path_factory.mktemp("models") / "tiny"
    save_checkpoint(folder, config, network.state_dict())
    return folder


def test_a_network_is_tuned_and_the_result_printed(tmp_path: Path, model: Path) -> None:
    out = tmp_path / "run"
    command = ["tune", "mlp", "--model", str(model), "--trials", "4", "--out", str(out), "--target", TARGET]

    first = CliRunner().invoke(app, command)
    again = CliRunner().invoke(app, [*command, "--json"])

    assert first.exit_code == 0, first.output
    for words in (
        "untuned",
        "tuned",
        "programs measured: 4",
        f"{out}/log.json",
        f"{out}/curve.png",
        "model: tiny",
        f"load_tuned({str(out)!r})(data=array)",
    ):
        assert words in first.stdout
    assert first.stdout.count("nn_dense_add") >= 3
    assert "the tuned network, by operator" in first.stdout
    assert again.exit_code == 0, again.output
    value = json.loads(again.stdout)
    assert (value["trials"], value["reused"]) == (4, 4)
    assert value["end_to_end"]["speedup"] > 0
    assert value["log"] == str(out / "log.json")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nonet"], 'error: expected the name of a network, found "nonet"; choose one of '),
        (["mlp", "--model", "nomodel"], "error: nomodel: expected a shipped model ("),
        (
            ["mlp", "--target", "llvm -mcpu=z80"],
            'error: --target "llvm -mcpu=z80": expected a -mcpu that LLVM ',
        ),
    ],
)
def test_an_error_is_one_sentence_and_exit_code_1(tmp_path: Path, arguments: list[str], message: str) -> None:
    ended = CliRunner().invoke(app, ["tune", *arguments, "--out", str(tmp_path / "run")])
    assert ended.exit_code == 1
    assert ended.stderr.startswith(message)
    assert "Traceback" not in ended.output
    assert not (tmp_path / "run").exists()


@pytest.mark.parametrize("arguments", [[], ["mlp"], ["mlp", "--out", "x", "--trials", "-1"]])
def test_wrong_usage_is_exit_code_2(arguments: list[str]) -> None:
    assert CliRunner().invoke(app, ["tune", *arguments]).exit_code == 2
