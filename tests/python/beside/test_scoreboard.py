"""The scoreboard's stages, kept results, table and picture; nothing is exported or tuned."""

from __future__ import annotations

import json
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

from places import ROOT, benchmark
from tlp_tvm.beside.beside_result import BesideResult, Timed
from tlp_tvm.machine.cpu import Cpu

TITLES = {"a": "Network A", "b": "Network B"}
CPU = "a CPU"


@pytest.fixture
def networks(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> ModuleType:
    module = benchmark("networks", monkeypatch)
    for name in ("KEPT", "PAGE", "PAGE_BEHIND", "PICTURE", "README"):
        monkeypatch.setattr(module, name, tmp_path / name.lower())
    monkeypatch.setattr(module, "this_cpu", lambda: Cpu(CPU, "llvm", 2, "a"))
    return module


def result(ours: float, peers: tuple[Timed, ...]) -> dict[str, Any]:
    """What `tlp-tvm tune --beside --json` prints, as far as it is kept."""
    beside = BesideResult("net", CPU, 2, 5, Timed("tlp-tvm", "0.1", (ours,)), peers)
    ended = {"untuned_latency": 0.008, "speedup": 2.0}
    explained = {"labels": 0.008, "inside": 0.002 * ours / 0.001}
    values = {"commit": "abc1234", "end_to_end": ended, "estimate": 0.003, "seconds": {"search": 1.23}}
    values |= {"changed_inside": 1, "explained": explained, "at_peak": 1e-3}
    operators = [(3e-3, 2e-3), (2.1e-3, 2e-3), (1e-3, None)]
    values["operators"] = [{"inside": inside, "label": label} for inside, label in operators]
    return {**values, "beside": beside.to_dict()}


def write_marks(networks: ModuleType) -> None:
    """Of what is generated, into pages that are empty but for them."""
    for page, name in (
        (networks.PAGE, "networks"),
        (networks.PAGE_BEHIND, "rows"),
        (networks.README, "networks"),
    ):
        page.write_text(f"<!-- {name}: begin -->\n<!-- {name}: end -->\n")


PEERS = (
    Timed("onnxruntime", "1", (0.002,)),
    Timed("torch", "2", (0.001,), 0.5, "/x/a.pt: torch: outputs differ"),
)


def test_ten_networks_and_three_stages_a_framework(networks: ModuleType) -> None:
    assert len(networks.NETWORKS) == 10
    found = list(networks.stages(["mlp"], ["ansor", "metaschedule"], [15, 0, 5]))
    assert [each.name for each in found] == [
        *("ansor-0", "ansor-5", "ansor-15"),
        *("metaschedule-0", "metaschedule-5", "metaschedule-15"),
    ]
    chosen, first, second = (each.command() for each in found[:3])
    assert chosen[chosen.index("--trials") + 1] == "0"
    assert (first[first.index("--minutes") + 1], second[second.index("--minutes") + 1]) == ("5", "10")
    assert chosen[-1] != first[-1] == second[-1]
    assert found[5].command()[4].endswith("mlp.pt2")


def test_what_was_tuned_is_timed_again(
    networks: ModuleType, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    write_marks(networks)
    monkeypatch.setattr(networks, "RUNS", tmp_path / "runs")
    kept: dict[str, Any] = {}
    for name, minutes in (("mlp", 0.0), ("mlp", 5.0), ("mlp", 15.0), ("vit_s", 5.0)):
        networks.keep(kept, networks.Stage(name, "ansor", minutes), result(0.001, PEERS))
    for folder in ("mlp-chosen", "mlp"):
        (tmp_path / "runs" / "ansor" / folder).mkdir(parents=True)
        (tmp_path / "runs" / "ansor" / folder / "beside.json").touch()
    timed: list[str] = []

    def again(stage: Any, found: dict[str, Any]) -> dict[str, Any]:
        timed.append(f"{stage.network} {stage.name}")
        return {**found, "timed_at": "def5678"}

    monkeypatch.setattr(networks, "turns_again", again)
    monkeypatch.setattr("sys.argv", ["networks.py", "--turns-again"])
    networks.main()

    assert sorted(timed) == ["mlp ansor-0", "mlp ansor-15"]
    now = json.loads(networks.KEPT.read_text())[CPU]["mlp"]
    assert {name: found.get("timed_at") for name, found in now.items()} == {
        "ansor-0": "def5678",
        "ansor-5": None,
        "ansor-15": "def5678",
    }
    monkeypatch.setattr("sys.argv", ["networks.py", "--turns-again", "--networks", "vit_s"])
    with pytest.raises(SystemExit) as refused:
        networks.main()
    assert str(refused.value) == (
        f"{tmp_path / 'runs'}: expected runs of kept stages, found none of these; leave out --turns-again"
    )


def test_a_stage_that_is_kept_is_not_run_again(networks: ModuleType, monkeypatch: pytest.MonkeyPatch) -> None:
    ran: list[str] = []

    def run(stage: Any) -> dict[str, Any]:
        ran.append(f"{stage.network} {stage.name}")
        if stage.name == "ansor-5":
            raise KeyboardInterrupt
        return result(0.001, PEERS)

    write_marks(networks)
    monkeypatch.setattr(networks, "run", run)
    command = ["networks.py", "--networks", "mlp", "--frameworks", "ansor", "--minutes", "0,5"]
    monkeypatch.setattr("sys.argv", command)
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            networks.main()

    assert ran == ["mlp ansor-0", "mlp ansor-5", "mlp ansor-5"]
    assert list(json.loads(networks.KEPT.read_text())[CPU]["mlp"]) == ["ansor-0"]
    monkeypatch.setattr(networks, "this_cpu", lambda: Cpu("another CPU", "llvm", 2, "b"))
    with pytest.raises(KeyboardInterrupt):
        networks.main()
    assert ran[3:] == ["mlp ansor-0", "mlp ansor-5"]
    assert "2.00x" in networks.PAGE.read_text()
    assert networks.PICTURE.read_bytes().startswith(b"\x89PNG")


def test_the_table_compares_with_the_fastest_sound_peer(networks: ModuleType) -> None:
    kept: dict[str, Any] = {}
    for network, minutes, ours in (("a", 0, 0.004), ("a", 5, 0.001), ("b", 5, 0.0005)):
        networks.keep(kept, networks.Stage(network, "ansor", minutes), result(ours, PEERS))
    assert networks.read_kept() == kept
    kept[CPU]["b"]["ansor-5"]["ours"]["turns"] = [0.0005, 0.0004, 0.0005]

    lines = networks.page(kept, TITLES)

    assert lines[1:4] == [f"![speed beside the fastest peer, {CPU}](networks.png)", "", f"### {CPU}"]
    heads, _, a, b, mean = (line for line in lines if line.startswith("|"))
    assert heads == (
        "| network | onnxruntime, ms | torch, ms | TVM untuned, ms | at the peak, ms | "
        "ansor, 0 programs: ms | beside the fastest peer | ansor, 5 min: ms | beside the fastest peer |"
    )
    assert a == "| Network A | 2 | 1 | 8 | 1 | 4 | 0.50x | 1 | 2.00x |"
    assert b == "| Network B | 2 | 1 | 8 | 1 | - | - | 0.5 | 4.00x |"
    assert mean == "| geometric mean |  |  |  |  |  | 0.50x |  | 2.83x |"
    assert "- Network A: a.pt: torch: outputs differ" in lines
    [about] = [line for line in lines if ", commit abc1234; 2 threads. " in line]
    lowest = (
        "the lowest turn of each library, 3.16x in the geometric mean (2.00x Network A to 5.00x Network B)."
    )
    assert lowest in about
    assert "take 1.12 to 2.00 times the sum of their labels (median 1.25). " in about
    every = [line for line in networks.row_by_row(kept, TITLES) if line.startswith("| Network")]
    assert every == [
        "| Network A | ansor, 0 programs | abc1234 | abc1234 | 5 | - | 0.50x | 2.00 | 1.27 | 1 of 2 |",
        "| Network A | ansor, 5 min | abc1234 | abc1234 | 5 | - | 2.00x | 1.25 | 1.27 | 1 of 2 |",
        "| Network B | ansor, 5 min | abc1234 | abc1234 | 5 | - | 5.00x | 1.12 | 1.27 | 1 of 2 |",
    ]


def test_the_page_says_where_the_cores_were(networks: ModuleType) -> None:
    kept: dict[str, Any] = {}
    for network, trips in (("a", [1.2e-7, 1.4e-7, 1.1e-7]), ("b", [5.2e-7])):
        networks.keep(kept, networks.Stage(network, "ansor", 5), result(0.001, PEERS))
        kept[CPU][network]["ansor-5"]["ours"]["round_trips"] = trips
        kept[CPU][network]["ansor-5"]["timed_at"] = "def5678"
    about = "\n".join(networks.page(kept, TITLES))
    assert ", commit abc1234, def5678; 2 threads. " in about
    assert ": 0.12 to 0.12 us (Network A), 0.52 to 0.52 us (Network B). Inside the networks, " in about
    cells = [line.split(" | ")[2:6] for line in networks.row_by_row(kept, TITLES) if "| ansor, 5" in line]
    assert cells == [["abc1234", "def5678", "5", "0.12"], ["abc1234", "def5678", "5", "0.52"]]


def test_a_stage_without_measuring_that_ran_later_is_not_the_last(networks: ModuleType) -> None:
    kept: dict[str, Any] = {}
    for minutes, ours in ((5, 0.001), (0, 0.004)):
        networks.keep(kept, networks.Stage("a", "ansor", minutes), result(ours, PEERS))

    assert list(networks.read_kept()[CPU]["a"]) == ["ansor-0", "ansor-5"]
    assert networks.page(kept, TITLES) == networks.page(networks.read_kept(), TITLES)
    assert "the lowest turn of each library, 2.00x in" in "\n".join(networks.page(kept, TITLES))


def test_the_readme_says_the_mean_and_the_worst(networks: ModuleType) -> None:
    kept: dict[str, Any] = {}
    for network, minutes, ours in (("a", 0, 0.001), ("a", 5, 0.004), ("b", 5, 0.0005)):
        networks.keep(kept, networks.Stage(network, "ansor", minutes), result(ours, PEERS))

    [said] = [line for line in networks.summary(kept, TITLES) if line.startswith("*")]

    assert said.startswith("*a CPU, 5 minutes of tuning with ansor, ")
    assert "1.41x in the geometric mean of 2 networks (0.50x Network A to 4.00x Network B)" in said
    assert said.endswith("faster on 1. [Table](docs/networks.md#scoreboard).*")
    assert networks.summary({}, TITLES) == [""]


def test_the_readme_says_a_shorter_tuning_of_more_networks_too(networks: ModuleType) -> None:
    kept: dict[str, Any] = {}
    for network, minutes in (("a", 5), ("b", 5), ("a", 15)):
        networks.keep(kept, networks.Stage(network, "ansor", minutes), result(0.001, PEERS))
    said = [line for line in networks.summary(kept, TITLES) if line.startswith("*")]
    assert [line.partition(" of tuning")[0] for line in said] == ["*a CPU, 15 minutes", "*a CPU, 5 minutes"]

    networks.keep(kept, networks.Stage("b", "ansor", 15), result(0.001, PEERS))
    said = [line for line in networks.summary(kept, TITLES) if line.startswith("*")]
    assert [line.partition(" of tuning")[0] for line in said] == ["*a CPU, 15 minutes"]


def test_processors_have_tables_and_means_of_their_own(networks: ModuleType) -> None:
    kept: dict[str, Any] = {"older CPU": {}}
    for network, ours in (("a", 0.004), ("b", 0.0005)):
        networks.keep(kept, networks.Stage(network, "ansor", 5), result(ours, PEERS))
    kept["another CPU"] = {"a": {"ansor-5": kept[CPU]["a"]["ansor-5"]}}

    page, readme = networks.page(kept, TITLES), networks.summary(kept, TITLES)

    assert [line for line in page if line.startswith("### ")] == [f"### {CPU}", "### another CPU"]
    means = [line.split("|")[-2].strip() for line in page if line.startswith("| geometric mean")]
    assert means == ["1.41x", "0.50x"]
    said = [line for line in readme if line.startswith("*")]
    assert [line.partition(",")[0] for line in said] == [f"*{CPU}", "*another CPU"]
    assert "1.41x in the geometric mean of 2 networks" in said[0]
    assert "0.50x in the geometric mean of 1 networks" in said[1]


def test_an_empty_scoreboard_says_so(networks: ModuleType) -> None:
    assert networks.page({}, TITLES) == networks.row_by_row({}, TITLES) == ["", "Not measured yet.", ""]


def test_the_page_has_what_is_kept(networks: ModuleType) -> None:
    path = ROOT / "docs" / "results" / "networks.json"
    kept = json.loads(path.read_text()) if path.exists() else {}
    titles = {name: network.title for name, network in networks.NETWORKS.items()}
    assert "\n".join(networks.page(kept, titles)) in (ROOT / "docs" / "networks.md").read_text()
    behind = ROOT / "docs" / "networks-more.md"
    assert "\n".join(networks.row_by_row(kept, titles)) in behind.read_text()
    assert "\n".join(networks.summary(kept, titles)) in (ROOT / "README.md").read_text()
