"""Parts of numbers, divisors, products of vectors, sequences, and functions along axes."""

import enum

import numpy as np
import pytest
from support.compare import agrees, same

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import ArgumentError, DtypeError, ShapeError
from functorch_like.testing import check_grads

# XLA's CPU code flushes subnormal numbers to zero, so there are none here.
EDGES = [0.0, -0.0, 1.0, -1.5, np.inf, -np.inf, np.nan, 3e4, -7.25, 1e-3]


@pytest.mark.parametrize("dtype", ["float16", "float32", "float64"])
def test_parts_of_floats(dtype):
    x = np.array([*EDGES, *([] if dtype == "float16" else [3e38, -1e-37])]).astype(dtype)
    for name in ("frexp", "modf"):
        for got, want in zip(getattr(fnp, name)(x), getattr(np, name)(x), strict=True):
            np.testing.assert_array_equal(np.asarray(got), want)
            np.testing.assert_array_equal(np.signbit(got), np.signbit(want))
    with np.errstate(all="ignore"):
        gap = np.spacing(np.abs(x))  # NumPy's spacing of negative float16 is positive
    np.testing.assert_array_equal(np.asarray(fnp.spacing(x)), np.where(x < 0, -gap, gap))
    agrees("fabs", x)
    agrees("heaviside", x, 0.5)
    for k in (-200, -20, -3, 0, 1, 5, 15, 127, 128, 300, 3000):
        with np.errstate(all="ignore"):
            got, want = np.asarray(fnp.ldexp(x, k)), np.ldexp(x, k)
        tiny = (want != 0) & (np.abs(want) < np.finfo(dtype).tiny)
        np.testing.assert_array_equal(np.where(tiny, 0, got), np.where(tiny, 0, want))


def test_parts_have_derivatives():
    x = np.array([12.3, -0.3, 1.75])
    for f in (lambda v: fnp.ldexp(v, fnp.asarray([3, -2, 0])), lambda v: fnp.frexp(v)[0], lambda v: fnp.modf(v)[0],
              fnp.fabs, fnp.i0, lambda v: fnp.heaviside(v, 0.5)):  # fmt: skip
        check_grads(f, (x,), order=1)
    assert float(ft.grad(fnp.i0)(0.0)) == 0.0
    assert float(ft.grad(lambda v: fnp.modf(v)[0])(-2.0)) == 1.0
    agrees("i0", np.linspace(-30.0, 30.0, 7))
    agrees("fabs", np.arange(-2, 3))
    with pytest.raises(DtypeError, match="integers as exponents"):
        fnp.ldexp(1.0, 2.0)
    with pytest.raises(DtypeError, match="real numbers"):
        fnp.fabs(1j)


@pytest.mark.parametrize("dtype", ["int8", "int32", "uint8", "uint64"])
def test_divisors(dtype):
    extreme = -128 if dtype == "int8" else 200
    a, b = np.array([0, 12, 18, extreme, 100, 7]).astype(dtype), np.array([0, 18, 0, 3, 75, 9]).astype(dtype)
    for name in ("gcd", "lcm"):
        agrees(name, a[:, None], b)
        assert getattr(fnp, name)(a, b).dtype == dtype
    agrees("bitwise_count", a)
    assert fnp.bitwise_count(a).dtype == np.uint8
    assert ft.vmap(fnp.gcd)(a, b).tolist() == np.gcd(a, b).tolist()
    with pytest.raises(DtypeError, match="integers"):
        fnp.gcd(1.0, 2)


def test_cross():
    rng = np.random.default_rng(0)
    for m in (2, 3):
        for n in (2, 3):
            a, b = rng.normal(size=(4, m)), rng.normal(size=(5, 1, n))
            full = [np.pad(v, [(0, 0)] * (v.ndim - 1) + [(0, 3 - v.shape[-1])]) for v in (a, b)]
            want = np.cross(*full)[..., 2] if m == n == 2 else np.cross(*full)
            same(fnp.cross(a, b), want)
            same(fnp.cross(a.T, b, axisa=0, axisc=0), want if m == n == 2 else np.moveaxis(want, -1, 0))
            check_grads(fnp.cross, (a, b[0]), order=2)
    agrees("cross", a[:3], a[:3], axis=0)
    agrees("cross", np.arange(3), np.arange(3) * 1j)
    agrees("cross", np.ones(4), np.ones(4))


