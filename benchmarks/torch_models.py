"""Twenty models of `transformers`, run by `torch.compile(model, backend="tlp_tvm")` as a user would.

Question: does the backend take real models, compute the same, and how fast, without measuring anything?
Set-up: configurations with random weights, nothing fetched; each model in processes of its own, first with an
empty cache, then with what the first left there. Eager, the peers and ours run in turns on the same threads,
and ours runs even where it is slower (`never_slower`).
Baseline: PyTorch's eager mode; and with `--peers` Inductor, whose compilation takes a minute a model, and
ONNX Runtime on an ONNX copy.
Checked: the outputs agree with eager's to 1e-4 of their largest value, or of 0.001; the first of ONNX
Runtime's too.

    .venv-metaschedule/bin/python benchmarks/torch_models.py [--models bert,resnet] [--peers] [--again]

A model is kept in docs/results/torch-models.json, by processor, as soon as it has ended, and not run again
there without --again; `torch_models_page.py` writes the tables of docs/networks.md. `transformers` comes with
the extra "scoreboard".
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from commits import checked_out
from onnx_peer import OnnxPeer, seconds_of
from torch_models_page import KEPT, write_page

from tlp_tvm.files import write_whole
from tlp_tvm.machine.cpu import this_cpu

LAYERS, TOKENS, PIXELS = 4, 64, 224
TURNS = 5
"""Timings of each."""

AGREE, SMALL = 1e-4, 1e-3
"""Of the largest output, and what that is taken for at least."""

_TEXT = {
    "vocab_size": 1000,
    "hidden_size": 256,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "intermediate_size": 1024,
}
_GPT2 = {"vocab_size": 1000, "n_embd": 256, "n_layer": LAYERS, "n_head": 4}
_DISTIL = {"vocab_size": 1000, "dim": 256, "n_layers": LAYERS, "n_heads": 4, "hidden_dim": 1024}
_OPT = {
    "vocab_size": 1000,
    "hidden_size": 256,
    "num_hidden_layers": LAYERS,
    "num_attention_heads": 4,
    "ffn_dim": 1024,
    "word_embed_proj_dim": 256,
}
_T5 = {"vocab_size": 1000, "d_model": 256, "d_kv": 64, "d_ff": 1024, "num_layers": LAYERS, "num_heads": 4}
_ALBERT = {**_TEXT, "embedding_size": 128}
_MODERN = {**_TEXT, "pad_token_id": 0, "cls_token_id": 1, "sep_token_id": 2, "global_attn_every_n_layers": 2}
_LLAMA = {**_TEXT, "num_key_value_heads": 2}
_VIT = {"hidden_size": 192, "num_hidden_layers": LAYERS, "num_attention_heads": 3, "intermediate_size": 768}
_RESNET = {
    "depths": [2, 2, 2, 2],
    "hidden_sizes": [64, 128, 256, 512],
    "layer_type": "basic",
    "embedding_size": 64,
}
_B0 = {"width_coefficient": 1.0, "depth_coefficient": 1.0, "image_size": PIXELS, "hidden_dim": 1280}
_REGNET = {"hidden_sizes": [64, 128, 288, 672], "depths": [1, 1, 3, 2], "groups_width": 16}
_CONVNEXT = {"depths": [2, 2, 2, 2], "hidden_sizes": [48, 96, 192, 384]}
_SWIN = {"embed_dim": 48, "depths": [2, 2, 2, 2], "num_heads": [3, 6, 12, 24]}

MODELS: dict[str, tuple[str, dict[str, Any]]] = {
    "bert": ("BertModel", _TEXT),
    "roberta": ("RobertaModel", _TEXT),
    "distilbert": ("DistilBertModel", _DISTIL),
    "electra": ("ElectraModel", _ALBERT),
    "albert": ("AlbertModel", _ALBERT),
    "modernbert": ("ModernBertModel", _MODERN),
    "t5_encoder": ("T5EncoderModel", _T5),
    "gpt2": ("GPT2Model", _GPT2),
    "opt": ("OPTModel", _OPT),
    "gpt_neox": ("GPTNeoXModel", _TEXT),
    "llama": ("LlamaModel", _LLAMA),
    "qwen2": ("Qwen2Model", _LLAMA),
    "resnet": ("ResNetForImageClassification", _RESNET),
    "mobilenet_v2": ("MobileNetV2ForImageClassification", {}),
    "efficientnet": ("EfficientNetForImageClassification", _B0),
    "regnet": ("RegNetForImageClassification", _REGNET),
    "convnext": ("ConvNextForImageClassification", _CONVNEXT),
    "convnext_v2": ("ConvNextV2ForImageClassification", _CONVNEXT),
    "vit": ("ViTForImageClassification", _VIT),
    "swin": ("SwinForImageClassification", _SWIN),
}
"""Name -> class of `transformers`, and what its configuration changes."""


@dataclass
class Tried:
    """One process's findings.

    Attributes:
        first_s: seconds until the first result, capturing and compiling included.
        difference: largest, as a share of eager's largest output.
        compiled: graphs that TVM runs.
        kept: of these, from the disk.
        eager: reasons for which PyTorch runs a graph -> how many.
        latencies: medians of turns, seconds, by what ran.
    """

    first_s: float
    difference: float
    compiled: int
    kept: int
    eager: dict[str, int]
    latencies: dict[str, float]


def made(name: str) -> tuple[torch.nn.Module, dict[str, torch.Tensor]]:
    """A model and what it is called with; the same at every call."""
    import transformers

    kind, changes = MODELS[name]
    torch.manual_seed(0)
    model = getattr(transformers, kind)
    network = model(model.config_class(**changes)).eval()
    if "ForImage" in kind:
        return network, {"pixel_values": torch.randn(1, 3, PIXELS, PIXELS)}
    given = {"input_ids": torch.randint(10, 1000, (1, TOKENS))}
    if "use_cache" in network.config.to_dict():
        network.config.use_cache = False
    return network, given


def agrees(name: str, found: torch.Tensor, expected: torch.Tensor) -> float:
    """The largest difference, as a share of the largest output; ends the process where it is too large."""
    difference = float((found - expected).abs().max() / max(float(expected.abs().max()), SMALL))
    if not difference <= AGREE:
        raise SystemExit(f"{name}: expected outputs within {AGREE:.0e} of eager's, found {difference:.1e}")
    return difference


def tried(name: str, *, time_it: bool, peers: bool) -> Tried:
    """Run one model in this process."""
    network, given = made(name)
    from tlp_tvm.metaschedule import backend_counts

    with torch.inference_mode(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = _outputs(network(**given))
        ours = torch.compile(network, backend="tlp_tvm", options={"never_slower": False})
        began = time.perf_counter()
        found = _outputs(ours(**given))
        first = time.perf_counter() - began
        difference = max(agrees(name, a, b) for a, b in zip(found, expected, strict=True))
        calls = {"eager": network, "tlp_tvm": ours}
        other: dict[str, Callable[[], float]] = {}
        if peers:
            torch.compiler.reset()
            calls["inductor"] = torch.compile(network)
            peer = OnnxPeer(made, name)
            agrees(f"{name}, ONNX Runtime", peer.first, expected[0])
            other["onnxruntime"] = peer.seconds
        counts = backend_counts()
        counted = (counts.compiled, counts.kept, dict(counts.eager))
        timers = {key: partial(seconds_of, partial(call, **given)) for key, call in calls.items()}
        latencies = _in_turns(timers | other) if time_it else {}
    return Tried(first, difference, *counted, latencies)


def _outputs(output: Any) -> list[torch.Tensor]:
    return [each.clone() for each in output.to_tuple() if isinstance(each, torch.Tensor)]


def _in_turns(timers: Mapping[str, Callable[[], float]]) -> dict[str, float]:
    times: dict[str, list[float]] = {name: [] for name in timers}
    for name, timer in [*timers.items()] * (TURNS + 1):
        times[name].append(timer())
    return {name: statistics.median(taken[1:]) for name, taken in times.items()}  # the first warms up


def in_process(name: str, cache: Path, *words: str) -> dict[str, Any]:
    """`tried` in a process with a cache of its own."""
    command = [sys.executable, __file__, "--one", name, *words]
    environment = {**os.environ, "XDG_CACHE_HOME": str(cache), "HF_HUB_OFFLINE": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        return {"error": (done.stderr.strip().splitlines() or ["it ended"])[-1][:300]}
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    """Run what is asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--models", default=",".join(MODELS))
    parser.add_argument("--peers", action="store_true", help="time Inductor and ONNX Runtime too")
    parser.add_argument("--again", action="store_true", help="also what is kept")
    parser.add_argument("--one", help=argparse.SUPPRESS)
    parser.add_argument("--untimed", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.one:
        found = tried(given.one, time_it=not given.untimed, peers=given.peers)
        sys.stdout.write(json.dumps(dataclasses.asdict(found)) + "\n")
        return
    kept = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {}
    known = kept.setdefault(this_cpu().model, {})
    for name in given.models.split(","):
        if name in known and not given.again:
            continue
        with tempfile.TemporaryDirectory() as cache:
            new = in_process(name, Path(cache), *(["--peers"] if given.peers else []))
            again = in_process(name, Path(cache), "--untimed")
        known[name] = {"new": new, "again": again, "commit": checked_out()}
        write_whole(KEPT, json.dumps(kept, indent=1, sort_keys=True) + "\n")
        sys.stdout.write(f"{name}: {new.get('error') or _line(new, again)}\n")
        sys.stdout.flush()
    write_page(kept)


def _line(new: dict[str, Any], again: dict[str, Any]) -> str:
    times = ", ".join(f"{name} {seconds * 1e3:.3g} ms" for name, seconds in new["latencies"].items())
    return (
        f"{new['compiled']} graphs, {new['first_s']:.0f} s ({again.get('first_s', 0):.1f} s again), "
        f"difference {new['difference']:.1g}, {times}, eager: {new['eager']}"
    )


if __name__ == "__main__":
    main()
