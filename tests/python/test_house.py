"""The house is what its papers say: versions, pins, links, commands, and a walk that leaves out no room."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
from importlib import metadata
from pathlib import Path

import pytest

import tlp_tvm

ROOT = Path(__file__).parents[2]
PAPERS = [
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "docs/architecture.md",
    "docs/benchmarks.md",
    "docs/guide.md",
    "docs/networks.md",
    "docs/networks-more.md",
    "docs/results.md",
    "docs/results-more.md",
    "docs/search.md",
    "docs/search-more.md",
    "datasets/README.md",
]


def read(path: str) -> str:
    return (ROOT / path).read_text(encoding="utf-8")


def normal(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def pins(*papers: str) -> dict[str, str]:
    text = "\n".join(read(paper) for paper in papers)
    return {normal(name): pin for name, pin in re.findall(r"^([\w.-]+)==(\S+)", text, re.MULTILINE)}


def test_every_required_package_is_pinned() -> None:
    required = {re.split(r"[^\w.-]", requirement)[0] for requirement in metadata.requires("tlp-tvm") or ()}
    assert {"torch", "bitblas", "ruff"} <= required
    pinned = pins("constraints.txt", "constraints-metaschedule.txt")
    assert {normal(name) for name in required} - set(pinned) == set()


def test_every_pin_is_installed() -> None:
    for name, pin in pins("constraints.txt").items():
        assert metadata.version(name).split("+")[0] == pin, name


def test_the_version_is_the_same_everywhere() -> None:
    [pyproject] = re.findall(r'^version = "(.*)"', read("pyproject.toml"), re.MULTILINE)
    [cmake] = re.findall(r"project\(tlp_tvm VERSION (\S+)", read("CMakeLists.txt"))
    changelog = re.findall(r"^## (\d+\.\d+\.\d+)", read("CHANGELOG.md"), re.MULTILINE)
    assert pyproject == cmake == tlp_tvm.__version__ == changelog[0]


@pytest.mark.parametrize("paper", PAPERS)
def test_links_lead_somewhere(paper: str) -> None:
    for target in re.findall(r"\]\((?!https?://)([^)#]+)", read(paper)):
        assert (ROOT / paper).parent.joinpath(target).exists(), target


def anchors(page: str) -> set[str]:
    """Of a page's headings, as they are linked to."""
    headings = re.findall(r"^#+ (.*)$", re.sub(r"(?ms)^```.*?^```", "", read(page)), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("paper", PAPERS)
def test_links_lead_to_headings(paper: str) -> None:
    for target, anchor in re.findall(r"\]\((?!https?://)([^)#]*)#([^)]+)\)", read(paper)):
        page = (ROOT / paper).parent.joinpath(target).resolve() if target else ROOT / paper
        assert anchor in anchors(page.relative_to(ROOT).as_posix()), f"{target}#{anchor}"


@pytest.mark.parametrize("paper", PAPERS)
def test_commands_exist(paper: str) -> None:
    text = read(paper)
    targets = re.findall(r"^([a-z-]+):", read("Makefile"), re.MULTILINE)
    commands = {path.stem for path in (ROOT / "python/tlp_tvm/cli").glob("*.py")}
    assert set(re.findall(r"\bmake ([a-z]+)[` \n]", text)) <= set(targets) | {"it"}
    assert set(re.findall(r"\btlp-tvm ([a-z]+)\b", text)) <= commands


def test_the_architecture_names_every_folder() -> None:
    text = read("docs/architecture.md")
    inner = ROOT / "python/tlp_tvm"
    folders = [*ROOT.glob("cpp/*/"), *inner.glob("*/"), *ROOT.glob("tests/*/"), *ROOT.glob("*/")]
    for folder in folders:
        name = folder.relative_to(ROOT).as_posix()
        is_ours = not folder.name.startswith((".", "_")) and name not in ("build", "dist", "runs")
        if not is_ours or not any(path.suffix != ".pyc" for path in folder.rglob("*.*")):
            continue
        floor = folder.name if folder.parent == inner else name  # the picture's names are those of floors
        assert re.search(rf"(?<![\w/]){re.escape(floor)}/", text), name


@pytest.mark.parametrize("model", ["epyc", "epyc-small"])
def test_the_results_say_of_a_shipped_model_what_its_card_says(model: str) -> None:
    metrics = json.loads(read(f"python/tlp_tvm/pretrained/{model}/config.json"))["metrics"]["test"]
    tops = {
        (row["platform"], row["network"]): [f"{row['top'][k]:.3f}" for k in ("1", "5")] for row in metrics
    }
    platforms = {platform for platform, _ in tops}
    assert len(platforms) == 3
    page = re.sub(r" \([\d.]+-[\d.]+\)", "", read("docs/results-more.md"))  # the intervals
    for platform in platforms:
        found = [*tops[platform, "all networks"], *tops[platform, "mean over tasks"]]
        assert f"| {' | '.join([platform, '47 all', model, *found])} |" in page, found


@pytest.mark.parametrize("paper", ["README.md", "docs/guide.md"])
def test_the_examples_run(paper: str) -> None:
    blocks = re.findall(r"^```python\n(.*?)^```", read(paper), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 2
    program = "\n".join(["import torch; torch.set_num_threads(1)", *blocks])
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=False, timeout=240
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("file", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda file: file.name)
def test_what_a_benchmark_imports_is_there(file: Path) -> None:
    """Without running any: they take hours, and some another environment."""
    rooms = ROOT / "python"
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if not isinstance(node, ast.ImportFrom) or not (node.module or "").startswith("tlp_tvm"):
            continue
        place = rooms / str(node.module).replace(".", "/")
        source = place / "__init__.py" if place.is_dir() else place.with_suffix(".py")
        assert source.exists() or node.module == "tlp_tvm._core", f"{file.name}:{node.lineno}: {node.module}"
        for alias in node.names:
            found = source.exists() and re.search(rf"\b{alias.name}\b", source.read_text(encoding="utf-8"))
            below = (place / f"{alias.name}.py").exists()
            assert found or below or node.module == "tlp_tvm._core", (
                f"{file.name}:{node.lineno}: {alias.name}"
            )
