"""Distinct elements and functions of sets, eager and with sizes under jit."""

import numpy as np
import pytest
from support.compare import agrees, same

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError, ConcretizationError

SETS = ("union1d", "intersect1d", "setdiff1d", "setxor1d")


def drawn(dtype: str) -> np.ndarray:
    rng = np.random.default_rng(0)
    real, imaginary = rng.integers(-2 if dtype[0] != "u" else 0, 3, (2, 4, 5))
    return (real + 1j * imaginary).astype(dtype) if dtype.startswith("c") else real.astype(dtype)


@pytest.mark.parametrize("dtype", ["int32", "uint8", "bool", "float32", "complex64"])
def test_unique(dtype):
    x = drawn(dtype)
    for axis in (None, 0, 1):
        agrees("unique", x, True, True, True, axis=axis)
        want = np.unique(x, True, True, True, axis=axis)
        size = want[0].shape[axis or 0]
        jitted = ft.jit(lambda v, axis=axis, size=size: fnp.unique(v, True, True, True, axis=axis, size=size))
        same(jitted(x), want)


def test_unique_fills_and_cuts_to_the_size():
    x = fnp.asarray([3, 1, 3, 2])
    values, index, counts = ft.jit(lambda v: fnp.unique(v, True, return_counts=True, size=5))(x)
    assert (values.tolist(), index.tolist(), counts.tolist()) == ([1, 2, 3, 1, 1], [1, 3, 0, 1, 1], [1, 1, 2, 0, 0])
    assert fnp.unique(x, size=2).tolist() == [1, 2]
    assert fnp.unique(x, size=4, fill_value=9).tolist() == [1, 2, 3, 9]
    assert ft.vmap(lambda v: fnp.unique(v, size=2))(fnp.asarray([[5, 4, 5], [7, 7, 7]])).tolist() == [[4, 5], [7, 7]]
    with pytest.raises(ConcretizationError, match="size="):
        ft.jit(fnp.unique)(x)


@pytest.mark.parametrize("equal_nan", [True, False])
def test_unique_nan(equal_nan):
    x = np.array([1.0, np.nan, 2.0, np.nan, -0.0, 0.0])
    want = np.unique(x, True, True, True, equal_nan=equal_nan)
    same(fnp.unique(fnp.asarray(x), True, True, True, equal_nan=equal_nan), want)
    size = len(want[0])
    same(ft.jit(lambda v: fnp.unique(v, True, True, True, equal_nan=equal_nan, size=size))(x), want)


