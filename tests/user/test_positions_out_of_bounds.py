"""Positions out of bounds mean the same in ints, lists, arrays of NumPy and of the package, and traced values."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

N = 5
PLACES = [-12, -7, -6, -5, -1, 0, 3, 4, 5, 6, 11]
X = np.arange(1, N + 1, dtype=np.float32)


def where(i, mode):
    """Return the position of the element that `i` selects, or None."""
    if mode == "wrap":
        return i % N
    i = i + N if i < 0 else i
    return min(max(i, 0), N - 1) if mode == "clip" else i if 0 <= i < N else None


def read(places, mode):
    at = [where(i, mode) for i in places]
    return [-1 if p is None else X[p] for p in at]


def added(places, mode):
    out = X.copy()
    for p in (where(i, mode) for i in places):
        if p is not None:
            out[p] += 1
    return out


HOLDERS = {
    "list": lambda places: places,
    "int64 of NumPy": np.array,
    "int8 of NumPy": lambda places: np.array(places, np.int8),
    "array": fnp.asarray,
    "int8 array": lambda places: fnp.asarray(places, "int8"),
}


@pytest.mark.parametrize("holder", HOLDERS)
@pytest.mark.parametrize("mode", ["clip", "fill", "wrap"])
def test_arrays_of_positions(holder, mode):
    index, x = HOLDERS[holder](PLACES), fnp.asarray(X)
    get = lambda x, i: x.at[i].get(mode=mode, fill_value=-1)
    add = lambda x, i: x.at[i].add(1, mode=mode)
    for f, want in ((get, read(PLACES, mode)), (add, added(PLACES, mode))):
        np.testing.assert_array_equal(f(x, index), want)
        np.testing.assert_array_equal(ft.jit(lambda x, f=f: f(x, index))(x), want)  # the index is a constant of f
        if holder != "list":
            np.testing.assert_array_equal(ft.jit(f)(x, index), want)
    if mode == "clip":
        np.testing.assert_array_equal(x[index], read(PLACES, "clip"))
        np.testing.assert_array_equal(fnp.stack([x, x])[1, index], read(PLACES, "clip"))
    if mode == "fill":
        np.testing.assert_array_equal(x.at[index].add(1), added(PLACES, "fill"))  # updates out of bounds are dropped


@pytest.mark.parametrize("mode", ["clip", "fill", "wrap", "drop"])
def test_single_positions_are_refused_unless_their_meaning_is_said(mode):
    x, how = fnp.asarray(X), "fill" if mode == "drop" else mode
    for i in PLACES:
        np.testing.assert_array_equal(x.at[i].get(mode=mode, fill_value=-1), read([i], how)[0])
        np.testing.assert_array_equal(x.at[i].add(1, mode=mode), added([i], how))
        rows = fnp.stack([x, x])
        np.testing.assert_array_equal(rows.at[:, i].get(mode=mode, fill_value=-1), read([i], how) * 2)
        np.testing.assert_array_equal(rows.at[1, i].add(1, mode=mode), [X, added([i], how)])
        np.testing.assert_array_equal(ft.jit(lambda x, i=i: x.at[i].set(x[0] * 0, mode=mode))(x).sum(),
                                      sum(v for k, v in enumerate(X) if k != where(i, how)))  # fmt: skip
        if not -N <= i < N:
            with pytest.raises(IndexError, match="out of bounds"):
                x.at[i].get()
            with pytest.raises(IndexError, match="out of bounds"):
                x.at[i].get(mode="promise_in_bounds")


def test_positions_wider_than_an_index():
    x, wide = fnp.asarray(X), np.array([2**32 + 1, -(2**40), 2**33])
    np.testing.assert_array_equal(x[wide], [5, 1, 5])
    np.testing.assert_array_equal(x.at[wide].get(mode="wrap"), X[wide % N])
    np.testing.assert_array_equal(x.at[wide].set(0), X)
    np.testing.assert_array_equal(x[np.array([2**64 - 1, 1], np.uint64)], [5, 2])
    assert np.isnan(x.at[2**70].get(mode="fill")) and np.isnan(x.at[-(2**70)].get(mode="fill"))


@pytest.mark.parametrize("dtype", ["int8", "uint8", "int32", "int64", "uint64"])
def test_unravelled_positions_are_clipped_whatever_holds_them(dtype):
    shape, info = (3, 40), np.iinfo(dtype)
    places = np.array([0, 7, 119, min(info.max, 2**40), max(info.min, -5), info.max, info.min], dtype)
    inside = [min(max(int(i) + 120 if i < 0 else int(i), 0), 119) for i in places]
    for given in (places, fnp.asarray(places)):
        for got in (fnp.unravel_index(given, shape), ft.jit(lambda i: fnp.unravel_index(i, shape))(given)):
            np.testing.assert_array_equal(got, np.unravel_index(inside, shape))
            assert [a.dtype for a in got] == ["int32", "int32"]
