"""What is done to an exported network before MetaSchedule sees it."""

from __future__ import annotations

import collections
import re
from typing import Any

import numpy as np
import pytest
import torch

from tlp_tvm.layout import FeatureLayout
from tlp_tvm.metaschedule.graph.constants import with_constants_folded
from tlp_tvm.metaschedule.graph.prepared import prepared
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.loading.targets import target_of
from tlp_tvm.metaschedule.networks import end_to_end
from tlp_tvm.metaschedule.networks.builtin import relax_of, tasks_of
from tlp_tvm.metaschedule.networks.planning import TraceTask
from tlp_tvm.metaschedule.reading.traces import applied, extract_traces
from tlp_tvm.metaschedule.search.tvms_sample import drawn, ready_search
from tlp_tvm.metaschedule.search.zero_shot import MOST_WORK, POPULATION, choose_program, operations

pytestmark = pytest.mark.filterwarnings("ignore:.isinstance.treespec, LeafSpec:FutureWarning")  # torch's own


def softmax_of(size: int) -> tuple[Any, Any]:
    """A network of one softmax, and a target."""
    program = torch.export.export(torch.nn.Softmax(-1), (torch.randn(1, size),))
    return prepared(*relax_of(program)), target_of("llvm -num-cores=2")


def result_of(module: Any, x: torch.Tensor) -> Any:
    """What a network of one input gives."""
    target = target_of("llvm -num-cores=2")
    (name,) = end_to_end.random_inputs(module)
    (found,) = end_to_end.run_once(end_to_end.compiled(module, {}, target), {name: x.numpy()}, target)
    return found


def prepared_alike(network: torch.nn.Module, x: torch.Tensor) -> Any:
    """A network as MetaSchedule gets it, which gives what torch gives."""
    module = prepared(*relax_of(torch.export.export(network.eval(), (x,))))
    np.testing.assert_allclose(result_of(module, x), network(x).detach().numpy(), rtol=1e-4, atol=1e-5)
    return module


def failing(_layouts: Any) -> Any:
    """TVM's conversion of layouts, where it cannot."""
    raise RuntimeError("std::bad_alloc")


def test_batch_norms_are_folded_and_convolutions_have_channels_last() -> None:
    torch.manual_seed(0)
    norm = torch.nn.BatchNorm2d(8)
    norm.running_mean, norm.running_var = torch.randn(8), torch.rand(8) + 0.5
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3, padding=1), norm, torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, groups=8)
    ).eval()
    x = torch.randn(1, 3, 10, 10)

    module = prepared_alike(network, x)

    text = module.script()
    assert "batch_norm" not in text
    assert len(re.findall(r'conv2d\([^\n]*data_layout="NHWC"', text)) == 2


@pytest.mark.parametrize("fails", [False, True])
@pytest.mark.parametrize(("convolution", "axes", "layout"), [("Conv1d", 1, "NWC"), ("Conv3d", 3, "NDHWC")])
def test_lines_and_volumes_have_channels_last_too(
    convolution: str, axes: int, layout: str, fails: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch.manual_seed(0)
    if fails:
        monkeypatch.setattr(load_tvm().relax.transform, "ConvertLayout", failing)
    make = getattr(torch.nn, convolution)
    network = torch.nn.Sequential(
        make(3, 8, 3, padding=1), torch.nn.ReLU(), make(8, 8, 3, stride=2, groups=2), torch.nn.Flatten()
    )
    x = torch.randn(1, 3, *(7, 8, 9)[:axes])

    text = prepared_alike(network, x).script()

    assert len(re.findall(rf'{convolution.lower()}\([^\n]*data_layout="{layout}"', text)) == 2
    assert text.count("R.permute_dims") == 2, "of what is given, and of what is flattened"
    given = torch.export.export(network.eval(), (x,))
    assert f'data_layout="{layout}"' not in prepared(*relax_of(given), earlier=True).script()


@pytest.mark.parametrize(
    ("how", "slices"),
    [
        ({"kernel_size": 4, "stride": 2, "padding": 1}, 1),
        ({"kernel_size": 2, "stride": 2}, 0),
        ({"kernel_size": (3, 5), "stride": (2, 3), "padding": (1, 0), "output_padding": (1, 0)}, 1),
        ({"kernel_size": 3, "padding": 1}, 0),
    ],
)
def test_transposed_convolutions_are_convolutions(how: dict[str, Any], slices: int) -> None:
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.ReLU(), torch.nn.ConvTranspose2d(8, 6, **how), torch.nn.ReLU()
    )

    text = prepared_alike(network, torch.randn(2, 3, 7, 8)).script()

    assert text.count("R.nn.conv2d(") == 2
    assert "conv2d_transpose" not in text
    assert text.count("R.strided_slice") == slices
    copies = [
        axes for axes in re.findall(r"permute_dims\([^\n]*axes=\[([^]]*)\]", text) if axes.count(",") == 3
    ]
    assert copies == ["0, 2, 3, 1", "0, 3, 1, 2"], "of what is given and of the result"


