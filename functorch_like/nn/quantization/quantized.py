"""`Quantized`: an array of floats that is stored as small integers with scales."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, tree
from functorch_like.core import aval_of
from functorch_like.errors import DtypeError
from functorch_like.nn.quantization.integers import packed, rounded, scale_of, unpacked
from functorch_like.numpy import promotion
from functorch_like.tree_util import GetAttrKey

if TYPE_CHECKING:
    from functorch_like.core import Array

#: Functions of operators; `products.py` sets them.
OPERATORS: dict[str, Callable[..., Any]] = {}


class Quantized:
    """Array of floats that is stored as integers of 8 or 4 bits and scales; a pytree. `nn.quantize` makes it.

    Its value is `values * scale`. `x @ q` and `q.T` work as for arrays; for other operations use `nn.quantized(f)` or
    `dequantize()`.

    Attributes:
        values: int8 array, with the axis of the channels first: contracted axes are read fastest if they are last.
            With 4 bits, each byte has two integers along the last axis.
        scale: float32 array, with size 1 along the axes that share a scale.
        shape: shape of the array.
        dtype: dtype of the floats.
        bits: 8 or 4.
        activations: "dynamic" if products round their other operand to int8, too; None if they use the floats.
    """

    __slots__ = ("_dtype", "_last", "_order", "activations", "bits", "scale", "values")
    __array_priority__ = 1001
    __array_ufunc__ = None
    _remedy = "call .dequantize() first, or nn.quantized(f) for a function f"

    def __init__(
        self, values: Any, scale: Any, dtype: np.dtype[Any], bits: int, activations: str | None,
        order: tuple[int, ...], last: int,
    ) -> None:  # fmt: skip
        self.values, self.scale, self._dtype, self.bits, self.activations = values, scale, dtype, bits, activations
        self._order, self._last = order, last  # the axis at each stored position; the size of the last one

    @classmethod
    def of(cls, x: Any, bits: int, axes: Sequence[int], activations: str | None) -> Quantized:
        """Quantise floats to the nearest integers.

        Args:
            x: floats.
            bits: 8 or 4.
            axes: the axes that share a scale.
            activations: see `Quantized`.
        """
        aval, scale = aval_of(x), scale_of(x, bits, axes)
        order = (*(a for a in range(aval.ndim) if a not in axes), *axes)
        values = rounded(x, scale, bits).transpose(order)
        values = packed(values) if bits == 4 else values
        return cls(values, scale, aval.dtype, bits, activations, order, aval.shape[order[-1]])

    @property
    def shape(self) -> tuple[int, ...]:
        """Sizes of the dimensions."""
        stored, axes = (*self.values.shape[:-1], self._last), self._axes()
        return tuple(stored[axes.index(a)] for a in range(len(stored)))

    @property
    def ndim(self) -> int:
        """Number of dimensions."""
        return len(self.values.shape)

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the floats."""
        return self._dtype

    @property
    def nbytes(self) -> int:
        """Number of bytes of the integers and scales."""
        return sum(math.prod(x.shape) * x.dtype.itemsize for x in (self.values, self.scale))

    def _axes(self) -> tuple[int, ...]:
        """Return the array's axis at each stored position; axes of vmap, which `_order` does not count, come first."""
        mapped = self.ndim - len(self._order)
        return (*range(mapped), *(a + mapped for a in self._order))

    @property
    def T(self) -> Quantized:
        """The transpose."""
        return self.transpose(range(self.ndim)[::-1])

    def transpose(self, axes: Sequence[int]) -> Quantized:
        """Return the array with its axes permuted; the integers stay where they are."""
        axes = [int(a) for a in axes]
        order = tuple(axes.index(a) for a in self._axes())
        scale = self.scale.transpose(axes)
        return Quantized(self.values, scale, self._dtype, self.bits, self.activations, order, self._last)

    def stored(self) -> tuple[Array, Array, tuple[int, ...]]:
        """Return int8 integers and scales in the order of storage, and the array's axis at each position of it."""
        values = self.values if self.bits == 8 else unpacked(self.values, self._last)
        return values, self.scale.transpose(self._axes()), self._axes()

    def integers(self) -> Array:
        """Return the integers as an array of int8 of the shape."""
        integers, _, axes = self.stored()
        return integers.transpose([axes.index(a) for a in range(self.ndim)])

    def dequantize(self) -> Array:
        """Return the floats."""
        return (self.integers().astype(dtypes.float32) * self.scale).astype(self._dtype)

    def __matmul__(self, other: Any) -> Any:
        return OPERATORS["matmul"](self, other)

    def __rmatmul__(self, other: Any) -> Any:
        return OPERATORS["matmul"](other, self)

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> Any:
        raise promotion.error(
            DtypeError,
            f"{self!r} is not an array of NumPy",
            self._remedy,
        )

    def __repr__(self) -> str:
        return f"Quantized({self._dtype.name}[{', '.join(map(str, self.shape))}] in int{self.bits})"


def _flatten(q: Quantized) -> Any:
    return (q.values, q.scale), (q.dtype, q.bits, q.activations, q._order, q._last)


tree.register_pytree_node(
    Quantized,
    _flatten,
    lambda data, children: Quantized(*children, *data),
    lambda q: (((GetAttrKey("values"), q.values), (GetAttrKey("scale"), q.scale)), _flatten(q)[1]),
)