def test_products_with_vectors():
    rng = np.random.default_rng(0)
    m = rng.normal(size=(2, 3, 4)) + 1j * rng.normal(size=(2, 3, 4))
    agrees("matvec", m, rng.normal(size=(5, 1, 4)) + 1j)
    agrees("vecmat", rng.normal(size=(5, 1, 3)) + 1j, m)
    agrees("matvec", m, np.ones(3))
    agrees("matvec", np.ones(3), np.ones(3))


def test_geomspace():
    for start, stop, num in ((1.0, 1000.0, 4), (1000.0, 1.0, 4), (-1.0, -8.0, 7), (1e-300, 1e300, 5), (1.0, -8.0, 3)):
        agrees("geomspace", np.array(start), np.array(stop), num)
        agrees("geomspace", np.array(start), np.array(stop), num, endpoint=False)
    agrees("geomspace", np.array(1 + 1j), np.array(-4 + 0j), 5)
    agrees("geomspace", np.array([1.0, 2.0]), np.array([[8.0, 9.0]]), 4, axis=-1)
    for num in (0, 1, -1):
        agrees("geomspace", 1.0, 5.0, num)
    check_grads(lambda a, b: fnp.geomspace(a, b, 5), (np.array(2.0), np.array(7.0)), order=1)


def test_vander():
    for dtype in ("int32", "float64", "uint8", "complex128", "bool"):
        for n in (None, 0, 1, 5):
            agrees("vander", np.arange(3).astype(dtype), n)
            agrees("vander", np.arange(3).astype(dtype), n, increasing=True)
    agrees("vander", np.ones((2, 2)))
    check_grads(lambda x: fnp.vander(x, 4), (np.array([0.0, 2.0, -1.0]),), order=2)


def test_unwrap():
    p = np.cumsum(np.random.default_rng(0).normal(size=(3, 20)) * 2, axis=1) % (2 * np.pi)
    for axis in (0, 1):
        agrees("unwrap", p, axis=axis)
        agrees("unwrap", p, discont=4.0, axis=axis)
    whole = np.random.default_rng(0).integers(-20, 20, 50)
    for period in (4, 5, 7, 360):
        agrees("unwrap", whole, period=period)
        agrees("unwrap", whole.astype(float), period=period)
    agrees("unwrap", np.array([1.0]))
    agrees("unwrap", np.zeros(0))
    check_grads(fnp.unwrap, (p[0],), order=1)


def test_apply_along_axis():
    x = np.random.default_rng(0).normal(size=(2, 3, 4))
    for axis in range(-3, 4):
        for f in (lambda v: v - v.min(), lambda v: v.sum(), lambda v: v[:, None] * v[None]):
            agrees("apply_along_axis", f, axis, x)
    assert fnp.apply_along_axis(lambda v: v.sum(), 1, fnp.zeros((0, 3))).shape == (0,)
    same(fnp.apply_over_axes(fnp.sum, x, (0, 2)), np.apply_over_axes(np.sum, x, (0, 2)))
    with pytest.raises(ShapeError, match="reduce"):
        fnp.apply_over_axes(lambda a, axis: a.sum(), x, 0)


def test_block():
    agrees("block", [[np.eye(2), np.zeros((2, 1))], [np.ones((1, 3))]])
    agrees("block", [1, np.ones(2), 3])
    agrees("block", np.ones(3))
    agrees("block", [[1, 2], [3, 4]])
    agrees("block", [[np.ones((2, 2, 2))], [np.zeros((2, 2, 2))]])
    for wrong in ([], [[1], 2], [[], [1]]):
        with pytest.raises(ArgumentError, match="nest"):
            fnp.block(wrong)
    same(ft.grad(lambda a: (fnp.block([[a, 2 * a]]) ** 2).sum())(fnp.ones(2)), np.array([10.0, 10.0]))


@pytest.mark.parametrize("dtype", ["int8", "int16", "float32", "bfloat16", "complex64", "bool"])
def test_subclasses_of_numbers_get_the_dtype_that_is_named(dtype):
    class Item(enum.IntEnum):
        COIN = 5

    class Length(float):
        pass

    for value in (Item.COIN, Length(2.0)):
        plain = int(value) if isinstance(value, int) else float(value)
        scalar_type = fnp.bool_ if dtype == "bool" else getattr(fnp, dtype)
        for made in (fnp.asarray(value, dtype), fnp.array(value, dtype), scalar_type(value)):
            assert made.dtype == fnp.asarray(plain, dtype).dtype and complex(made) == complex(fnp.asarray(plain, dtype))
        assert fnp.asarray(value).aval is fnp.asarray(plain).aval
        assert (fnp.ones(2, "bfloat16") * fnp.asarray(value)).dtype == fnp.bfloat16
