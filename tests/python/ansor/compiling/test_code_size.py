"""How much code a function of a network is, its parallel loops included."""

from __future__ import annotations

from typing import Any

from tlp_tvm.ansor.compiling.code_size import code_sizes
from tlp_tvm.ansor.loading.locate import load_tvm


def built(*layers: int, target: str = "llvm -num-cores=2") -> Any:
    """A network of dense layers, so many columns each."""
    tvm = load_tvm()
    relay = tvm.relay
    x = relay.var("x", shape=(4, 16))
    for i, columns in enumerate(layers):
        x = relay.tanh(relay.nn.dense(x, relay.var(f"w{i}", shape=(columns, 16))))
    module = tvm.IRModule.from_expr(relay.Function(relay.analysis.free_vars(x), x))
    with tvm.transform.PassContext(opt_level=3):
        return relay.build(module, target=target)


def test_each_function_of_a_network_has_a_size() -> None:
    library = built(16, 32)
    sizes = code_sizes(library)

    dense = [name for name in sizes if name.startswith("tvmgen_default_fused_nn_")]
    assert len(dense) == 2
    assert min(sizes.values()) > 10


def test_what_runs_in_parallel_counts() -> None:
    class Fake:
        type_key = "llvm"

        def get_lib(self) -> Fake:
            return self

        def get_source(self, language: str) -> str:
            assert language == "ll"
            return (
                "define internal i32 @f_compute_(i32 %x) {\n a\n call @launch(@__tvm_parallel_lambda.3)\n}\n"
                "define private i32 @__tvm_parallel_lambda.3(i32 %x) #4 {\n a\n b\n c\n}\n"
                "define private i32 @__tvm_parallel_lambda(i32 %x) #4 {\n a\n}\n"
                "define dllexport i32 @f(i32 %x) {\n a\n}\n"
            )

    assert code_sizes(Fake()) == {"f": 5}


def test_a_library_of_another_device_has_none() -> None:
    class Fake:
        type_key = "cuda"

        def get_lib(self) -> Fake:
            return self

    assert code_sizes(Fake()) == {}