def test_transposed_convolutions_in_groups_stay_with_channels_first() -> None:
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 4, 3), torch.nn.ReLU(), torch.nn.ConvTranspose2d(4, 6, 4, stride=2, groups=2)
    )

    text = prepared_alike(network, torch.randn(1, 3, 7, 7)).script()

    assert re.search(r'conv2d_transpose\([^\n]*data_layout="NCHW"', text)


def test_programs_that_compute_over_and_over_are_not_chosen() -> None:
    tasks = [TraceTask(task) for task in tasks_of(*softmax_of(1000))]
    (task,) = [task for task in tasks if "softmax" in task.desc]

    def of_most_work(embeddings: np.ndarray) -> np.ndarray:
        return np.array([ranks[row.tobytes()] for row in embeddings], np.float32)

    context = ready_search(task, 1, POPULATION)
    drawn_ones = drawn(context, POPULATION)
    work = [operations(program.mod) for program in drawn_ones]
    rows = extract_traces(drawn_ones, FeatureLayout.preset("metaschedule"))
    ranks = collections.defaultdict(
        float, {row.tobytes(): each for row, each in zip(rows, work, strict=True)}
    )
    assert max(work) > 100 * task.flop

    chosen = applied(task.module, choose_program(task, of_most_work, 0, 1))
    assert operations(chosen.mod) <= MOST_WORK * task.flop


def test_what_weights_alone_give_is_computed_as_tvm_computes_it() -> None:
    torch.manual_seed(0)
    norm = torch.nn.BatchNorm2d(8)
    norm.running_mean, norm.running_var = torch.randn(8), torch.rand(8) + 0.5
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), norm).eval()
    module, parameters = relax_of(torch.export.export(network, (torch.randn(1, 3, 10, 10),)))
    tvm = load_tvm()
    transform = tvm.relax.transform
    bound = [transform.BindParams("main", parameters), transform.FoldBatchnormToConv2D()]
    raw = tvm.transform.Sequential(bound)(module)

    ours, theirs = with_constants_folded(raw), transform.FoldConstant()(raw)

    clean = tvm.transform.Sequential([transform.CanonicalizeBindings(), transform.DeadCodeElimination()])
    tvm.ir.assert_structural_equal(clean(ours), clean(theirs))


