"""`fnp.pad` with margins that are computed: statistics and ramps, against NumPy, with derivatives and batches."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, testing

STATISTICS = ["mean", "median", "maximum", "minimum"]
RNG = np.random.default_rng(0)
SHAPES = [((5,), 2), ((3, 4), ((1, 2), (3, 0))), ((0, 3), ((0, 0), (1, 2)))]


def drawn(shape, dtype):
    return (RNG.normal(size=shape) * 20).astype(dtype) if dtype != "bool" else RNG.normal(size=shape) > 0


@pytest.mark.parametrize("dtype", ["float32", "int32", "uint8", "bool"])
@pytest.mark.parametrize("mode", [*STATISTICS, "linear_ramp"])
def test_margins_are_those_of_numpy(mode, dtype):
    for shape, widths in SHAPES:
        x = abs(drawn(shape, dtype)) if dtype == "uint8" else drawn(shape, dtype)
        options = [{"end_values": v} for v in (3, (1, 5))] if mode == "linear_ramp" else [
            {"stat_length": n} for n in (None, 99, (2, 3))
        ]  # fmt: skip
        for option in options:
            got, want = fnp.pad(x, widths, mode, **option), np.pad(x, widths, mode, **option)
            assert got.dtype == dtype
            tolerance = 1e-5 if dtype == "float32" else 0
            np.testing.assert_allclose(np.asarray(got, "float64"), want, rtol=tolerance, atol=tolerance * 10)


def test_end_values_for_each_axis_and_complex_ones():
    x = RNG.normal(size=(2, 3))
    ends = ((1.5, -2.0), (0.5, 8.0))
    np.testing.assert_allclose(
        fnp.pad(x, 2, "linear_ramp", end_values=ends), np.pad(x, 2, "linear_ramp", end_values=ends)
    )
    z = x + 1j * x[::-1]
    for mode in ("mean", "linear_ramp"):
        np.testing.assert_allclose(fnp.pad(z, 2, mode), np.pad(z, 2, mode), rtol=1e-13)


@pytest.mark.parametrize("mode", [*STATISTICS, "linear_ramp"])
def test_margins_have_derivatives_and_batches(mode):
    x = RNG.normal(size=(3, 4))
    option = {"end_values": 2.0} if mode == "linear_ramp" else {"stat_length": (2, 3)}
    padded = lambda v: fnp.pad(v, ((1, 2), (2, 1)), mode, **option)
    weights = RNG.normal(size=padded(x).shape)
    loss = lambda v: fnp.sum(weights * padded(v) ** 2)
    in_numpy = lambda v: np.sum(weights * np.pad(v, ((1, 2), (2, 1)), mode, **option) ** 2)
    step, want = 1e-6, np.zeros_like(x)
    for at in np.ndindex(*x.shape):
        moved = np.zeros_like(x)
        moved[at] = step
        want[at] = (in_numpy(x + moved) - in_numpy(x - moved)) / (2 * step)
    for gradient in (ft.grad(loss)(x), ft.jit(ft.grad(loss))(x)):
        np.testing.assert_allclose(gradient, want, rtol=1e-6, atol=1e-7)
    rows = ft.vmap(lambda v: fnp.pad(v, (2, 1), mode, **option))(x)
    np.testing.assert_allclose(rows, np.stack([np.pad(v, (2, 1), mode, **option) for v in x]), rtol=1e-13)


def test_end_values_have_derivatives():
    gradient = ft.grad(lambda e: fnp.sum(fnp.pad(np.ones(2), (4, 0), "linear_ramp", end_values=e)))(3.0)
    assert float(gradient) == 1 + 0.75 + 0.5 + 0.25


@pytest.mark.parametrize("ends", [[5.0, 7.0], [[5.0, 7.0]], [[1.0, 2.0], [3.0, 4.0]], 6.0])
def test_constants_of_margins_may_be_arrays(ends):
    x = np.arange(6.0).reshape(2, 3)
    expected = np.pad(x, 1, constant_values=ends)
    array = fnp.asarray(ends, "float64")
    np.testing.assert_array_equal(fnp.pad(x, 1, constant_values=array), expected)
    np.testing.assert_array_equal(ft.jit(lambda x, ends: fnp.pad(x, 1, constant_values=ends))(x, array), expected)


def test_bad_options():
    for length in (0, -1, 1.5, "two"):
        with pytest.raises(errors.ArgumentError, match="stat_length"):
            fnp.pad(fnp.ones(3), 1, "mean", stat_length=length)
    with pytest.raises(errors.ArgumentError, match="linear_ramp"):
        fnp.pad(fnp.ones(3), 1, "ramp")
    with pytest.raises(errors.ShapeError, match="nothing"):
        fnp.pad(fnp.ones(0), 1, "mean")


@pytest.mark.parametrize("dtype", ["float64", "int32", "uint8", "complex128"])
@pytest.mark.parametrize("mode", ["reflect", "symmetric"])
def test_odd_mirror_images_are_those_of_numpy(mode, dtype):
    for n in (1, 2, 3, 5):
        x = drawn((n,), dtype) if dtype != "uint8" else abs(drawn((n,), "int32") % 9).astype("uint8")
        for widths in ((0, 1), (2, 0), (3, 11), (12, 5)):
            got = fnp.pad(x, widths, mode, reflect_type="odd")
            np.testing.assert_allclose(got, np.pad(x, widths, mode, reflect_type="odd"), rtol=1e-12, atol=1e-10)
            assert got.dtype == dtype
    x, widths = drawn((3, 4), "float64"), ((2, 1), (3, 9))
    padded = lambda x: fnp.pad(x, widths, mode, reflect_type="odd")
    np.testing.assert_allclose(padded(x), np.pad(x, widths, mode, reflect_type="odd"), atol=1e-10)
    testing.check_grads(padded, (x,), order=1)
    rows = ft.vmap(lambda v: fnp.pad(v, (2, 3), mode, reflect_type="odd"))(x)
    np.testing.assert_allclose(rows, [np.pad(v, (2, 3), mode, reflect_type="odd") for v in x], atol=1e-10)
    with pytest.raises(errors.ArgumentError, match="reflect_type"):
        fnp.pad(x, 1, mode, reflect_type="both")
