import copy
import operator
import pickle

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.errors import ConcretizationError, ImmutableError

X = fnp.asarray([[1.0, -2.0, 3.0], [4.0, 5.0, -6.0]])


def test_attributes():
    assert (X.shape, X.ndim, X.size, X.nbytes, X.itemsize) == ((2, 3), 2, 6, 24, 4)
    assert (X.dtype, X.weak_type, len(X)) == (np.float32, False, 2)
    assert X.T.shape == X.mT.shape == (3, 2)
    assert X.device.platform in ("cpu", "gpu")
    assert X.devices() == {X.device}
    assert X.__array_namespace__() is fnp
    assert isinstance(X, ft.Array)


METHODS = {
    "sum": (), "mean": (0,), "std": (1,), "var": (), "max": (0,), "min": (), "prod": (), "argmax": (1,), "argmin":
    (), "all": (), "any": (0,), "round": (), "squeeze": (), "swapaxes": (0, 1), "ravel": (), "flatten": (),
    "transpose": (1, 0), "reshape": (3, -1), "repeat": (2,), "take": (np.array([0, 2]),), "cumsum": (), "cumprod":
    (1,), "argsort": (0,), "clip": (0, 2), "conj": (), "trace": (), "astype": (np.int32,), "copy": (), "diagonal":
    (), "dot": (np.ones(3, np.float32),),
}  # fmt: skip


@pytest.mark.parametrize("name", METHODS)
def test_methods_of_arrays_and_tracers(name):
    args = METHODS[name]
    want = getattr(np.asarray(X), name)(*args)
    call = lambda x: getattr(x, name)(*args)
    for got in (call(X), ft.jit(call)(X), ft.vmap(call)(X[None])[0], ft.jvp(call, (X,), (X,))[0]):
        np.testing.assert_allclose(np.asarray(got), want, rtol=1e-6)


def test_properties_of_tracers():
    ft.jit(lambda x: [x.T, x.real, x.imag, x.at[0].set(1.0), *x, x.shape[0] + len(x) + x.ndim])(X)


def test_conversions():
    assert (float(X[0, 1]), int(fnp.asarray(2.7)), bool(fnp.asarray(0)), complex(fnp.asarray(1j))) == (
        -2.0,
        2,
        False,
        1j,
    )
    assert [10, 20, 30][fnp.asarray(1)] == 20
    assert X.tolist() == [[1, -2, 3], [4, 5, -6]]
    assert X[0, 0].item() == 1.0
    assert list(fnp.arange(2)) == [0, 1]
    assert 5.0 in X
    a, b = fnp.arange(2)
    assert (int(a), int(b)) == (0, 1)
    for bad in (
        lambda: bool(X),
        lambda: float(X),
        lambda: len(X[0, 0]),
        lambda: iter(X[0, 0]),
        lambda: operator.index(X[0, 0]),
    ):
        with pytest.raises((TypeError, ValueError)):
            bad()
    with pytest.raises(TypeError, match="unhashable"):
        hash(X)


def test_numpy_on_either_side():
    host = np.ones((2, 3), np.float32)
    for out in (host + X, X + host, np.float32(1) + X, X * np.float64(2)):
        assert isinstance(out, ft.Array)
    assert np.asarray(X).flags.writeable is False
    assert np.array(X, np.float64).dtype == np.float64
    assert np.asarray(fnp.ones(2, "bfloat16")).dtype == fnp.bfloat16


def test_other_operands_are_left_to_python():
    class Other:
        def __radd__(self, x):
            return "theirs"

    assert X + Other() == "theirs"
    assert ft.jit(lambda x: x * (1.0 if x + Other() == "theirs" else 2.0))(1.0) == 1.0
    for bad in ([1, 2], None, "a"):
        with pytest.raises(TypeError):
            _ = X + bad
    assert (X == None) is False  # noqa: E711


def test_text():
    assert repr(fnp.asarray([1.0, 2.0])) == "Array([1., 2.], dtype=float32)"
    assert repr(fnp.asarray(2.0)) == "Array(2., dtype=float32, weak_type=True)"
    assert repr(fnp.zeros((0, 3))) == "Array([], shape=(0, 3), dtype=float32)"
    assert "..., 1997" in repr(fnp.arange(2000))
    assert str(X[0]) == "[ 1. -2.  3.]"
    assert f"{X[0, 0]:.2f}" == "1.00"
    seen = []
    ft.jit(lambda x: seen.append(repr(x)))(X)
    ft.grad(lambda x: (seen.append(f"{x}"), x)[1])(2.0)
    assert seen[0].startswith("Traced<f32[2,3]> in jit(")
    assert seen[1] == "Traced<f32[]> in grad with value 2."


def test_copies():
    for same in (pickle.loads(pickle.dumps(X)), copy.copy(X), copy.deepcopy(X), copy.deepcopy([X])[0]):
        assert same.tolist() == X.tolist()
    weak = pickle.loads(pickle.dumps(fnp.asarray(2.0)))
    assert weak.weak_type
    assert np.from_dlpack(fnp.arange(3)).tolist() == [0, 1, 2]