@pytest.mark.parametrize(
    ("widths", "value", "stays"),
    [
        ((0, 0, 0, 0), 0.0, False),
        ((0, 0, 0, 0), 2.0, False),
        ((0, 1, 2, 3), 0.0, False),
        ((0, 1, 2, 3), 2.0, True),
        ((-1, 1, 2, 3), 0.0, True),
        ((1, 1, 2, 3, 0, 2), 0.0, True),
    ],
)
def test_zeros_around_images_are_padding_of_convolutions(
    widths: tuple[int, ...], value: float, stays: bool
) -> None:
    class Padded(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before = torch.nn.Conv2d(3, 8, 3)
            self.after = torch.nn.Conv2d(8 if len(widths) < 6 else 10, 6, 3, stride=2, padding=(1, 0))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            padded = torch.nn.functional.pad(torch.relu(self.before(x)), widths, "constant", value)
            return self.after(padded)

    torch.manual_seed(0)
    network, x = Padded().eval(), torch.randn(2, 3, 11, 12)
    module = prepared_alike(network, x)

    assert ("R.nn.pad" in module.script()) == stays


def test_what_is_done_number_by_number_keeps_the_channels_last() -> None:
    class Block(torch.nn.Module):
        """As in MobileNetV2, and as in ConvNeXt."""

        def __init__(self) -> None:
            super().__init__()
            self.first, self.second = torch.nn.Conv2d(3, 8, 3), torch.nn.Conv2d(8, 8, 3, padding=1)
            self.scale = torch.nn.Parameter(torch.randn(8, 1, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            x = torch.clip(self.first(x), 0.0, 0.6)
            after = torch.nn.functional.layer_norm(self.second(x).permute(0, 2, 3, 1), (8,)).permute(
                0, 3, 1, 2
            )
            return self.second(self.scale * after + x).flatten(1)

    torch.manual_seed(0)
    network, x = Block().eval(), torch.randn(2, 3, 10, 12)
    module = prepared_alike(network, x)

    text = module.script()
    assert text.count("R.permute_dims") == 2, "of what is given, and of what is flattened"


@pytest.mark.parametrize(
    "formula",
    [
        lambda x: torch.add(x, x * x, alpha=0.3),
        lambda x: torch.sub(x, x * x, alpha=0.3),
        lambda x: torch.rsub(x, x * x, alpha=3),
        lambda x: torch.rsub(x, 2.0, alpha=3),
        lambda x: torch.sub(x, 2.0, alpha=3),
        lambda x: torch.add(x, x * x),
    ],
)
def test_sums_have_their_factor(formula: Any) -> None:
    class Sum(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return formula(x)  # type: ignore[no-any-return]

    torch.manual_seed(0)
    prepared_alike(Sum(), torch.randn(3, 5))


def test_hardswish_keeps_the_channels_last() -> None:
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(3, 8, 3), torch.nn.Hardswish(), torch.nn.Conv2d(8, 8, 3), torch.nn.Hardsigmoid()
    )

    text = prepared_alike(network, torch.randn(1, 3, 9, 8)).script()

    assert text.count("R.permute_dims") == 2, "of what is given and of the result"


def test_channels_are_last_where_the_conversion_of_tvm_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    network = torch.nn.Sequential(
        torch.nn.Conv2d(4, 8, 3, stride=2, padding=(1, 0)),
        torch.nn.ReLU(),
        torch.nn.Conv2d(8, 8, 3, groups=8),
    ).eval()
    x = torch.randn(1, 4, 11, 10)
    monkeypatch.setattr(load_tvm().relax.transform, "ConvertLayout", failing)

    module = prepared_alike(network, x)

    text = module.script()
    assert len(re.findall(r'conv2d\([^\n]*data_layout="NHWC"', text)) == 2
    assert text.count("R.permute_dims") == 2, "of what is given, and of what the network gives"


def test_activation_and_residual_sum_are_done_to_the_matrix_of_a_linear_layer() -> None:
    class Block(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.wide, self.back = torch.nn.Linear(8, 16), torch.nn.Linear(16, 8)
            self.scale = torch.nn.Parameter(torch.randn(1, 5, 1))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            wide = torch.nn.functional.gelu(self.wide(x), approximate="tanh") * 0.5
            return torch.nn.functional.relu((self.back(wide) + x) * self.scale)

    torch.manual_seed(0)
    network, x = Block().eval(), torch.randn(2, 5, 8)
    module = prepared_alike(network, x)

    shapes = re.findall(r'Tensor\(\(([0-9, ]+)\), dtype="float32"\) = R\.([a-z_.]+)', module.script())
    found = {name: len(shape.split(",")) for shape, name in shapes}
    assert (found["nn.gelu_tanh"], found["matmul"], found["nn.relu"]) == (2, 2, 3)


def test_convolutions_of_one_pixel_are_products_that_end_what_is_fused() -> None:
    class Gated(torch.nn.Module):
        """As in EfficientNet."""

        def __init__(self) -> None:
            super().__init__()
            self.squeeze, self.expand = torch.nn.Conv2d(8, 4, 1), torch.nn.Conv2d(4, 8, 1)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            gate = self.expand(torch.relu(self.squeeze(x.mean((2, 3), keepdim=True))))
            return x * torch.sigmoid(gate)

    torch.manual_seed(0)
    network, x = Gated().eval(), torch.randn(2, 8, 6, 5)
    module = prepared_alike(network, x)

    text = module.script()
    assert "conv2d" not in text
    assert not any(
        "matmul" in task.task_name and "multiply" in task.task_name
        for task in tasks_of(module, target_of("llvm -num-cores=2"))
    )


@pytest.mark.parametrize(
    ("axes", "kept", "product"),
    [((2, 3), True, True), ((2, 3), False, True), ((1,), True, False), ((0, 3), False, False)],
)
def test_means_over_pixels_are_products(axes: tuple[int, ...], kept: bool, product: bool) -> None:
    class Mean(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.before = torch.nn.Conv2d(3, 8, 3)

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return self.before(x).mean(axes, keepdim=kept)

    torch.manual_seed(0)
    network, x = Mean().eval(), torch.randn(2, 3, 10, 12)
    module = prepared_alike(network, x)

    assert ("matmul" in module.script()) == product


def test_another_shape_of_the_same_numbers_is_no_task() -> None:
    network = torch.nn.Sequential(torch.nn.Softmax(-1), torch.nn.Flatten(), torch.nn.Softmax(-1))
    program = torch.export.export(network, (torch.randn(2, 3, 5),))

    tasks = tasks_of(prepared(*relax_of(program)), target_of("llvm -num-cores=2"))

    assert len(tasks) == 2
    assert all("softmax" in task.task_name for task in tasks)


@pytest.mark.parametrize("open_batch", [False, True])
def test_means_of_other_numbers_or_open_shapes_stay_means(open_batch: bool) -> None:
    network = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.AdaptiveAvgPool2d(1)).eval()
    x = torch.randn(2, 3, 10, 10)
    if not open_batch:
        network, x = network.double(), x.double()
    shapes = ({0: torch.export.Dim("n", min=2, max=8)},) if open_batch else None
    program = torch.export.export(network, (x,), dynamic_shapes=shapes)

    text = prepared(*relax_of(program)).script()

    assert "R.mean" in text
    assert "matmul" not in text
