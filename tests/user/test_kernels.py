"""Calls with arrays and simple options run as one compiled program, and later ones without Python."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.backends.xla import counters
from functorch_like.errors import ArgumentError, FtError, ShapeError

X = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
SQUARE = (X[:, :3] @ X[:, :3].T + 3 * np.eye(3, dtype=np.float32)).astype(np.float32)

CALLS = {
    "sum": [((1,), {}), ((), {"axis": -1}), ((), {"axis": (0, 1)}), ((), {"axis": 0, "keepdims": True})],
    "max": [((0,), {}), ((), {"axis": 1, "keepdims": True})],
    "mean": [((1,), {}), ((), {"axis": None}), ((), {"axis": (1,), "keepdims": True})],
    "std": [((1,), {}), ((), {"ddof": 1}), ((0,), {"ddof": 1, "keepdims": True})],
    "argmax": [((1,), {}), ((), {"axis": 0, "keepdims": True})],
    "median": [((), {}), ((1,), {}), ((), {"axis": (0, 1), "keepdims": True})],
    "round": [((), {}), ((1,), {}), ((), {"decimals": 2})],
    "cumsum": [((), {}), ((1,), {})],
    "sort": [((), {}), ((0,), {}), ((), {"axis": None})],
    "argsort": [((0,), {})],
    "diff": [((), {}), ((2,), {}), ((1, 0), {}), ((), {"n": 1, "axis": 0})],
    "ravel": [((), {}), (("F",), {}), ((), {"order": "C"})],
    "squeeze": [((), {})],
    "transpose": [((), {}), (((1, 0),), {}), ((), {"axes": (0, 1)})],
    "swapaxes": [((0, 1), {}), ((-1, 0), {})],
    "moveaxis": [((0, 1), {}), (((0, 1), (1, 0)), {})],
    "expand_dims": [((0,), {}), (((0, 2),), {}), ((), {"axis": -1})],
    "flip": [((), {}), ((0,), {}), ((), {"axis": (0, 1)})],
    "tril": [((), {}), ((1,), {}), ((), {"k": -1})],
    "triu": [((), {}), ((-1,), {})],
    "trace": [((), {}), ((1,), {})],
    "diagonal": [((), {}), ((-1,), {}), ((), {"offset": 1})],
    "roll": [((1,), {}), ((1, 0), {}), (((1, 2), (0, 1)), {}), ((), {"shift": -1, "axis": 1})],
    "tile": [((2,), {}), (((2, 1),), {})],
    "repeat": [((2,), {}), ((2,), {"axis": 0})],
    "rot90": [((), {}), ((2,), {}), ((), {"k": -1, "axes": (1, 0)})],
    "diag": [((), {}), ((1,), {}), ((), {"k": -1})],
    "average": [((), {}), ((1,), {}), ((), {"axis": 0, "weights": X[:, 0] + 3}), ((), {"axis": 1, "keepdims": True})],
    "ediff1d": [((), {}), ((), {"to_end": np.float32(2.0)})],
    "nan_to_num": [((), {}), ((), {"nan": 1.0})],
    "trapezoid": [((), {}), ((), {"dx": 0.5, "axis": 0})],
    "cov": [((), {}), ((), {"rowvar": False}), ((), {"y": X + 1, "ddof": 0})],
    "corrcoef": [((), {}), ((), {"rowvar": False})],
    "append": [((X,), {}), ((X,), {"axis": 0})],
    "inner": [((X,), {})],
    "iscomplex": [((), {})],
    "isreal": [((), {})],
    "nanmedian": [((), {}), ((1,), {}), ((), {"axis": 0, "keepdims": True})],
}


@pytest.mark.parametrize("name", CALLS)
def test_options_by_position_and_by_name(name):
    function, reference = getattr(fnp, name), getattr(np, name)
    for args, kwargs in CALLS[name]:
        expected = reference(X, *args, **kwargs)
        for x in (fnp.asarray(X), X):
            for _ in range(40):  # NumPy computes the first ones of some
                result = function(x, *args, **kwargs)
            assert result.shape == expected.shape and result.dtype.kind == expected.dtype.kind
            np.testing.assert_allclose(result, expected, rtol=1e-5, atol=1e-6)
            nested = ft.jit(lambda x, args=args, kwargs=kwargs: function(x, *args, **kwargs))(x)
            np.testing.assert_allclose(nested, expected, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize(
    ("name", "args"),
    [
        ("norm", (X,)),
        ("norm", (X, 1, 0)),
        ("norm", (X, "nuc")),
        ("inv", (SQUARE,)),
        ("det", (SQUARE,)),
        ("slogdet", (SQUARE,)),
        ("cholesky", (SQUARE,)),
        ("solve", (SQUARE, X)),
        ("pinv", (X,)),
        ("svd", (X, False)),
        ("eigvalsh", (SQUARE,)),
        ("qr", (X, "r")),
    ],
)
def test_linear_algebra(name, args):
    function = getattr(fnp.linalg, name)
    options = [k for k, a in enumerate(args) if not isinstance(a, np.ndarray)]
    for call in (function, ft.jit(function, static_argnums=options)):
        for x in (fnp.asarray(args[0]), args[0]):
            for _ in range(3):
                result = call(x, *args[1:])
            expected = getattr(np.linalg, name)(*args)
            for a, b in zip(
                ft.tree.leaves(result), expected if isinstance(expected, tuple) else [expected], strict=True
            ):
                np.testing.assert_allclose(np.abs(a), np.abs(b), rtol=1e-4, atol=1e-5)


def test_functions_of_several_arrays():
    x = fnp.asarray(X)
    for a, b in ((x, x), (X, x), (x, X), (X, X)):
        for _ in range(3):
            assert bool(fnp.allclose(a, b)) and fnp.isclose(a, b).all() and not bool(fnp.allclose(a, b + 1))
            np.testing.assert_allclose(fnp.dot(a, b.T), X @ X.T, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(fnp.matmul(a, b.T), X @ X.T, rtol=1e-5, atol=1e-6)
            np.testing.assert_allclose(fnp.clip(a, b - 1, b), X, rtol=1e-6)
            np.testing.assert_array_equal(fnp.take(a, np.array([[3, 0]])), [[X[0, 3], X[0, 0]]])
            np.testing.assert_array_equal(fnp.take(a, np.array([2, 0]), axis=0), X[[2, 0]])
            np.testing.assert_array_equal(fnp.take(a, fnp.asarray([2, 9]), 0, mode="clip"), X[[2, 2]])


def test_values_that_are_equal_but_of_other_types():
    """C++ must not take True for 1, nor 1.0 for either."""
    x = fnp.asarray(X)
    for _ in range(3):
        np.testing.assert_allclose(fnp.sum(x, 1), X.sum(1), rtol=1e-5)
        np.testing.assert_allclose(fnp.round(x, 1), X.round(1), rtol=1e-6)
        with pytest.raises((FtError, TypeError)):
            fnp.sum(x, 1.0)
        with pytest.raises((FtError, TypeError)):
            fnp.sum(x, "1")


def test_values_are_not_compiled_in():
    x = fnp.asarray(X)
    calls = (
        lambda n: fnp.max(x, initial=n),
        lambda n: fnp.sum(x, None, None, None, False, n),
        lambda n: fnp.interp(x, x[0], x[1], n),
        lambda n: fnp.isclose(x, x, n),
        lambda n: fnp.diff(x, 1, -1, n * x[:, :1]),
    )
    for call in calls:
        for n in range(3):  # NumPy computes the first two calls of exact operations
            call(n)
        before = counters.compiles
        for n in range(3, 7):
            call(n)
        assert counters.compiles == before


def test_errors_name_the_function_after_calls():
    x = fnp.asarray(X)
    for _ in range(2):
        assert fnp.sum(x, axis=1).shape == (3,) and fnp.roll(x, 1, axis=0).shape == X.shape
        with pytest.raises(ShapeError, match="sum"):
            fnp.sum(x, axis=2)
        with pytest.raises(ShapeError, match="roll"):
            fnp.roll(x, 1, axis=2)
        with pytest.raises(TypeError):
            fnp.roll(x)
        with pytest.raises(TypeError, match="axes"):
            fnp.sum(x, axes=1)
    with pytest.raises(ArgumentError):
        fnp.ravel(x, "Q")
