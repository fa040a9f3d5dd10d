"""Packages that only some arguments need: they are imported when such an argument is given."""

from __future__ import annotations

import importlib

# Maps a module to the name by which pip knows its package, where the two differ.
_PACKAGES = {"pyarrow.fs": "pyarrow", "pyarrow.csv": "pyarrow", "pyarrow.parquet": "pyarrow"}


def require(module: str, feature: str):
    """Returns the imported module; raises ImportError that names the feature and the package."""
    try:
        return importlib.import_module(module)
    except ImportError as error:
        package = _PACKAGES.get(module, module)
        raise ImportError(
            f"{feature} needs the package {package!r}, which cannot be imported here ({error}). "
            f"Install it on every node, for example with `pip install {package}`.",
            name=package,
        ) from error


def available(module: str) -> bool:
    """Tries to import the module and returns whether that worked."""
    try:
        importlib.import_module(module)
    except ImportError:
        return False
    return True
