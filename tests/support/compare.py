"""Comparison of the package's functions with NumPy's: shapes, kinds of dtype, values and errors."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

import functorch_like.numpy as fnp


def ours(value: Any) -> Any:
    """Convert NumPy arrays to the package's arrays, inside lists and tuples too."""
    if isinstance(value, np.ndarray):
        return fnp.asarray(value)
    return type(value)(map(ours, value)) if isinstance(value, (list, tuple)) else value


def same(got: Any, want: Any, *, rtol: float = 2e-5, atol: float = 1e-6) -> None:
    """Assert equal values, shape and kind of dtype; lists are compared element by element."""
    if isinstance(want, (list, tuple)):
        assert len(got) == len(want)
        for g, w in zip(got, want, strict=True):
            same(g, w, rtol=rtol, atol=atol)
        return
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape
    assert got.dtype.kind == want.dtype.kind
    np.testing.assert_allclose(got, want, rtol=rtol, atol=atol, equal_nan=True)


def agrees(name: str, *args: Any, **kwargs: Any) -> None:
    """Assert that `fnp.name` and `np.name` give equal results for these arguments, or both raise."""
    function: Callable[..., Any] = fnp
    theirs: Callable[..., Any] = np
    for part in name.split("."):
        function, theirs = getattr(function, part), getattr(theirs, part)
    with np.errstate(all="ignore"), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            want = theirs(*args, **kwargs)
        except (ValueError, TypeError, IndexError, np.exceptions.AxisError) as error:
            try:
                got = function(*ours(args), **kwargs)
            except (ValueError, TypeError, IndexError):
                return
            raise AssertionError(f"{name} gave {got}, NumPy raises {error!r}") from error
        same(function(*ours(args), **kwargs), want)
