"""`torch.compile(model, backend="tlp_tvm")`: real graphs, compiled by TVM, beside what PyTorch computes."""

from __future__ import annotations

import json
import shutil
import threading
import warnings
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
import torch

from collected import QUICK
from compiled_graphs import TORCHS_OWN, compiled, empty_cache, network  # noqa: F401
from tlp_tvm.errors import TuningError
from tlp_tvm.files import write_whole
from tlp_tvm.metaschedule import backend_counts
from tlp_tvm.metaschedule.from_torch.repairs import repair
from tlp_tvm.metaschedule.search import zero_shot
from tlp_tvm.metaschedule.search.block_names import block_names, renamed
from tlp_tvm.metaschedule.torch_compile import compile_graph
from tlp_tvm.metaschedule.torch_compile.backend_options import BackendOptions
from tlp_tvm.metaschedule.torch_compile.kept_graphs import cache
from tlp_tvm.model.checkpoint import SHIPPED
from tlp_tvm.model.trees.store_trees import read_store_trees
from tlp_tvm.records.source import WORKLOADS
from tlp_tvm.tuning.flow import tune_network
from tlp_tvm.tuning.tune_settings import TuneSettings

pytestmark = pytest.mark.filterwarnings(TORCHS_OWN)


@torch.inference_mode()
def test_a_network_computes_the_same_and_is_kept_on_the_disk() -> None:
    module, x = network(), torch.randn(2, 3, 12, 12)
    torch.testing.assert_close(compiled(module)(x), module(x))
    assert (backend_counts().compiled, backend_counts().kept) == (1, 0)

    torch.compiler.reset()
    torch.testing.assert_close(compiled(module)(x), module(x))
    assert (backend_counts().compiled, backend_counts().kept) == (2, 1)

    torch.compiler.reset()
    with torch.no_grad():
        other = network()
        other.second.bias.add_(1)  # other parameters: another graph
    torch.testing.assert_close(compiled(other)(x), other(x))
    assert backend_counts().kept == 1


@torch.inference_mode()
def test_truth_values_are_counted_as_torch_counts_them() -> None:
    def counts(x: torch.Tensor) -> tuple[torch.Tensor, ...]:  # the first one is in the masks of decoders
        positive = x > 0
        return positive.cumsum(-1), positive.sum(-1), positive.sum(), x.to(torch.int32).sum(-1)

    x = torch.randn(3, 70)
    for found, expected in zip(compiled(counts)(x), counts(x), strict=True):
        assert found.dtype == expected.dtype == torch.int64
        assert torch.equal(found, expected)
    assert backend_counts().compiled == 1


