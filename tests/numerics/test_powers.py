"""Powers of large arrays of floats: special values, accuracy, derivatives, and programs of many powers."""

# Other compile options: the quick tier has the form of small arrays.

import mpmath
import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import dtypes
from functorch_like.backends import compilation
from functorch_like.primitives.base.lowering import alternatives_of
from functorch_like.primitives.elementwise.powers import pow
from functorch_like.testing.accuracy import ulps

COUNT = 20000  # enough for the form of large arrays
FLOATS = ("float64", "float32", "float16", "bfloat16")


@pytest.fixture(autouse=True)
def optimised():
    with compilation.flags(tiers="off"):
        yield


def special(dtype):
    """Return numbers of which all pairs are tried: zeros, infinities, NaN, whole ones, the largest and the smallest."""
    info = dtypes.finfo(dtype)
    most, least, eps = float(info.max), float(info.tiny), float(info.eps)
    sizes = [0, 1, 2, 3, 0.5, 1.5, 4, 7, 33, 126, 127, np.inf, most, least, eps, 1 + eps, 1 - eps / 2, 1 / eps]
    more = {"float64": [1021, 1022, 1023, 1024, 2 / eps - 1, 1e300], "float32": [125, 128, 2 / eps - 1, 1e38]}
    sizes += more.get(dtype.name, [])
    return np.array([*sizes, *(-s for s in sizes), np.nan]).astype(dtype)


@pytest.mark.parametrize("name", FLOATS)
def test_special_values_are_those_of_numpy(name):
    dtype = np.dtype(getattr(dtypes, name))
    values = special(dtype)
    x, y = (v.ravel() for v in np.meshgrid(values, values))
    wide = np.float32 if dtype.itemsize == 2 else dtype
    with np.errstate(all="ignore"):
        want = np.power(x.astype(wide), y.astype(wide)).astype(dtype).astype(np.float64)
        least = float(dtypes.finfo(dtype).tiny) if dtype.itemsize > 2 else 2.0**-126
        want = np.where(abs(want) < least, np.copysign(0, want), want)  # XLA takes subnormal numbers for zero
    for size in (x.size, COUNT):
        got = np.asarray(ft.jit(pow)(np.resize(x, size), np.resize(y, size)))[: x.size].astype(np.float64)
        with np.errstate(all="ignore"):
            close = abs(got - want) <= 2 * float(dtypes.finfo(dtype).eps) * abs(want)
        same = (np.isnan(got) & np.isnan(want)) | ((close | (got == want)) & (np.signbit(got) == np.signbit(want)))
        wrong = [tuple(float(v[k]) for v in (x, y, got, want)) for k in np.flatnonzero(~same)]
        assert not wrong, (size, wrong[:9])


def operands(dtype, count):
    """Return bases of all sizes, some close to 1, and exponents for which the powers are normal numbers."""
    rng, info = np.random.default_rng(3), dtypes.finfo(dtype)
    part = count // 3
    near = 1 + rng.choice([-1, 1], part) * 10 ** rng.uniform(np.log10(float(info.eps)) + 1, -0.3, part)
    x = np.concatenate([10 ** rng.uniform(-30, 30, part), near, rng.uniform(0.1, 9, count - 2 * part)]).astype(dtype)
    ends = np.log(float(info.tiny)), np.log(float(info.max))
    y = (0.99 * rng.uniform(*ends, count) / np.log(x.astype(np.float64))).astype(dtype)
    y[-part // 2 :] = rng.uniform(-3, 3, part // 2 + part % 2)
    return x, y


@pytest.mark.parametrize(("name", "most"), [("float64", 0.53), ("float32", 0.502)])
def test_powers_are_rounded_once(name, most):
    x, y = operands(np.dtype(name), 3000)
    with mpmath.workprec(120):
        exact = [mpmath.power(float(a), float(b)) for a, b in zip(x, y, strict=True)]
        heads, rests = (np.array([f(v) for v in exact], np.longdouble) for f in (float, lambda v: float(v - float(v))))
        want = heads + rests
        got = np.asarray(ft.jit(pow)(np.resize(x, COUNT), np.resize(y, COUNT)))[: x.size]
        errors = ulps(got, want, np.dtype(name))
    assert errors.max() <= most, (x[errors.argmax()], y[errors.argmax()])


@pytest.mark.parametrize("name", ["float64", "float32"])
def test_derivatives_of_large_arrays(name):
    rng = np.random.default_rng(4)
    x, y = rng.uniform(0.1, 5, COUNT).astype(name), rng.uniform(-3, 3, COUNT).astype(name)
    by_x, by_y = ft.jit(ft.grad(lambda x, y: fnp.sum(fnp.power(x, y)), (0, 1)))(x, y)
    a, b = x.astype(np.float64), y.astype(np.float64)
    tolerance = 8 * np.finfo(name).eps
    np.testing.assert_allclose(by_x, b * a ** (b - 1), rtol=tolerance)
    np.testing.assert_allclose(by_y, a**b * np.log(a), rtol=tolerance, atol=tolerance)


def test_derivatives_at_zero():
    x, y = np.zeros(COUNT), np.resize([0.0, 1.0, 2.0, 3.5], COUNT)
    by_x, by_y = ft.jit(ft.grad(lambda x, y: fnp.sum(fnp.power(x, y)), (0, 1)))(x, y)
    np.testing.assert_array_equal(by_x[:4], [0, 1, 0, 0])
    np.testing.assert_array_equal(by_y[1:4], [0, 0, 0])


@pytest.mark.parametrize("count", [3, 30])
def test_programs_of_many_powers(count):
    def chain(x, y):
        for k in range(count):
            x = fnp.power(0.5 * x + 0.4, y + 0.01 * k)
        return x

    x = np.linspace(0.5, 2, COUNT)
    want = x
    for k in range(count):
        want = (0.5 * want + 0.4) ** (x + 0.01 * k)
    np.testing.assert_allclose(ft.jit(chain)(x, x), want, rtol=1e-11)


def test_many_powers_compile_as_few_forms():
    def text(count):
        x = np.linspace(0.5, 2, COUNT)
        powers = lambda x, y: sum(fnp.power(x, y + k) for k in range(count))
        return ft.jit(powers).lower(x, x).as_text()

    assert "stablehlo.power" not in text(8)
    assert text(12).count("stablehlo.power") == 4


def test_forms_are_taken_by_size_and_dtype():
    names = {a.name for a in alternatives_of(pow.lower)}
    assert {"pow by vectors", "pow in double precision"} <= names
    text = lambda x: ft.jit(pow).lower(x, x).as_text()
    for name in FLOATS:
        assert "stablehlo.power" not in text(np.ones(COUNT, getattr(dtypes, name)))
    assert "stablehlo.power" in text(np.ones(100))
