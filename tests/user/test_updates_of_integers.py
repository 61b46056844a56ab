"""Updates `x.at[i]` of integers and booleans by other dtypes: NumPy's result in 64 bits, in the dtype of the array."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

CASES = [
    ("subtract", "float32", np.uint8(5)),
    ("subtract", "int32", np.array(-128, "int8")),
    ("subtract", "float32", True),
    ("subtract", "float32", [1, 2]),
    ("subtract", "uint8", 200),
    ("add", "int32", 1.7),
    ("add", "int32", -0.5),
    ("multiply", "int32", 0.5),
    ("multiply", "uint8", 1.5),
    ("multiply", "int64", 0.1),
    ("min", "uint8", np.array(300)),
    ("max", "uint8", np.array(-3)),
    ("min", "int16", np.array([70000, 3])),
    ("max", "uint64", np.array(-1)),
    ("min", "int32", 4.5),
    ("power", "int32", 0.5),
    ("power", "int32", 2),
    ("divide", "int32", 2.5),
    ("divide", "uint8", np.array(300)),
]
NUMPY = {
    "subtract": np.subtract, "add": np.add, "multiply": np.multiply, "min": np.minimum, "max": np.maximum,
    "power": np.power, "divide": np.divide,
}  # fmt: skip
INDICES = {"position": 1, "slice": slice(0, 2), "positions": np.array([2, 0]), "mask": np.array([True, False, True])}


@pytest.mark.parametrize(("op", "dtype", "values"), CASES, ids=str)
def test_values_of_another_dtype(op, dtype, values):
    x = np.array([9, 200 if dtype == "uint8" else 100, 16], dtype)
    wide = np.float64 if op in ("divide", "power") or isinstance(values, float) else np.int64
    given = fnp.asarray(values) if isinstance(values, np.ndarray | np.generic) else values
    for i in np.array([2, 0]), np.array([True, False, True]):
        expected = x.astype(wide)
        expected[i] = NUMPY[op](expected[i], np.asarray(values).astype(wide))
        expected = expected if op == "divide" else expected.astype("int64").astype(dtype)
        result = getattr(fnp.asarray(x).at[i], op)(given)
        assert result.dtype == ("float32" if op == "divide" else dtype)
        np.testing.assert_allclose(np.asarray(result).astype(expected.dtype), expected, rtol=1e-6)


@pytest.mark.parametrize("mask", [fnp.asarray([True, False]), np.array([True, False])])
def test_under_jit(mask):
    f = ft.jit(lambda x, m: (x.at[m].multiply(0.5), x.at[m].min(300), x.at[m].subtract(fnp.asarray(250, "uint8"))))
    assert [r.tolist() for r in f(fnp.asarray([9, 200], "int16"), mask)] == [[4, 200], [9, 200], [-241, 200]]


def test_elements_that_are_not_updated_keep_all_digits():
    x = fnp.asarray([3, 2**60 + 1], "int64")
    assert x.at[0].multiply(0.5).tolist() == [1, 2**60 + 1]
    assert x.at[0].power(0.5).tolist() == [1, 2**60 + 1]
    assert x.at[x < 9].add(0.5).tolist() == [3, 2**60 + 1]


def test_a_python_float_has_all_its_digits():
    assert fnp.zeros(1, "int32").at[0].set(16777217.0).tolist() == [16777217]
    assert fnp.asarray([10**9]).at[0].multiply(0.1).tolist() == [10**8]


def test_an_index_that_occurs_twice_counts_twice_before_it_is_rounded():
    assert fnp.asarray([4]).at[fnp.asarray([0, 0])].add(1.7).tolist() == [7]


def test_under_vmap():
    x, i = fnp.asarray([[4, 4], [6, 6]]), fnp.asarray([0, 1])
    assert ft.vmap(lambda x, i: x.at[i].multiply(0.5))(x, i).tolist() == [[2, 4], [6, 3]]


@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "min", "max"])
@pytest.mark.parametrize("index", INDICES.values(), ids=INDICES)
def test_booleans_are_combined_as_numbers(op, index):
    x = np.array([True, False, True])
    for value in (-1, 3, 0, -0.5, 0.0, np.array(-3, "int8"), np.array(2, "float32")):
        expected = x.astype("float64")
        expected[index] = NUMPY[op](expected[index], np.asarray(value, "float64"))
        given = fnp.asarray(value) if isinstance(value, np.ndarray) else value
        result = getattr(fnp.asarray(x).at[index], op)(given)
        np.testing.assert_array_equal(result, expected != 0, strict=True)


def test_booleans_by_a_traced_mask():
    f = ft.jit(lambda x, m: (x.at[m].min(-1), x.at[m].add(-1), x.at[m].subtract(1)))
    x, mask = fnp.asarray([True, False, False]), fnp.asarray([True, True, False])
    assert [r.tolist() for r in f(x, mask)] == [[True, True, False], [False, True, False], [False, True, False]]


@pytest.mark.parametrize("op", ["add", "subtract", "multiply", "min", "max"])
def test_weak_integers_stay_weak(op):
    f = lambda mask: getattr((2 - mask).at[0], op)(1)
    for result in f(fnp.asarray([True, False])), ft.jit(f)(fnp.asarray([True, False])):
        assert (result + fnp.ones(2, "int8")).dtype == "int8"