@torch.inference_mode()
@pytest.mark.parametrize(
    ("kernel", "cut"),
    [
        ((200, 200), [7, 7]),
        ((200,), [7, 7]),
        ((7, 200), [7, 7]),
        ((7, 7), [7, 7]),
        ((5, 200), [5, 200]),
        ((5, 5), [5, 5]),
    ],
)
def test_a_mean_over_more_than_the_image_is_one_over_the_image(
    kernel: tuple[int, ...], cut: list[int]
) -> None:
    class Pooling(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return torch.ops.aten.avg_pool2d(x, kernel, ceil_mode=True)

    x, pooling = torch.randn(2, 4, 7, 7), Pooling()
    program = torch.export.export(pooling, (x,)).run_decompositions()
    repair(program)
    (node,) = [each for each in program.graph.nodes if "avg_pool2d" in str(each.target)]
    assert list(node.args[1]) == cut
    torch.testing.assert_close(program.module()(x), pooling(x))
    torch.testing.assert_close(compiled(pooling)(x), pooling(x))


def test_a_mean_over_an_image_of_open_size_stays_as_it_is() -> None:
    pooling, x = torch.nn.AvgPool2d(200, ceil_mode=True), torch.randn(2, 4, 7, 7)
    width = torch.export.Dim("width", min=2, max=100)
    program = torch.export.export(pooling, (x,), dynamic_shapes=({3: width},)).run_decompositions()
    repair(program)
    (node,) = [each for each in program.graph.nodes if "avg_pool2d" in str(each.target)]
    assert list(node.args[1]) == [200, 200]


class Pooled(torch.nn.Module):
    """As Swin ends; TVM brings no convolution to channels last beside its pooling."""

    def __init__(self) -> None:
        super().__init__()
        self.patches = torch.nn.Conv2d(3, 8, 4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """(N, 3, H, W) -> (N, 8)."""
        return torch.nn.functional.adaptive_avg_pool1d(self.patches(x).flatten(2), 1).flatten(1)


@torch.inference_mode()
def test_a_pooling_of_one_axis_is_computed() -> None:
    torch.manual_seed(0)
    module, x = Pooled().eval(), torch.randn(1, 3, 32, 32)
    torch.testing.assert_close(compiled(module)(x), module(x))
    assert backend_counts().compiled == 1


@torch.inference_mode()
def test_half_a_graph_on_the_disk_is_compiled_anew() -> None:
    module, x = network(), torch.randn(2, 3, 12, 12)
    compiled(module)(x)
    (library,) = cache().glob("graphs/*/graph.so")
    write_whole(library, library.read_bytes()[:1000])

    torch.compiler.reset()
    torch.testing.assert_close(compiled(module)(x), module(x))
    assert backend_counts().kept == 0


@torch.inference_mode()
def test_what_was_chosen_another_way_is_chosen_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    module, x = network(), torch.randn(2, 3, 12, 12)
    compiled(module)(x)
    before = set(cache().glob("choices/*"))
    torch.compiler.reset()
    monkeypatch.setattr(zero_shot, "WAY", "drawn from a hat")
    torch.testing.assert_close(compiled(module)(x), module(x))
    assert backend_counts().kept == 0
    assert len(set(cache().glob("choices/*")) - before) == 1


@torch.inference_mode()
def test_what_a_model_of_before_chose_is_chosen_anew(tmp_path: Path) -> None:
    module, x = network(), torch.randn(2, 3, 12, 12)
    shutil.copytree(SHIPPED / "x86-metaschedule", tmp_path / "mine")
    compiled(module, model=str(tmp_path / "mine"))(x)
    trees = read_store_trees(tmp_path / "mine")
    assert trees is not None
    replace(trees, leaves=-trees.leaves).save(tmp_path / "mine")
    before = set(cache().glob("choices/*"))
    torch.compiler.reset()
    torch.testing.assert_close(compiled(module, model=str(tmp_path / "mine"))(x), module(x))
    assert backend_counts().kept == 0
    assert len(set(cache().glob("choices/*")) - before) == 1


@torch.inference_mode()
def test_a_model_that_is_not_there_leaves_the_graph_to_pytorch() -> None:
    module, x = network(), torch.randn(2, 3, 12, 12)
    sentence = "nowhere: expected a shipped model .* or an exported .pt file, found none of them"
    with pytest.warns(RuntimeWarning, match=sentence):
        torch.testing.assert_close(compiled(module, model="nowhere")(x), module(x))
    assert backend_counts().compiled == 0


def test_parameters_that_change_are_seen() -> None:
    module, x = network(), torch.randn(2, 3, 12, 12)
    fast = compiled(module)
    with torch.no_grad():
        before = fast(x)
        module.second.bias.copy_(torch.arange(5.0))
        after = fast(x)
        torch.testing.assert_close(after, module(x))
    assert not torch.allclose(before, after)


def test_training_goes_on_as_pytorch_has_it() -> None:
    module, x = network(), torch.randn(2, 3, 12, 12)
    with pytest.warns(
        RuntimeWarning, match="found gradients to be computed; call the model in torch.inferen"
    ):
        compiled(module)(x)[:, 0].sum().backward()
    assert module.first.weight.grad is not None
    assert backend_counts().compiled == 0


@torch.inference_mode()
def test_what_tvm_lacks_runs_as_pytorch_runs_it_and_is_counted() -> None:
    x = torch.randn(4, 4)
    with pytest.warns(RuntimeWarning, match="runs as PyTorch runs it: TVM: .*linalg_"):
        found = compiled(lambda x: torch.linalg.eigvalsh(x @ x.T) + 1)(x)
    torch.testing.assert_close(found, torch.linalg.eigvalsh(x @ x.T) + 1)
    assert backend_counts().compiled == 0
    assert sum(backend_counts().eager.values()) == 1


@torch.inference_mode()
def test_arguments_changed_in_place_are_left_to_pytorch() -> None:
    x = torch.ones(4, 4)
    with pytest.warns(RuntimeWarning, match="changes its arguments in place"):
        compiled(lambda x: x.add_(1) * 2)(x)
    assert x[0, 0] == 2


@torch.inference_mode()
def test_random_numbers_are_left_to_pytorch() -> None:
    x = torch.ones(64, 64)
    with pytest.warns(RuntimeWarning, match="it draws random numbers"):
        found = compiled(lambda x: torch.nn.functional.dropout(x, 0.5, training=True) + 1)(x)
    assert 1000 < int((found == 1).sum()) < 3000


@torch.inference_mode()
def test_autocast_is_left_to_pytorch() -> None:
    module, x = network(), torch.randn(2, 3, 12, 12)
    with torch.autocast("cpu", torch.bfloat16), pytest.warns(RuntimeWarning, match="expected no autocast"):
        assert compiled(module)(x).dtype == module(x).dtype


@torch.inference_mode()
def test_more_shapes_than_allowed_run_as_pytorch_runs_them() -> None:
    fast = compiled(lambda x: torch.relu(x) * 2, shapes=2)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        for rows in (2, 3):
            fast(torch.ones(rows, 4))
    many = [torch.ones(rows, 4) for rows in (4, 5)]  # torch makes one graph of all from the second shape on
    with pytest.warns(RuntimeWarning, match='at most 2 shapes of it, .* raise the option "shapes"'):
        found = [fast(x) for x in many]
    assert [float(each.sum()) for each in found] == [32, 40]


@torch.inference_mode()
def test_results_that_are_no_tensors_and_views_that_lie_askew() -> None:
    def graph(x: torch.Tensor) -> tuple[torch.Tensor, int, None, torch.Tensor]:
        return x * 2, 3, None, x.sum()

    askew = torch.arange(65.0)[1:]
    doubled, three, nothing, total = compiled(graph)(askew)
    torch.testing.assert_close(doubled, askew * 2)
    assert (three, nothing, float(total)) == (3, None, float(askew.sum()))
    assert backend_counts().compiled == 1


@torch.inference_mode()
def test_threads_take_turns() -> None:
    module = network()
    fast, inputs = compiled(module), [torch.randn(2, 3, 12, 12) for _ in range(4)]
    fast(inputs[0])
    found: dict[int, torch.Tensor] = {}

    def run(i: int) -> None:
        with torch.inference_mode():
            for _ in range(20):
                found[i] = fast(inputs[i])

    threads = [threading.Thread(target=run, args=(i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for i, x in enumerate(inputs):
        torch.testing.assert_close(found[i], module(x))


@torch.inference_mode()
def test_measured_programs_of_a_folder_are_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, x = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU()).eval(), torch.randn(16, 64)
    torch.export.save(torch.export.export(module, (x,)), tmp_path / "network.pt2")
    settings = TuneSettings(
        network=str(tmp_path / "network.pt2"), out=tmp_path / "run", model="random", trials=4, turns=1,
        framework="metaschedule", measure=QUICK, measures_per_round=4,
    )  # fmt: skip
    assert tune_network(settings).trials >= 4
    assert (tmp_path / "run" / WORKLOADS).exists()

    chosen: list[int] = []
    choose = compile_graph.choose_programs

    def spy(tasks: Any, *rest: Any, **more: Any) -> Any:
        chosen.append(len(tasks))
        return choose(tasks, *rest, **more)

    monkeypatch.setattr(compile_graph, "choose_programs", spy)
    torch.testing.assert_close(compiled(module, database=str(tmp_path / "run"))(x), module(x))
    assert chosen == [0]


def normed(layers: int) -> torch.nn.Sequential:
    """A layer norm whose blocks TVM calls by the number of layers before it."""
    before = [torch.nn.Linear(48, 48) for _ in range(layers)]
    return torch.nn.Sequential(*before, torch.nn.LayerNorm(48)).eval()


@torch.inference_mode()
def test_what_was_chosen_in_one_graph_fits_equal_tasks_of_others(monkeypatch: pytest.MonkeyPatch) -> None:
    names: list[list[str]] = []
    choose = zero_shot.choose_program

    def spy(task: Any, *rest: Any) -> str:
        names.append(block_names(task.module))
        return choose(task, *rest)

    monkeypatch.setattr(zero_shot, "choose_program", spy)
    x = torch.randn(20, 48)
    for layers in (0, 1, 2):
        module = normed(layers)
        torch.testing.assert_close(compiled(module)(x), module(x))
    assert not backend_counts().eager
    assert sum("T_layer_norm" in each for each in names) == 1


@torch.inference_mode()
def test_programs_measured_in_one_network_fit_equal_tasks_of_others(tmp_path: Path) -> None:
    x = torch.randn(20, 48)
    torch.export.save(torch.export.export(normed(0), (x,)), tmp_path / "network.pt2")
    settings = TuneSettings(
        network=str(tmp_path / "network.pt2"), out=tmp_path / "run", model="random", trials=4, turns=1,
        framework="metaschedule", measure=QUICK, measures_per_round=4,
    )  # fmt: skip
    assert tune_network(settings).trials >= 4
    module = normed(1)
    torch.testing.assert_close(compiled(module, database=str(tmp_path / "run"))(x), module(x))
    assert not backend_counts().eager


def test_blocks_that_a_schedule_made_are_renamed_too() -> None:
    def trace(*names: str) -> str:
        steps = [["GetSBlock", [], [name, "main"], ["b0"]] for name in names]
        return json.dumps([[*steps, ["GetLoops", ["b0"], [], ["l1"]]], []], separators=(",", ":"))

    before, after = ["lv1_sum", "lv1_sum_1", "T_add"], ["lv7_sum", "x", "T_add"]
    given = trace("lv1_sum", "lv1_sum_1_update", "lv1_sum_update", "T_add", "root")
    assert renamed(given, before, after) == trace("lv7_sum", "x_update", "lv7_sum_update", "T_add", "root")


@torch.inference_mode()
def test_minutes_tune_a_graph_before_its_first_run(monkeypatch: pytest.MonkeyPatch) -> None:
    module, x = torch.nn.Sequential(torch.nn.Linear(64, 128), torch.nn.ReLU()).eval(), torch.randn(16, 64)
    asked: list[TuneSettings] = []

    def four_programs(settings: TuneSettings) -> Any:
        asked.append(settings)
        return tune_network(replace(settings, trials=4, measure=QUICK, measures_per_round=4, minutes=0.0))

    monkeypatch.setattr(compile_graph, "tune_network", four_programs)
    torch.testing.assert_close(compiled(module, minutes=10)(x), module(x))
    (run,) = cache().glob("tunings/*/run")
    assert len((run / "database_tuning_record.json").read_text().splitlines()) >= 4
    [settings] = asked
    assert settings.minutes == 10
    # the network is built once, with what was measured, and not timed beside TVM's own schedules
    assert not (run / "tuned.so").exists()
    assert json.loads((run / "run.json").read_text())["end_to_end"] is None


@torch.inference_mode()
def test_a_tuning_that_finds_nothing_leaves_the_choice_to_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(*_: Any, **__: Any) -> Any:
        raise TuningError("expected programs that run, found none")

    monkeypatch.setattr(compile_graph, "tune_network", nothing)
    module, x = torch.nn.Linear(64, 128).eval(), torch.randn(16, 64)
    torch.testing.assert_close(compiled(module, minutes=10)(x), module(x))
    assert backend_counts().compiled == 1


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"minuts": 3}, 'options: expected some of minutes, database, .*, found "minuts"'),
        ({"minutes": -1}, 'expected a number that is not negative for "minutes", found -1'),
        ({"minutes": True}, 'expected a number that is not negative for "minutes", found True'),
        ({"shapes": 0}, 'expected a positive integer for "shapes", found 0'),
        ({"database": "nowhere"}, "expected a folder for \"database\", found 'nowhere'"),
        ({"model": 3}, 'expected text for "model", found 3'),
        ({"never_slower": 1}, 'expected True or False for "never_slower", found 1'),
    ],
)
def test_options_that_are_wrong_are_refused(options: dict[str, Any], sentence: str) -> None:
    with pytest.raises(TuningError, match=sentence):
        BackendOptions.of(options)


@torch.inference_mode()
def test_a_function_without_blocks_of_its_own_keeps_its_weights_as_they_are() -> None:
    def fold(x: torch.Tensor) -> torch.Tensor:
        return torch.nn.functional.fold(x, (8, 8), 2, stride=2)

    x = torch.randn(1, 32, 16)
    torch.testing.assert_close(compiled(fold)(x), fold(x))
    assert (backend_counts().compiled, sum(backend_counts().eager.values())) == (1, 0)
