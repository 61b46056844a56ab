"""Operations of kernels on arrays: reciprocals, broadcasting, products."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from functorch_like import numpy as fnp
from functorch_like.errors import ArgumentError
from functorch_like.lax.contract import dot_general

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, PrecisionLike


def reciprocal(x: ArrayLike, *, approx: bool = False, full_range: bool = True) -> Array:
    """Return 1 / x.

    Args:
        x: array of floats.
        approx: taken, and without effect: the result is exact to rounding.
        full_range: taken, and without effect.

    Example:
        >>> import functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> pl.reciprocal(fnp.asarray([2.0, 4.0]), approx=True).tolist()
        [0.5, 0.25]
    """
    return 1 / fnp.asarray(x)


def broadcast_to(a: ArrayLike, shape: Sequence[int]) -> Array:
    """Return an array repeated to a larger shape.

    Args:
        a: the array.
        shape: the new shape; its last axes are those of a, or a has size 1 there.

    Raises:
        ShapeError: where a does not broadcast.

    Example:
        >>> import functorch_like.numpy as fnp
        >>> from functorch_like.experimental import pallas as pl
        >>> pl.broadcast_to(fnp.asarray([1, 2]), (2, 2)).tolist()
        [[1, 2], [1, 2]]
    """
    return fnp.broadcast_to(a, tuple(shape))


def dot(
    a: Array,
    b: Array,
    trans_a: bool = False,
    trans_b: bool = False,
    allow_tf32: bool | None = None,
    precision: PrecisionLike = None,
) -> Array:
    """Return the product of two matrices, summed in float32, or in int32 for integers.

    Args:
        a: (m, k); (k, m) with `trans_a`.
        b: (k, n); (n, k) with `trans_b`.
        trans_a: transpose a.
        trans_b: transpose b.
        allow_tf32: False for full precision of float32 products on GPUs; None leaves it to `precision`.
        precision: as for `fnp.matmul`.

    Raises:
        ArgumentError: for `allow_tf32` beside `precision`.
        ShapeError: for shapes that do not fit.

    Example:
        >>> import functorch_like.numpy as fnp
        >>> from functorch_like.experimental.pallas import triton as plgpu
        >>> x = fnp.asarray([[1.0, 2.0]])
        >>> plgpu.dot(x, x, trans_b=True).tolist()
        [[5.0]]
    """
    if allow_tf32 is not None and precision is not None:
        raise ArgumentError("dot got allow_tf32 and precision", fix="give one of them")
    if allow_tf32 is not None:
        precision = "default" if allow_tf32 else "highest"
    dims = (((0 if trans_a else 1,), (1 if trans_b else 0,)), ((), ()))
    kind = "int32" if fnp.issubdtype(a.dtype, fnp.integer) else "float64" if a.dtype == "float64" else "float32"
    return dot_general(a, b, dims, precision=precision, preferred_element_type=kind)