def test_assignment_shows_the_way():
    for write, shown in [
        (lambda x: operator.setitem(x, 0, 5), "x = x.at[0].set(5)"),
        (lambda x: operator.setitem(x, (slice(1, None), 2), x), "x = x.at[1:, 2].set(value)"),
        (lambda x: operator.setitem(x, (..., None), 1.5), "x = x.at[..., None].set(1.5)"),
    ]:
        with pytest.raises(ImmutableError) as caught:
            write(X)
        assert shown in str(caught.value)
        with pytest.raises(ImmutableError):
            ft.jit(write)(X)
    x = y = fnp.zeros(2)
    x += 1
    assert y.tolist() == [0, 0]


@pytest.mark.parametrize(
    ("change", "method"),
    [
        (operator.iadd, "add"), (operator.isub, "subtract"), (operator.imul, "multiply"),
        (operator.itruediv, "divide"), (operator.ipow, "power"),
    ],
)  # fmt: skip
def test_changes_in_place_at_an_index_show_the_way(change, method):
    with pytest.raises(ImmutableError, match=rf"x = x\.at\[i\]\.{method}\(value\)"):
        change(X.at[0], 5)


@pytest.mark.parametrize(("method", "want"), [("subtract", 0 - 2), ("divide", 3 / 2), ("power", 3**2)])
def test_all_updates_take_the_same_options(method, want):
    x = fnp.asarray([0.0, 3.0]) if method != "subtract" else fnp.zeros(2)
    update = getattr(x.at[fnp.asarray([7])], method)
    assert update(2.0, mode="clip").tolist() == [0, want]
    assert update(2.0).tolist() == x.tolist()
    with pytest.raises(TypeError, match=f"{method}\\(\\) got an unexpected keyword argument 'mod'"):
        update(2.0, mod="clip")


FORBIDDEN = {
    "bool": (lambda x: 1 if x > 0 else 2, "lax.cond"),
    "int": (int, "static_argnums"),
    "float": (float, "static_argnums"),
    "range": (lambda x: list(range(x.astype(int))), "static_argnums"),
    "numpy": (np.asarray, "functorch_like.numpy"),
    "sin": (np.sin, "functorch_like.numpy"),
    "item": (lambda x: x.item(), "static_argnums"),
    "format": (lambda x: f"{x:.2f}", "print"),
    "pickle": (pickle.dumps, "return the value"),
}


@pytest.mark.parametrize("name", FORBIDDEN)
def test_traced_values_are_no_numbers(name):
    f, remedy = FORBIDDEN[name]
    with pytest.raises(ConcretizationError) as caught:
        ft.jit(f)(1.0)
    error = caught.value
    assert remedy in error.fix
    assert "jit(" in error.chain
    assert "test_array_methods.py" in error.at or name == "pickle"
    assert "f32[]" in str(error) or "bool[]" in str(error) or "i32[]" in str(error)


def test_plain_grad_knows_values():
    assert float(ft.grad(lambda x: x * 2 if x > 0 else -x)(1.0)) == 2.0
    assert float(ft.grad(lambda x: x * int(x))(3.5)) == 3.0
    for lossy in (float, np.asarray, lambda x: x.item()):
        with pytest.raises(ConcretizationError, match="would lose its derivative") as caught:
            ft.grad(lambda x, lossy=lossy: x * lossy(x))(1.0)
        assert "stop_gradient" in caught.value.fix
    assert float(ft.grad(lambda x: x * float(lax.stop_gradient(x)))(3.0)) == 3.0


def test_names_of_dtypes_are_called_and_compared():
    two = fnp.float32(2.0)
    assert two.dtype == fnp.float32 and not two.weak_type and repr(fnp.int8(1)) == "Array(1, dtype=int8)"
    assert (two * fnp.ones(2, fnp.bfloat16)).dtype == np.float32
    assert {fnp.float32: 1}[np.dtype("float32")] == 1 and fnp.float32 != fnp.float64 and fnp.int8 != "no dtype"
    assert np.zeros(2, fnp.float64).dtype == np.float64 and np.issubdtype(fnp.float32, np.floating)
    assert ft.jit(lambda x: fnp.int32(x) + fnp.int32(1))(2.5).dtype == np.int32


def test_copies_to_the_host_may_start_early():
    x = fnp.arange(3.0)
    assert x.copy_to_host_async() is None and np.asarray(x).tolist() == [0, 1, 2]


@pytest.mark.parametrize("dtype", ["complex64", "complex128"])
def test_numbers_without_a_real_part_are_true(dtype):
    z = np.array([0, 1j, 1, complex(-0.0, -0.0), complex(np.nan, 0), complex(0, np.nan), complex(0, -np.inf)], dtype)
    x = fnp.asarray(z)
    for result in (x.astype(bool), ft.jit(lambda x: x.astype(bool))(x), ft.lax.convert_element_type(x, bool)):
        np.testing.assert_array_equal(result, z.astype(bool))