def test_unique_of_the_standard():
    x = np.array([[2.0, np.nan], [np.nan, 1.0]])
    for name in ("unique_all", "unique_counts", "unique_inverse"):
        agrees(name, x)
        assert getattr(fnp, name)(x)._fields == getattr(np, name)(x)._fields
    agrees("unique_values", x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint64", "float16", "float32", "float64", "bfloat16", "complex64"])
def test_values_alone_are_those_beside_positions(dtype):
    """Both agree bit for bit: of equal elements, zeros and NaNs included, the first one is kept."""
    x = drawn("float32")
    if dtype not in ("bool", "int8", "uint64"):
        x = np.concatenate([x.ravel(), np.array([-0.0, np.nan, 0.0, -np.nan, np.inf, -np.inf], np.float32)])
        x = np.concatenate([x, -x])
    x = fnp.asarray(np.abs(x) if dtype == "uint64" else x).astype(dtype)
    in_bits = lambda v: np.asarray(v).view(np.uint8).tolist()
    for each in (x, x[::-1], fnp.zeros((2, 0), dtype)):
        for equal_nan in (True, False):
            alone = fnp.unique(each, equal_nan=equal_nan)
            beside = fnp.unique(each, return_index=True, equal_nan=equal_nan)[0]
            assert in_bits(alone) == in_bits(beside) and alone.dtype == beside.dtype == each.dtype
        assert in_bits(fnp.unique_values(each)) == in_bits(fnp.unique_all(each).values)
    assert fnp.unique(2.5).tolist() == fnp.unique([2.5]).tolist() == [2.5]


@pytest.mark.parametrize("dtype", ["bool", "int64", "bfloat16", "float32", "float64", "complex64"])
@pytest.mark.parametrize("copies", [1, 300])
def test_values_of_a_size_are_those_beside_positions(dtype, copies):
    plain = lambda v: np.asarray(
        v.astype("float32") if dtype == "bfloat16" else v
    )  # NumPy's tests take its NaN for equal
    x = np.concatenate([drawn("float32").ravel(), np.array([-0.0, 0.0, 3.5, -3.5], np.float32)])
    if dtype not in ("bool", "int64"):
        x = np.concatenate([x, np.array([np.nan, -np.inf, np.nan], np.float32)])
    for sign in (1, -1):
        many = fnp.asarray(np.tile(sign * x, copies)).astype(dtype)
        for n, fill, equal_nan in ((3, None, True), (40, 7, True), (40, None, False)):
            options = {"size": n, "fill_value": fill, "equal_nan": equal_nan}
            alone = ft.jit(lambda v, options=options: fnp.unique(v, **options))(many)
            beside = fnp.unique(many, return_index=True, **options)[0]
            assert alone.dtype == beside.dtype == many.dtype and alone.shape == (n,)
            alone, beside = plain(alone), plain(beside)
            np.testing.assert_array_equal(alone, beside)
            np.testing.assert_array_equal(*(np.signbit(v.real[v == 0]) for v in (alone, beside)))
        np.testing.assert_array_equal(
            *map(plain, (fnp.unique_values(many, size=9), fnp.unique_all(many, size=9).values))
        )


def test_derivatives_of_distinct_values_reach_the_first_of_equal_elements():
    x = fnp.asarray([2.0, -0.0, 5.0, 0.0, 2.0])
    weighted = lambda v: (fnp.unique(v, size=4) * fnp.asarray([1.0, 10.0, 100.0, 1000.0])).sum()
    assert ft.grad(weighted)(x).tolist() == ft.jit(ft.grad(weighted))(x).tolist() == [10.0, 1001.0, 100.0, 0.0, 0.0]
    assert ft.vmap(lambda v: fnp.unique(v, size=3))(fnp.stack([x, -x]))[1].tolist() == [-5.0, -2.0, 0.0]
    assert fnp.unique(fnp.zeros(0), size=2).tolist() == [0.0, 0.0]


def test_unique_edges():
    for x in (np.zeros(0), np.zeros((0, 3)), np.array(3.0)):
        agrees("unique", x, True, True, True)
    agrees("unique", np.zeros((0, 3)), axis=0)
    agrees("unique", np.zeros((3, 0)), axis=0)
    assert fnp.unique(fnp.zeros(0), size=2, fill_value=7.0).tolist() == [7.0, 7.0]
    assert fnp.unique(fnp.asarray([2, 1, 2], "bfloat16")).dtype == fnp.bfloat16
    assert ft.grad(lambda v: (fnp.unique(v) ** 2).sum())(fnp.asarray([1.0, 3.0, 1.0])).tolist() == [2.0, 6.0, 0.0]


@pytest.mark.parametrize("name", SETS)
@pytest.mark.parametrize("dtype", ["int32", "bool", "float32", "complex64"])
def test_two_sets(name, dtype):
    x = drawn(dtype)
    y = x.reshape(-1)[3:9] if dtype == "bool" else x.reshape(-1)[3:9] + x.dtype.type(1)
    agrees(name, x, y)
    want = getattr(np, name)(x, y)
    sized = ft.jit(lambda a, b: (getattr(fnp, name)(a, b, size=n), getattr(fnp, name)(a, b, size=n + 2, fill_value=1)))
    n = len(want)
    exact, longer = sized(x, y)
    same(exact, want)
    same(longer, np.concatenate([want, np.ones(2, want.dtype)]))


@pytest.mark.parametrize("name", SETS)
def test_two_sets_with_nan_or_nothing(name):
    x, y = np.array([1.0, np.nan, 2.0, np.nan]), np.array([np.nan, 2.0, 3.0])
    agrees(name, x, y)
    n = len(getattr(np, name)(x, y))
    same(ft.jit(lambda a, b: getattr(fnp, name)(a, b, size=n))(x, y), getattr(np, name)(x, y))
    for a, b in ((x[:0], y), (y, x[:0]), (x[:0], y[:0])):
        agrees(name, a, b)
    with pytest.raises(ConcretizationError, match="size="):
        ft.jit(lambda a: getattr(fnp, name)(a, a))(y)


def test_sets_have_derivatives():
    f = lambda v: (fnp.setdiff1d(v, fnp.asarray([2.0])) ** 2).sum()
    assert ft.grad(f)(fnp.asarray([1.0, 2.0, 3.0])).tolist() == [2.0, 0.0, 6.0]


def test_intersections_tell_where():
    agrees("intersect1d", np.array([5, 1, 3, 1]), np.array([3, 3, 1, 9]), return_indices=True)
    out = ft.jit(lambda a, b: fnp.intersect1d(a, b, return_indices=True, size=3, fill_value=-1))(
        np.array([5, 1, 3, 1]), np.array([3, 3, 1, 9])
    )
    assert [o.tolist() for o in out] == [[1, 3, -1], [1, 2, 4], [2, 0, 4]]


@pytest.mark.parametrize("method", ["auto", "compare_all", "binary_search", "sort"])
def test_isin(method):
    rng = np.random.default_rng(1)
    for dtype in ("int32", "float32", "complex64", "bool"):
        x, few = drawn(dtype), drawn(dtype)[0, :2]
        same(fnp.isin(x, few, method=method), np.isin(x, few))
        same(fnp.isin(x, few, invert=True, method=method), np.isin(x, few, invert=True))
    many = rng.integers(0, 50, 40)
    same(ft.jit(lambda v: fnp.isin(v, many, method=method))(np.arange(60)), np.isin(np.arange(60), many))
    same(fnp.isin(np.array([np.nan, 1.0]), np.array([np.nan, 2.0]), method=method), np.array([False, False]))
    same(fnp.isin(np.zeros((2, 0)), np.zeros(0), method=method), np.zeros((2, 0), bool))
    with pytest.raises(ArgumentError, match="method"):
        fnp.isin(many, many, method="guess")
