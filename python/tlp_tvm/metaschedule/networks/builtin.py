"""Networks by name, the same names as Ansor's, in Relax; and files of torch.export."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from tlp_tvm import network_names
from tlp_tvm.errors import NetworkError, last_line_of
from tlp_tvm.metaschedule.from_torch.converters import converters
from tlp_tvm.metaschedule.from_torch.repairs import repair
from tlp_tvm.metaschedule.graph.fusing import fused, is_schedulable
from tlp_tvm.metaschedule.graph.prepared import prepared
from tlp_tvm.metaschedule.loading.locate import load_tvm
from tlp_tvm.metaschedule.networks.architectures import BUILDERS
from tlp_tvm.network_names import parse_name

EXPORTED = ".pt2"
"""End of a file that `torch.export.save` wrote."""


def network_from(name_or_path: str, *, earlier: bool = False) -> tuple[Any, dict[str, Any]]:
    """Build a built-in network with random parameters, the same at every call, or read an exported one.

    Args:
        name_or_path: e.g. "resnet_18-224", or a .pt2 file of `torch.export.save`.
        earlier: as `prepared` has it, for a file.

    Returns:
        The Relax module, and its parameters by name; an exported one's are constants of it.

    Raises:
        NetworkError: no network has that name here, or the file cannot be read.
    """
    if is_file(name_or_path):
        return _exported(Path(name_or_path), earlier)
    key, size, batch = parse_name(name_or_path)
    if key not in BUILDERS:
        raise NetworkError(
            f'expected a network that MetaSchedule\'s side has, found "{name_or_path}"; choose one of '
            f"{', '.join(BUILDERS)}, or a {EXPORTED} file"
        )
    return BUILDERS[key](size, batch)


def canonical_name(name: str) -> str:
    """The full name of a network; of a file, its name without the end."""
    return Path(name).stem if is_file(name) else network_names.canonical_name(name)


def is_file(name: str) -> bool:
    """Whether a network is one of a file."""
    return name.endswith(EXPORTED)


def relax_of(program: Any) -> tuple[Any, dict[str, Any]]:
    """A `torch.export.ExportedProgram`, which is changed in place, in Relax, and its parameters by name."""
    load_tvm()
    from tvm.relax.frontend import detach_params
    from tvm.relax.frontend.torch import from_exported_program

    from tlp_tvm.metaschedule.from_torch.meanings import put_meanings  # imports torch

    put_meanings(program)
    program = program.run_decompositions()
    put_meanings(program)  # of what others are made of
    repair(program)
    imported = from_exported_program(
        program, keep_params_as_input=True, custom_convert_map=converters(), run_ep_decomposition=False
    )
    module, parameters = detach_params(imported)
    names = [variable.name for variable in module["main"].params]
    values = parameters["main"]
    return module, dict(zip(names[len(names) - len(values) :], values, strict=True))


def tasks_of(module: Any, target: Any, *, usual: bool = False) -> list[Any]:
    """The tuning tasks of a network, `ms.ExtractedTask`s with their weights.

    Args:
        module: Relax module.
        target: TVM's target.
        usual: as `fused` has it.
    """
    load_tvm()
    from tvm.s_tir.meta_schedule.relax_integration import extract_tasks

    tasks = extract_tasks(fused(module, target, usual=usual), target)
    return [task for task in tasks if is_schedulable(task.dispatched[0], target)]


def _exported(path: Path, earlier: bool) -> tuple[Any, dict[str, Any]]:
    import torch

    try:
        program = torch.export.load(path)
    except Exception as error:
        raise NetworkError(
            f"{path}: expected a program that torch.export.save wrote, found: {last_line_of(error)}"
        ) from error
    try:
        imported = relax_of(program)
    except Exception as error:  # importers refuse in many ways
        raise NetworkError(
            f"{path}: expected a network of operators that TVM can import, found: {last_line_of(error)}; "
            "export it without these"
        ) from error
    return prepared(*imported, earlier=earlier), {}
