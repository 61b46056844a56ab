"""Python's ints beyond the integer dtype beside them: right results where there is one, and errors elsewhere."""

from collections.abc import Callable

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.errors import NumberError

U = np.asarray([1, 44, 200], "uint8")
I = np.asarray([-100, 44, 127], "int8")
CALLS = {
    "isin": lambda np, u, i: np.isin(u, 300),
    "isin of the number": lambda np, u, i: np.isin(300, u),
    "isin below": lambda np, u, i: np.isin(i, -212),
    "digitize": lambda np, u, i: np.digitize(300, u),
    "digitize from above": lambda np, u, i: np.digitize(-1, u[::-1]),
    "searchsorted": lambda np, u, i: np.searchsorted(u, 300),
    "searchsorted below": lambda np, u, i: np.searchsorted(i, -300, side="right"),
    "isclose": lambda np, u, i: np.isclose(u, 300),
    "allclose": lambda np, u, i: np.allclose(u[1], 300),
    "divide": lambda np, u, i: np.divide(u, 300),
    "divided by": lambda np, u, i: 300 / u,
    "arctan2": lambda np, u, i: np.arctan2(u.astype("uint16"), -70000),
    "hypot": lambda np, u, i: np.hypot(300, i.astype("int16") * 0 + 400),
    "copysign": lambda np, u, i: np.copysign(u.astype("int16"), -70000),
    "heaviside": lambda np, u, i: np.heaviside(u * 0, 300),
    "float_power": lambda np, u, i: np.float_power(1000, u[:1]),
    "logaddexp": lambda np, u, i: np.logaddexp(u.astype("int16"), -70000),
    "clip": lambda np, u, i: np.clip(u, 0, 300),
    "clip below": lambda np, u, i: np.clip(u, -5, 100),
    "clip on both sides": lambda np, u, i: np.clip(i, -1000, 1000),
}
SETS = {
    "union1d": lambda np, u: np.union1d(u, 300),
    "setdiff1d": lambda np, u: np.setdiff1d(u, 300),
    "setdiff1d of the number": lambda np, u: np.setdiff1d(300, u),
    "intersect1d": lambda np, u: np.intersect1d(u, 300),
    "setxor1d": lambda np, u: np.setxor1d(u, 300),
}
REFUSED = {
    "the start of a maximum": lambda np, u: np.max(u, initial=300),
    "the start of a minimum": lambda np, u: np.min(u, initial=-1),
    "the start of a maximum without NaN": lambda np, u: np.nanmax(u, initial=300),
    "a bound below all numbers": lambda np, u: np.clip(u, None, -1),
    "a bound above all numbers": lambda np, u: np.clip(u, 300, None),
    "an element": lambda np, u: np.put(u, 0, 300, **({"inplace": False} if np is fnp else {})),
    "a maximum": lambda np, u: np.maximum(u, 300),
}


@pytest.mark.parametrize("case", CALLS)
def test_right_results(case: str) -> None:
    call = CALLS[case]
    expected = call(np, U.astype("int64") if "arctan2" not in case else U, I.astype("int64"))
    u, i = fnp.asarray(U), fnp.asarray(I)
    for result in (call(fnp, u, i), ft.jit(lambda a, b: call(fnp, a, b))(u, i)):
        np.testing.assert_allclose(result, expected, rtol=1e-6)


@pytest.mark.parametrize("number", [300, -56], ids=str)
@pytest.mark.parametrize("kind", [np.int16, np.int64, lambda n: np.array(n), lambda n: np.array(n, "int16")])
@pytest.mark.parametrize("name", ["equal", "not_equal", "less", "greater_equal", "divide", "add", "minimum"])
def test_integers_of_numpy_are_as_python_s(name: str, kind: Callable[[int], np.generic], number: int) -> None:
    function = getattr(fnp, name)
    for call in (function, lambda a, b: ft.jit(lambda x: function(x, b))(a)):
        if name in ("add", "minimum"):
            with pytest.raises(NumberError, match=f"the Python int {number} is out of bounds for uint8"):
                call(fnp.asarray(U), kind(number))
        else:
            expected = getattr(np, name)(U.astype("int64"), number)
            np.testing.assert_allclose(call(fnp.asarray(U), kind(number)), expected, rtol=1e-6)


MIXED = [
    (np.array(-71, "int8"), np.array(19, "uint16")), (np.array(71, "uint8"), np.array(-19, "int8")),
    (np.int16(-4), np.array(19, "uint8")), (np.int32(-4), np.uint32(19)), (np.int64(-4), np.uint64(19)),
]  # fmt: skip


@pytest.mark.parametrize("name", ["less", "equal", "multiply", "floor_divide", "remainder", "minimum", "add"])
def test_two_integers_of_numpy_with_and_without_sign(name: str) -> None:
    function = getattr(fnp, name)
    for a, b in MIXED:
        for x, y in ((a, b), (b, a)):
            expected = getattr(np, name)(int(x), int(y))
            assert function(x, y).item() == expected
            assert ft.jit(function)(x, y).item() == expected


def test_comparisons_of_a_scalar_of_numpy_with_an_int_beyond_its_dtype() -> None:
    assert fnp.less(-1, np.uint64(2**64 - 1)).item()
    assert not fnp.equal(np.uint32(2**32 - 1), -1).item()


@pytest.mark.parametrize("case", SETS)
def test_sets(case: str) -> None:
    np.testing.assert_array_equal(SETS[case](fnp, fnp.asarray(U)), SETS[case](np, U.astype("int64")))


@pytest.mark.parametrize("case", REFUSED)
def test_refused(case: str) -> None:
    with pytest.raises(OverflowError):
        REFUSED[case](np, U.copy())
    for call in (REFUSED[case], lambda np, u: ft.jit(lambda u: REFUSED[case](np, u))(u)):
        with pytest.raises(OverflowError, match="out of bounds for uint8"):
            call(fnp, fnp.asarray(U))


def test_histograms_of_bytes() -> None:
    image = np.random.default_rng(0).integers(0, 256, 500).astype("uint8")
    for bins, ends in ((256, (0, 256)), (16, (0, 256)), (5, (-1, 300))):
        counts, edges = fnp.histogram(fnp.asarray(image), bins, ends)
        expected, at = np.histogram(image, bins, ends)
        np.testing.assert_array_equal(counts, expected)
        np.testing.assert_allclose(edges, at, rtol=1e-6)
    both, _, _ = fnp.histogram2d(image, image, 4, [[0, 256], [0, 256]])
    np.testing.assert_array_equal(both, np.histogram2d(image, image, 4, [[0, 256], [0, 256]])[0])


def test_products_and_choices_are_refused() -> None:
    u = fnp.asarray(U)
    for call in (lambda: fnp.kron(u, 300), lambda: fnp.choose(u * 0, [300, u])):
        with pytest.raises(OverflowError, match="out of bounds for uint8"):
            call()


@pytest.mark.parametrize("function", [lambda u: u / -1, lambda u: -(2**40) / u, lambda u: fnp.float_power(u, 2**40)])
def test_quotients_are_as_strong_as_those_of_numbers_inside(function):
    for u in (fnp.asarray([1, 2], "uint8"), fnp.asarray([1, 2], "uint32")):
        for result in (function(u), ft.jit(function)(u)):
            assert result.dtype == "float32" and (result * np.float16([1])).dtype == "float32"
            assert (fnp.ones(2, "float16") * result).dtype == "float32"
