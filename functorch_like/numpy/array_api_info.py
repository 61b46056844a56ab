"""Inspection of the namespace, as the array API standard defines it: `fnp.__array_namespace_info__()`."""

from __future__ import annotations

from typing import Any

from functorch_like import dtypes as dtype_module
from functorch_like.backends import xla
from functorch_like.numpy.dtype_functions import isdtype

_STANDARD = ("bool", "int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64", "float32", "float64",
             "complex64", "complex128")  # fmt: skip


class ArrayNamespaceInfo:
    """Capabilities, devices and dtypes, as the array API standard 2024.12 describes them.

    >>> sorted(fnp.__array_namespace_info__().default_dtypes())
    ['complex floating', 'indexing', 'integral', 'real floating']
    """

    def capabilities(self) -> dict[str, Any]:
        """Return the capabilities of eager arrays: indexing by masks, and shapes that depend on values.

        The greatest number of dimensions is NumPy's, since arrays are printed and made from Python values by NumPy.

        >>> fnp.__array_namespace_info__().capabilities()["boolean indexing"]
        True
        """
        return {"boolean indexing": True, "data-dependent shapes": True, "max dimensions": 64}

    def default_device(self) -> Any:
        """The device of new arrays for which none is given.

        >>> fnp.zeros(2).device == fnp.__array_namespace_info__().default_device()
        True
        """
        return xla.default_device()

    def devices(self) -> list[Any]:
        """All devices of all platforms, the default device first.

        >>> fnp.__array_namespace_info__().default_device() in fnp.__array_namespace_info__().devices()
        True
        """
        default = xla.default_device()
        result = [*xla.local_devices(None), *(xla.local_devices("cpu") if default.platform != "cpu" else ())]
        return [default, *(d for d in result if d != default)]

    def default_dtypes(self, *, device: Any = None) -> dict[str, Any]:
        """The default dtypes of new arrays and of indices, the same on every device; see `ft.set_default_dtype`.

        Args:
            device: an existing device.

        >>> fnp.__array_namespace_info__().default_dtypes()["real floating"].name
        'float32'
        """
        xla.find_device(device)
        return {
            "real floating": dtype_module.default_float(),
            "complex floating": dtype_module.default_complex(),
            "integral": dtype_module.default_int(),
            "indexing": dtype_module.default_int(),
        }

    def dtypes(self, *, device: Any = None, kind: Any = None) -> dict[str, Any]:
        """The dtypes of the standard by name; every device has all of them.

        Args:
            device: an existing device.
            kind: "bool", "signed integer", "integral", "real floating", ..., or a tuple of these; all if None.

        Raises:
            ArgumentError: for an unknown kind.

        >>> list(fnp.__array_namespace_info__().dtypes(kind="real floating"))
        ['float32', 'float64']
        """
        xla.find_device(device)
        result = {name: dtype_module.exact_dtype(name) for name in _STANDARD}
        return result if kind is None else {name: d for name, d in result.items() if isdtype(d, kind)}


def __array_namespace_info__() -> ArrayNamespaceInfo:
    """Return the properties of this namespace: capabilities, devices, dtypes.

    >>> fnp.__array_namespace_info__().default_dtypes()["integral"].name
    'int32'
    """
    return ArrayNamespaceInfo()
