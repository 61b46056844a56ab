"""`jax.test_util`: checks of derivatives against finite differences."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import functorch_like as ft
from functorch_like import dtypes

#: Tolerances of derivatives and of values.
_TOLERANCES = {"bfloat16": 1e-1, "float16": 3e-2, "float32": 6e-3, "float64": 1e-5}
_ROUNDING = {
    "bfloat16": 1e-2,
    "float16": 1e-3,
    "float32": 1e-6,
    "complex64": 1e-6,
    "float64": 1e-15,
    "complex128": 1e-15,
}


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int,
    modes: Sequence[str] = ("fwd", "rev"),
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
) -> None:
    """Compare derivatives of a function, up to an order, with central differences along one random direction.

    `functorch_like.testing.check_grads` checks each argument separately, and reports differences in more detail.

    Args:
        f: takes and returns pytrees of arrays.
        args: where to differentiate.
        order: the highest order.
        modes: "fwd", "rev" or both.
        atol: absolute tolerance; by default one for the dtype.
        rtol: relative tolerance; by default one for the dtype.
        eps: the step of the differences.

    Raises:
        AssertionError: where they differ.
    """
    args = _arrays(args)
    for mode in (modes,) if isinstance(modes, str) else modes:
        g = f
        for _ in range(order):
            if mode == "fwd":
                check_jvp(g, lambda primals, tangents, g=g: ft.jvp(g, primals, tangents), args, atol, rtol, eps)
            else:
                check_vjp(g, lambda *primals, g=g: ft.vjp(g, *primals), args, atol, rtol, eps)
            g = _derivative(g, mode, args)


def _derivative(f: Any, mode: str, args: Any) -> Any:
    """Return the function whose derivative is the next one of `f`."""
    if mode == "fwd":
        direction = _random_like(tuple(args), 7)
        return lambda *xs: ft.jvp(f, xs, direction)[1]
    weights = _random_like(ft.eval_shape(f, *args), 7)
    return lambda *xs: ft.vjp(f, *xs)[1](weights)


def check_jvp(
    f: Callable[..., Any],
    f_jvp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare `f_jvp(primals, tangents)` with a finite difference of `f`."""
    args = _arrays(args)
    direction = _random_like(args, 0)
    _, tangents = f_jvp(args, direction)
    _close(tangents, _difference(f, args, direction, eps), args, atol, rtol, f"{err_msg} JVP tangent")


def check_vjp(
    f: Callable[..., Any],
    f_vjp: Callable[..., Any],
    args: Sequence[Any],
    atol: float | None = None,
    rtol: float | None = None,
    eps: float | None = None,
    err_msg: str = "",
) -> None:
    """Compare `f_vjp(*args)`, a pair of result and pullback, with a finite difference of `f`."""
    args = _arrays(args)
    out, pull = f_vjp(*args)
    direction, weights = _random_like(args, 0), _random_like(out, 1)
    slopes = _difference(f, args, direction, eps)
    _close(_inner(pull(weights), direction), _inner(weights, slopes), args, atol, rtol, f"{err_msg} VJP cotangent")


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Compare two pytrees of arrays, leaf by leaf.

    Args:
        xs: a pytree of arrays and numbers.
        ys: another, of the same structure and shapes.
        atol: absolute tolerance, which is multiplied by the number of elements; or a dict of tolerances by
            dtype. By default it is a few roundings of the less exact dtype.
        rtol: relative tolerance, in the same way.
        err_msg: text for the error.

    Raises:
        AssertionError: where they differ.
    """
    assert ft.tree.structure(xs) == ft.tree.structure(ys), err_msg or "the structures differ"
    for x, y in zip(ft.tree.leaves(xs), ft.tree.leaves(ys), strict=True):
        a, b = np.asarray(x), np.asarray(y)
        assert a.shape == b.shape, f"{err_msg} shapes differ: {a.shape} and {b.shape}"
        relative, absolute = (max(_tolerance(v.dtype, t) for v in (a, b)) * a.size for t in (rtol, atol))
        np.testing.assert_allclose(_in_numpy(a), _in_numpy(b), relative, absolute, err_msg=err_msg)


def _tolerance(dtype: Any, given: Any) -> float:
    default = _ROUNDING.get(dtype.name, 0.1 if dtypes.is_float(dtype) else 0)
    if isinstance(given, dict):
        return {np.dtype(key).name: value for key, value in given.items()}.get(dtype.name, default)
    return default if given is None else given


def _in_numpy(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """Return an array in a dtype of NumPy."""
    return x.astype(np.float32) if dtypes.is_float(x.dtype) and x.dtype.itemsize < 4 else x


def _arrays(args: Sequence[Any]) -> tuple[Any, ...]:
    """Return the arguments, with numbers as arrays of the dtypes that they are traced with."""
    number = lambda x: np.asarray(x, dtypes.as_dtype(type(x))) if isinstance(x, (int, float, complex)) else x
    return ft.tree.map(number, tuple(args))


def _difference(f: Any, args: Any, direction: Any, eps: float | None) -> Any:
    step = eps or (1e-4 if _dtype_of(args) == "float64" else 1e-2 if _dtype_of(args) != "float32" else 1e-3)
    moved = lambda t: f(*ft.tree.map(lambda x, d: _moved(x, d, t), args, direction))

    def slope(a: Any, b: Any) -> Any:
        a, b = np.asarray(a), np.asarray(b)
        return a if a.dtype == dtypes.float0 else (a - b) / (2 * step)

    return ft.tree.map(slope, moved(step), moved(-step))


def _moved(x: Any, d: Any, t: float) -> Any:
    return x if d.dtype == dtypes.float0 else np.asarray(x + t * d, np.asarray(x).dtype)


def _random_like(tree: Any, seed: int) -> Any:
    rng = np.random.default_rng(seed)

    def draw(x: Any) -> Any:
        shape, dtype = np.shape(x), np.dtype(getattr(x, "dtype", None) or dtypes.as_dtype(type(x)))
        if not (dtypes.is_float(dtype) or dtypes.is_complex(dtype)):
            return np.zeros(shape, dtypes.float0)
        made = rng.standard_normal(shape)
        return np.asarray(made + 1j * rng.standard_normal(shape) if dtypes.is_complex(dtype) else made, dtype)

    return ft.tree.map(draw, tree)


def _inner(a: Any, b: Any) -> float:
    pairs = zip(ft.tree.leaves(a), ft.tree.leaves(b), strict=True)
    kept = [(np.asarray(x), np.asarray(y)) for x, y in pairs if np.asarray(y).dtype != dtypes.float0]
    return sum(float(np.real(np.sum(x.astype("complex128") * y.astype("complex128")))) for x, y in kept)


def _dtype_of(tree: Any) -> str:
    names = {np.dtype(getattr(x, "dtype", dtypes.default_float())).name for x in ft.tree.leaves(tree)}
    return next((name for name in _TOLERANCES if name in names), "float64" if "complex128" in names else "float32")


def _close(got: Any, expected: Any, args: Any, atol: float | None, rtol: float | None, what: str) -> None:
    default = _TOLERANCES[_dtype_of(args)]
    for a, b in zip(ft.tree.leaves(got), ft.tree.leaves(expected), strict=True):
        if np.asarray(a).dtype != dtypes.float0:
            np.testing.assert_allclose(
                np.asarray(a),
                np.asarray(b),
                default if rtol is None else rtol,
                default if atol is None else atol,
                err_msg=what,
            )
