"""Facts about this installation, for reports."""

from __future__ import annotations

import importlib.metadata
from typing import Any

from functorch_like.backends.xla import cache
from functorch_like.backends.xla.jaxlib_api import FULL_VERSION

_PACKAGES = ("functorch_like", "numpy", "ml_dtypes", "opt_einsum", "scipy", "jax-cuda12-plugin", "jax-cuda13-plugin")


def about() -> dict[str, dict[str, Any]]:
    """Versions of the package's dependencies, and the state of the disk cache."""
    versions = {"jaxlib": FULL_VERSION}
    for name in _PACKAGES:
        try:
            versions[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            continue
    folder = cache.directory()
    summary: dict[str, Any] = {"directory": folder or "off"}
    if folder is not None:
        files = cache.files(folder)
        summary |= {"programs": cache.programs(files), "bytes": round(sum(file.size for file in files))}
    return {"versions": versions, "cache": summary}
