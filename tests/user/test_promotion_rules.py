"""Strict promotion of dtypes and ranks: blocks, decorators, settings, under transformations."""

import warnings

import numpy as np
import pytest
import scipy.linalg

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors

F16, F32, I32, B = (fnp.ones((2, 3), d) for d in ("float16", "float32", "int32", "bool"))


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit, lambda f: ft.jit(ft.vmap(f))], ids=["eager", "jit", "vmap"])
def test_strict_dtypes(wrap):
    with ft.numpy_dtype_promotion("strict"):
        for x, y in ((F16, F32), (F32, I32), (I32, B), (F32, np.ones((2, 3)))):
            for f in (fnp.add, fnp.maximum, lambda x, y: fnp.concatenate([x, y]), lambda x, y: fnp.where(True, x, y)):
                with pytest.raises(errors.DtypeError, match="promotion is strict"):
                    wrap(f)(x, y)
        assert wrap(lambda x, y: x + y)(F16, F16).dtype == np.float16
    assert wrap(lambda x, y: x + y)(F16, F32).dtype == np.float32


def test_lists_of_numbers_that_numpy_has_no_common_dtype_for():
    half = fnp.bfloat16.dtype.type(2)
    for made in (fnp.array([3, half]), fnp.asarray([[half], [3]])):
        assert made.dtype == fnp.bfloat16 and float(made.ravel()[0] + made.ravel()[1]) == 5.0
    assert fnp.array([3, half], "float32").tolist() == [3.0, 2.0]
    for wrong in ([3, None], [half, None], [3, half, "2"], [2**70]):
        with pytest.raises(errors.DtypeError):
            fnp.array(wrong)
    for wrong in ([3, None], [half, None], [3, half, object()], [np.array([None])]):
        with pytest.raises(errors.DtypeError, match="no array can hold"):
            fnp.array(wrong, "float32")


def test_arrays_of_rank_0_and_scalars_of_numpy_promote_as_in_operations():
    for two in (np.array(2.0), np.float64(2)):
        assert fnp.result_type(two, F16) == (F16 * two).dtype == np.float16


def test_numbers_take_the_dtype_of_arrays_of_their_kind_or_higher():
    with ft.numpy_dtype_promotion("strict"):
        assert (
            (F16 * 2 + 1.5).dtype == np.float16
            and (I32 + 1).dtype == np.int32
            and (fnp.ones(2, "complex64") * 2.5).ndim == 1
        )
        for f in (lambda: I32 + 1.5, lambda: F32 * 1j, lambda: B + 1, lambda: fnp.result_type("int8", "int16")):
            with pytest.raises(errors.DtypeError, match="strict"):
                f()
        assert float(fnp.add(1, 2.5)) == 3.5
    assert (I32 + 1.5).dtype == np.float32


def test_ranks():
    x, row = fnp.ones((2, 3)), fnp.ones(3)
    add = ft.jit(lambda x, y: x + y)
    assert add(x, row).shape == (2, 3)
    with ft.numpy_rank_promotion("raise"):
        for f in (fnp.add, add, lambda x, y: fnp.where(x > 0, x, y), lambda x, y: fnp.clip(x, y, y)):
            with pytest.raises(errors.ShapeError, match="differ in rank") as caught:
                f(x, row)
            assert "x[None]" in str(caught.value)
        assert (
            add(x, row[None]).shape == (2, 3) and add(x, 1.0).shape == (2, 3) and add(x, fnp.ones(())).shape == (2, 3)
        )
    with ft.numpy_rank_promotion("warn"), pytest.warns(UserWarning, match=r"\(2, 3\), \(3,\) differ in rank"):
        fnp.subtract(x, row)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert add(x, row).shape == (2, 3)


def test_they_are_settings():
    assert ft.backends.promotion.dtypes == "standard" and ft.backends.promotion.ranks == "allow"

    @ft.numpy_dtype_promotion("strict")
    def f():
        return ft.backends.promotion.dtypes

    assert f() == "strict" and "promotion.ranks" in str(ft.backends.describe("promotion"))
    try:
        ft.backends.promotion.dtypes = "strict"
        with pytest.raises(errors.DtypeError, match="strict"):
            F16 + F32
    finally:
        ft.backends.promotion.dtypes = "standard"
    with pytest.raises(errors.ArgumentError, match="use one of 'standard', 'strict'"):
        ft.numpy_dtype_promotion("loose")


@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_what_functions_are_made_of_is_not_strict(wrap):
    m = np.array([[2.0, 0.5, 0.1], [0.5, 3.0, 0.2], [0.1, 0.2, 4.0]], np.float32)
    v = np.array([1.0, 2.0, 4.0], np.float32)
    cases = [
        (ft.scipy.linalg.expm, (m,), scipy.linalg.expm(m.astype(float))),
        (lambda x, y: fnp.polyfit(x, y, 1), (v, 2 * v + 1), [2, 1]),
        (fnp.trapezoid, (v, v), np.trapezoid(v, v)),
        (lambda x: fnp.histogram(x, bins=3)[0], (v,), np.histogram(v, 3)[0]),
        (lambda x: fnp.put_along_axis(x, fnp.zeros((1, 3), int), 7.0, 0, inplace=False), (m,), [[7] * 3, *m[1:]]),
        (lambda x: ft.image.resize(x, (3, 1), "nearest"), (m,), m[:, 1:2]),
        (lambda x: fnp.packbits(x > 1), (v,), np.packbits(v > 1)),
    ]
    with ft.numpy_dtype_promotion("strict"), ft.numpy_rank_promotion("raise"):
        for f, args, want in cases:
            np.testing.assert_allclose(wrap(f)(*map(fnp.asarray, args)), want, rtol=2e-5, atol=1e-6)
        for f, args, cls in (
            (lambda x, y: fnp.polyfit(x, y, 1), (v, v.astype("float64")), errors.DtypeError),
            (fnp.maximum, (m, v), errors.ShapeError),
            (lambda x, y: x * y, (v, v.astype("float64")), errors.DtypeError),
            (
                lambda x, y: ft.lax.scan(lambda c, z: (c * z, z), x, y)[0],
                (np.float32(1), v.astype("int32")),
                errors.DtypeError,
            ),
        ):
            with pytest.raises(cls, match=r"strict|rank"):
                wrap(f)(*map(fnp.asarray, args))
