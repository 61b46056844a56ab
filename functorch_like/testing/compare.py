"""Comparison of two pytrees; errors show the first place where they differ, and both values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes, tree
from functorch_like.backends import xla
from functorch_like.errors import ArgumentError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from functorch_like.typing import DTypeLike, PyTree


#: Tolerances, relative and absolute, by dtype (a complex dtype has that of its real part).
TOLERANCES = {"float64": 1e-10, "float32": 2e-5, "float16": 4e-3, "bfloat16": 3e-2}
_COARSE = 0.25  # tolerance of dtypes with three bits of mantissa or fewer


def arguments(args: Sequence[PyTree], check: str) -> tuple[PyTree, ...]:
    """Return the arguments of a function as a tuple; an array would be taken apart into its rows.

    Args:
        args: a tuple or list.
        check: name of the check that got them.

    Raises:
        ArgumentError: for anything else.

    >>> arguments([1.0, {"a": 2.0}], "check_jit")
    (1.0, {'a': 2.0})
    """
    if not isinstance(args, tuple | list):
        raise ArgumentError(
            f"args of {check} is of type {type(args).__name__}, and not a tuple of arguments",
            fix=f"testing.{check}(f, (x,)), also for one argument x",
        )
    return tuple(args)


def tolerance(dtype: DTypeLike) -> float:
    """Return the default tolerance of a dtype, relative and absolute; zero where values are exact.

    >>> tolerance(np.float32), tolerance(np.complex64), tolerance(np.int32)
    (2e-05, 2e-05, 0.0)
    """
    dtype = np.dtype(dtype)
    if not dtypes.is_inexact(dtype):
        return 0.0
    return TOLERANCES.get(dtypes.real_part(dtype).name, _COARSE)


def assert_allclose(
    got: PyTree,
    want: PyTree,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    check_dtypes: bool = True,
    what: str = "",
) -> None:
    """Raise unless two pytrees have the same structure, shapes and dtypes, and nearly the same values.

    Values are near when `|got - want| <= atol + rtol * |want|`. NaN equals NaN, and infinities of one sign are equal.

    Args:
        got: a pytree of arrays (this package's, NumPy's, numbers).
        want: what it should be.
        rtol: relative tolerance; left out, `tolerance` of the coarser of the two dtypes.
        atol: absolute tolerance; left out, the same.
        check_dtypes: False compares values of different dtypes.
        what: begins the message.

    Raises:
        AssertionError: names the path of the first leaf that differs, the element that differs most, and both values.

    >>> assert_allclose({"w": np.float32(1.0)}, {"w": np.float32(1.000001)})
    >>> assert_allclose({"w": [np.ones(2), np.zeros(3)]}, {"w": [np.ones(2), np.array([0.0, 0.5, 0.0])]})
    Traceback (most recent call last):
        ...
    AssertionError: ['w'][1] differs in 1 of 3 elements, most at [1]:
      got    0.0
      want   0.5
      they differ by 0.5, allowed is 1.5e-10
    """
    for path, a, b in _pairs(got, want, what):
        complaint = difference(a, b, rtol, atol, check_dtypes)
        if complaint:
            raise AssertionError(_named(what, path, complaint))


def assert_trees_equal(got: PyTree, want: PyTree, *, signed_zeros: bool = False, what: str = "") -> None:
    """Raise unless two pytrees have the same structure, shapes, dtypes and exactly the same values; NaN equals NaN.

    Args:
        got: a pytree of arrays (this package's, NumPy's, numbers).
        want: what it should be.
        signed_zeros: whether 0.0 and -0.0 differ.
        what: begins the message.

    Raises:
        AssertionError: names the path of the first leaf that differs, the element, and both values.

    >>> assert_trees_equal((1, [np.nan]), (1, [np.nan]))
    >>> assert_trees_equal((1, [2]), (1, (2,)))
    Traceback (most recent call last):
        ...
    AssertionError: the structures differ:
      got    (*, [*])
      want   (*, (*,))
    """
    for path, a, b in _pairs(got, want, what):
        complaint = difference(a, b, 0.0, 0.0)
        if not complaint and signed_zeros and dtypes.is_inexact(np.asarray(a).dtype):
            complaint = difference(_signs(a), _signs(b), 0.0, 0.0).replace("differs", "differs in the sign of zero", 1)
        if complaint:
            raise AssertionError(_named(what, path, complaint))


def difference(
    got: Any, want: Any, rtol: float | None = None, atol: float | None = None, check_dtypes: bool = True
) -> str:
    """Describe how one array differs from another, as the end of a sentence; empty if they agree."""
    a, b = as_numpy(got), as_numpy(want)
    if a.shape != b.shape:
        return f"has another shape:\n  got    {_described(a)}\n  want   {_described(b)}"
    if check_dtypes and a.dtype != b.dtype:
        return f"has another dtype:\n  got    {_described(a)}\n  want   {_described(b)}"
    default = max(tolerance(a.dtype), tolerance(b.dtype))
    rtol, atol = default if rtol is None else rtol, default if atol is None else atol
    if not (dtypes.is_inexact(a.dtype) or dtypes.is_inexact(b.dtype)):
        wrong = a != b
        gap = np.abs(a.astype(object) - b.astype(object)) if wrong.any() else np.zeros(a.shape)
        allowed = np.zeros(a.shape)
    else:
        a, b = _wide(a), _wide(b)
        with np.errstate(all="ignore"):
            gap = np.abs(a - b)
            allowed = np.where(np.isfinite(b), atol + rtol * np.abs(b), 0.0)  # infinities must be equal
            wrong = ~((a == b) | (gap <= allowed) | (np.isnan(a) & np.isnan(b)))
    if not wrong.any():
        return ""
    finite = np.where(wrong, np.nan_to_num(gap.astype(np.float64), nan=np.inf), -1.0)
    at = np.unravel_index(int(np.argmax(finite)), a.shape)
    place = f" in {int(wrong.sum())} of {a.size} elements, most at [{', '.join(map(str, at))}]" if a.ndim else ""
    return (
        f"differs{place}:\n  got    {a[at]}\n  want   {b[at]}\n"
        f"  they differ by {float(gap[at]):.3g}, allowed is {float(allowed[at]):.3g}"
    )


def as_numpy(x: Any) -> np.ndarray[Any, Any]:
    """Return a leaf as a NumPy array."""
    return xla.to_numpy(x) if isinstance(x, xla.ArrayImpl) else np.asarray(x)


def _wide(x: np.ndarray[Any, Any]) -> Any:
    return x.astype(np.complex128 if x.dtype.kind == "c" else np.float64)


def _signs(x: Any) -> Any:
    values = _wide(as_numpy(x))
    wide: Any = np.where(values == 0, values, np.ones_like(values))
    sign = lambda part: np.copysign(1.0, np.where(np.isnan(part), 1.0, part))
    return sign(wide.real) + 1j * sign(wide.imag) if wide.dtype.kind == "c" else sign(wide)


def _described(x: np.ndarray[Any, Any]) -> str:
    return f"{x.dtype}{list(x.shape)}"


def _named(what: str, path: str, complaint: str) -> str:
    name = path or ("" if what else "the value")
    return " ".join(part for part in (f"{what}:" if what else "", name, complaint) if part)


def _pairs(got: Any, want: Any, what: str) -> list[tuple[str, Any, Any]]:
    first, treedef = tree.flatten_with_path(got)
    second, other = tree.flatten(want)
    if treedef != other:
        shown = f"the structures differ:\n  got    {_shown(treedef)}\n  want   {_shown(other)}"
        raise AssertionError(f"{what}: {shown}" if what else shown)
    return [(tree.keystr(path), a, b) for (path, a), b in zip(first, second, strict=True)]


def _shown(treedef: Any) -> str:
    return str(treedef).removeprefix("PyTreeDef(").removesuffix(")")
