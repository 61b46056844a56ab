"""Special values agree in kind in both tiers of compilation, and with NumPy."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax

TIERS = ("quick", "off")
FLOATS = np.array([0.0, -0.0, 1, -1, 2, 0.5, -2.5, np.inf, -np.inf, np.nan, 3e38, -3e38, 1e10, 709, -104, 1e-30])
WHOLE = np.array([0, 1, -1, 2, -2, 7, -7, 31, 32, 63, 64, -(2**31), 2**31 - 1, 12345], np.int64)


def computed(tier, f, *args):
    with backends.compilation.flags(tiers=tier), backends.cache.flags(enabled=False):
        return [np.asarray(x) for x in ft.jit(f)(*args)]


def kinds(x):
    """Encode NaN, infinities, zeros and signs as numbers."""
    x = x.astype(np.float64)
    return np.where(np.isnan(x), 9, np.where(np.isinf(x), 5 * np.sign(x), np.where(x == 0, 0, np.sign(x))))


def arithmetic(np_):
    def f(x, y):
        return [x + y, x - y, x * y, x / y, np_.maximum(x, y), np_.minimum(x, y), np_.fmod(x, y), np_.arctan2(x, y),
                np_.power(x, y), np_.hypot(x, y), np_.copysign(x, y)]  # fmt: skip

    return f


def functions(np_):
    names = (
        "abs negative sign sqrt exp exp2 expm1 log log1p log2 sin cos tanh sinh cosh arctan arcsinh arctanh cbrt floor "
        "ceil rint trunc square reciprocal arcsin"
    )
    return lambda x: [getattr(np_, name)(x) for name in names.split()]


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("dtype", ["float32", "float64"])
def test_floats(tier, dtype):
    x = FLOATS.astype(dtype)
    with np.errstate(all="ignore"):
        want = [*functions(np)(x), *arithmetic(np)(x[:, None], x[None])]
        want += [np.isnan(x), x < 1, x == x, np.argsort(x, stable=True), np.sort(x), np.max(x), np.nanmax(x)]
    got = computed(
        tier,
        lambda x: [
            *functions(fnp)(x), *arithmetic(fnp)(x[:, None], x[None]),
            fnp.isnan(x), x < 1, x == x, fnp.argsort(x), fnp.sort(x), fnp.max(x), fnp.nanmax(x),
        ],
        x,
    )  # fmt: skip
    tiny = np.finfo(dtype).tiny  # XLA:CPU treats subnormal numbers as zero
    for k, (a, b) in enumerate(zip(got, want, strict=True)):
        known = (np.abs(b.astype(np.float64)) >= tiny) | (b == 0) | np.isnan(b)
        np.testing.assert_array_equal(kinds(a)[known], kinds(b)[known], err_msg=str(k))


def whole_power(x, y):
    """Return the power modulo 2**64, or 0 where it would be a fraction."""
    return pow(x, y, 2**64) if y >= 0 else {1: 1, -1: 1 - 2 * (y & 1)}.get(x, 0) % 2**64


@pytest.mark.parametrize("tier", TIERS)
@pytest.mark.parametrize("dtype", ["int8", "int32", "int64", "uint8", "uint32"])
def test_whole_numbers(tier, dtype):
    x = WHOLE.astype(dtype)
    a, b = np.broadcast_arrays(x[:, None], x[None])
    with np.errstate(all="ignore"):
        want = [a + b, a * b, a & b, np.maximum(a, b), np.abs(x), x.astype(np.float32), x.astype(np.int8), np.cumsum(x)]
        power = np.array([[whole_power(int(p), int(q)) for q in x] for p in x], np.uint64).astype(dtype)
        safe = np.where((b == 0) | ((b == -1) if dtype[0] == "i" else False), 3, b).astype(dtype)
        want += [power, a // safe, a % safe]
    got = computed(
        tier,
        lambda x, a, b, safe: [
            a + b, a * b, a & b, fnp.maximum(a, b), abs(x), x.astype("float32"), x.astype("int8"),
            fnp.cumsum(x), lax.pow(a, b), a // safe, a % safe,
        ],
        x, a, b, safe,
    )  # fmt: skip
    for k, (p, q) in enumerate(zip(got, want, strict=True)):
        np.testing.assert_array_equal(p, q.astype(p.dtype), err_msg=str(k))


@pytest.mark.parametrize("dtype", ["int8", "int32", "int64"])
def test_divisions_of_whole_numbers_without_a_result_agree(dtype):
    """Both tiers agree on divisions by zero, and of the least number by -1, for which NumPy warns."""
    x = WHOLE.astype(dtype)
    a, b = map(np.array, np.broadcast_arrays(x[:, None], x[None]))
    f = lambda a, b: [
        lax.div(a, b),
        lax.rem(a, b),
        a // b,
        a % b,
        lax.shift_left(a, b),
        lax.shift_right_arithmetic(a, b),
    ]
    for p, q in zip(*(computed(tier, f, a, b) for tier in TIERS), strict=True):
        np.testing.assert_array_equal(p, q)


def test_minus_one_to_a_negative_power():
    """XLA without fusion emitters gave 0."""
    x, y = np.array([-1, -1, -1, 1, 2, 0], np.int32), np.array([-1, -2, -7, -3, -1, -1], np.int32)
    for tier in TIERS:
        assert computed(tier, lambda x, y: [lax.pow(x, y)], x, y)[0].tolist() == [-1, 1, -1, 1, 0, 0]
