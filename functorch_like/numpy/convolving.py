"""Discrete convolution and correlation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like import dtypes, lax
from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import promotion
from functorch_like.numpy.matrix_products import _static
from functorch_like.numpy.operands import given
from functorch_like.transforms.eager_jit import eager_jit, with_kernel

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, PrecisionLike

MODES = ("full", "same", "valid")


def check_mode(mode: Any, what: str) -> None:
    """Raise ArgumentError for an unknown mode."""
    if mode not in MODES:
        raise promotion.error(ArgumentError, f"{what}: mode={mode!r}", "use 'full', 'same' or 'valid'")


def slide(a: Any, window: Any, pads: list[tuple[int, int]], precision: Any = None, preferred: Any = None) -> Any:
    """Return the sums of products with a window at each position of an array padded with zeros."""
    dtype = aval_of(a).dtype
    if dtype == dtypes.bool_:
        a, window = (promotion.convert(x, dtypes.default_int()) for x in (a, window))
        return slide(a, window, pads, precision, preferred) != 0
    out = lax.conv_general_dilated(
        a[None, None],
        window[None, None],
        (1,) * aval_of(a).ndim,
        pads,
        precision=precision,
        preferred_element_type=preferred,
    )
    return out[0, 0]


def _operands(a: Any, v: Any, name: str, mode: Any) -> tuple[Any, Any]:
    check_mode(mode, f"fnp.{name}")
    a, v = (fnp.atleast_1d(x) if not aval_of(x).ndim else x for x in given(a, v))
    for x in (a, v):
        if aval_of(x).ndim != 1 or not aval_of(x).size:
            raise promotion.error(
                ShapeError, f"fnp.{name} of {aval_of(a)!r} and {aval_of(v)!r}", "give one dimension, and not size 0"
            )
    return a, v


@with_kernel(2)
def convolve(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "full",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Discrete convolution of two sequences: the sum over m of a[m] v[n - m].

    Args:
        a: (n,).
        v: (m,).
        mode: "full" gives all n + m - 1 numbers; "same" the max(n, m) in the middle; "valid" those for which the two
            overlap completely.
        precision: precision of the products, as for `fnp.dot`.
        preferred_element_type: dtype of the sums.

    Returns:
        (n + m - 1,) for "full", (max(n, m),) for "same", (max(n, m) - min(n, m) + 1,) for "valid".

    Raises:
        ArgumentError: for another mode.
        ShapeError: for other shapes, and size 0.

    >>> fnp.convolve([1, 2, 3], [0, 1], mode="same").tolist()
    [0, 1, 2]
    """
    a, v = _operands(a, v, "convolve", mode)
    return _convolve(a, v, mode, *_static(precision, preferred_element_type))


@eager_jit(static=("mode", "precision", "preferred"))
def _convolve(a: Any, v: Any, mode: str, precision: Any, preferred: Any) -> Any:
    a, v = promotion.promote(a, v)
    n, m = aval_of(a).size, aval_of(v).size
    if m > n:
        a, v, n, m = v, a, m, n
    pad = {"full": (m - 1, m - 1), "same": (m // 2, m - m // 2 - 1), "valid": (0, 0)}[mode]
    return slide(a, fnp.flip(v), [pad], precision, preferred)


@with_kernel(2)
def correlate(
    a: ArrayLike,
    v: ArrayLike,
    mode: str = "valid",
    *,
    precision: PrecisionLike = None,
    preferred_element_type: DTypeLike | None = None,
) -> Array:
    """Correlation of two sequences: the sum over m of a[n + m] conj(v[m]); arguments as for `convolve`.

    Args:
        a: one-dimensional array.
        v: one-dimensional array.
        mode: "valid" (where both overlap completely), "same" (of the size of the longer one) or "full".
        precision: precision of the products: None, a name such as "highest", or a pair of these.
        preferred_element_type: dtype in which products are summed and returned; None for the operands'.

    Returns:
        A one-dimensional array.

    >>> fnp.correlate([1, 2, 3], [0, 1], mode="same").tolist()
    [1, 2, 3]
    """
    a, v = _operands(a, v, "correlate", mode)
    return _correlate(a, v, mode, *_static(precision, preferred_element_type))


@eager_jit(static=("mode", "precision", "preferred"))
def _correlate(a: Any, v: Any, mode: str, precision: Any, preferred: Any) -> Any:
    a, v = promotion.promote(a, v)
    v = fnp.conj(v)
    if aval_of(v).size > aval_of(a).size:
        return fnp.flip(_convolve.inline(v, fnp.flip(a), mode, precision, preferred))
    return _convolve.inline(a, fnp.flip(v), mode, precision, preferred)
