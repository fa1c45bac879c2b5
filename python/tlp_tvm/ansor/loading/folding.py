"""What TVM does over and over while it prepares and builds a network, done once.

To fold a constant, TVM compiles a kernel for it, tens of milliseconds each. Preparing ResNet-50 folds 849
constants with 101 kernels, and each of its builds lays out weights anew, mostly as the one before did. For
every extent of every shape, TVM 0.17 also asks how it was compiled itself.
"""

from __future__ import annotations

import functools
import importlib
import threading
from collections import OrderedDict
from typing import Any

MOST_KERNELS = 1024
"""Kept in a process; those used least lately go first."""

_BUILD = "relay.backend.build"


class KernelCache:
    """Compiled kernels by what they were compiled from."""

    def __init__(self, tvm: Any, build: Any) -> None:
        """Keep nothing yet.

        Args:
            tvm: the module.
            build: compiles, as TVM's function of the same name: module, target, host -> compiled module.
        """
        self._tvm = tvm
        self._build = build
        self._kept: OrderedDict[tuple[int, str, str], tuple[Any, Any]] = OrderedDict()
        self._lock = threading.Lock()

    def __call__(self, module: Any, target: Any, host: Any = None) -> Any:
        """A compiled module; that of an equal one where there was one."""
        if not isinstance(module, self._tvm.IRModule):
            return self._build(module, target, host)
        key = (self._tvm.ir.structural_hash(module), str(target), str(host))
        with self._lock:
            source, compiled = self._kept.get(key, (None, None))
            if source is not None and self._tvm.ir.structural_equal(source, module):
                self._kept.move_to_end(key)
                return compiled
        compiled = self._build(module, target, host)
        with self._lock:
            self._kept[key] = module, compiled
            while len(self._kept) > MOST_KERNELS:
                self._kept.popitem(last=False)
        return compiled


def fold_faster(tvm: Any) -> None:
    """Have TVM compile equal kernels of constants once in this process, and look its own flags up once.

    Args:
        tvm: the module, just imported.
    """
    registered = importlib.import_module("tvm.relay.backend._backend")
    cache = KernelCache(tvm, registered.build)
    tvm.register_func(_BUILD, lambda module, target, host=None: cache(module, target, host), override=True)
    compiler = importlib.import_module("tvm.relay.backend.te_compiler")
    if hasattr(compiler, "libinfo"):
        compiler.libinfo = functools.cache(compiler.libinfo)  # type: ignore[attr-defined]
