"""NumPy's masked arrays: one with masked elements is refused, because arrays here have no mask.

C++ reads a masked array as the plain array it derives from, without its mask. So the class is registered as a pytree
node as soon as NumPy loads `numpy.ma`: flattening the arguments of a call then comes here. Plain arrays pay nothing.
"""

from __future__ import annotations

import importlib.machinery
import sys
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import source_info
from functorch_like.backends import xla
from functorch_like.errors import DtypeError

_MODULE = "numpy.ma"


def unmasked(x: Any) -> Any:
    """Return a NumPy array, of a masked array its data.

    Args:
        x: array of any subclass of `numpy.ndarray`.

    Raises:
        DtypeError: where elements of a masked array are masked.
    """
    ma = sys.modules.get(_MODULE)
    if ma is None or not isinstance(x, ma.MaskedArray):
        return x
    hidden = int(np.sum(ma.getmaskarray(x)))
    if hidden:
        raise DtypeError(
            f"{hidden} of {x.size} elements of a NumPy masked array are masked, and arrays here have no mask",
            fix="put a value in their place with x.filled(value), leave them out with x.compressed(), or pass x.data "
            "and the mask as two arrays (fnp.where, where= of reductions)",
            at=str(source_info.user_line() or ""),
        )
    return np.asarray(x)


def _flatten(x: Any) -> tuple[tuple[Any], None]:
    try:
        return (unmasked(x),), None
    except DtypeError as e:
        raise e.with_traceback(None) from None


def _unflatten(_: None, children: Sequence[Any]) -> Any:
    (data,) = children
    return data


def _register(ma: Any) -> None:
    for kind in (ma.MaskedArray, type(ma.masked)):
        xla.register_node(kind, _flatten, _unflatten)


class _Loader:
    """NumPy's own loader of `numpy.ma`, and the registration after it.

    Neither this class nor the next derives from those of `importlib.abc`: importing that takes milliseconds.
    """

    def __init__(self, loader: Any) -> None:
        self.loader = loader

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType | None:
        return self.loader.create_module(spec)

    def exec_module(self, module: types.ModuleType) -> None:
        module.__loader__ = self.loader
        if module.__spec__ is not None:
            module.__spec__.loader = self.loader
        self.loader.exec_module(module)
        _register(module)


class _Finder:
    """Wraps the loader of `numpy.ma` once; importing that here would double the time that NumPy takes."""

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname != _MODULE:
            return None
        sys.meta_path.remove(self)  # pyright: ignore[reportArgumentType]
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        if spec is not None and spec.loader is not None:
            spec.loader = _Loader(spec.loader)  # pyright: ignore[reportAttributeAccessIssue]
        return spec


if _MODULE in sys.modules:
    _register(sys.modules[_MODULE])
else:
    sys.meta_path.insert(0, _Finder())  # pyright: ignore[reportArgumentType]
