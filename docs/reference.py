"""The API reference as HTML, by pdoc; any warning is an error.

    python docs/reference.py ansor build/docs
    python docs/reference.py metaschedule build/docs/metaschedule

Public names are loaded late, so they are resolved here before pdoc looks at the modules. A framework's names
need its TVM: `make docs` runs each in its own environment.
"""

from __future__ import annotations

import importlib
import sys
import warnings
from pathlib import Path

import pdoc

PAGES = {
    "ansor": ("tlp_tvm", "tlp_tvm.ansor", "tlp_tvm.framework", "tlp_tvm.errors", "tlp_tvm.model.scoring"),
    "metaschedule": ("tlp_tvm.metaschedule",),
}


def main(framework: str, out: str) -> None:
    """Write the pages of a framework's environment."""
    names = PAGES[framework]
    for name in names:
        module = importlib.import_module(name)
        for public in getattr(module, "__all__", ()):
            setattr(module, public, getattr(module, public))
    parts = [name for name in names if name.rpartition(".")[0] in names]
    for name in parts:  # pdoc links a package's modules if __all__ has them
        parent, _, part = name.rpartition(".")
        sys.modules[parent].__all__.append(part)
    warnings.simplefilter("error")
    pdoc.render.configure(docformat="google", show_source=False)
    pdoc.pdoc(*(name for name in names if name not in parts), output_directory=Path(out))


if __name__ == "__main__":
    main(*sys.argv[1:])
