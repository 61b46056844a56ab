"""NumPy arrays as arguments: C++ reads the small ones by itself, and never in another byte order or after the call."""

# Other compile options: one test counts calls that come to Python, as those in the quick tier do.

import operator

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, nn
from functorch_like.backends.xla import counters
from functorch_like.backends.xla.host_arguments import MOST_BYTES
from functorch_like.errors import DtypeError, TreeDepthError

X = np.arange(1, 5, dtype=np.float32)
MASK = np.array([1, 0, 1, 1], np.int32)


class Subclass(np.ndarray):
    pass


def foreign(x):
    return x.astype(x.dtype.newbyteorder())


def subclass(x):
    return foreign(x).view(Subclass)


# Functions of two arrays, each of which may be NumPy's; results are compared with NumPy's.
FUNCTIONS = {
    "jit": (ft.jit(lambda x, y: x * y), np.multiply),
    "keyword": ((lambda f: lambda x, y: f(x, y=y))(ft.jit(lambda x, *, y: x * y)), np.multiply),
    "nested": ((lambda f: lambda x, y: f({"a": [x]}, (y, 2)))(ft.jit(lambda d, t: d["a"][0] * t[0])), np.multiply),
    "static": (
        (lambda f: lambda x, y: f(x, "a", y))(ft.jit(lambda x, s, y: x * y, static_argnums=1)),
        np.multiply,
    ),
    "donated": (
        (lambda f: lambda x, y: f(fnp.asarray(X), x, y))(ft.jit(lambda z, x, y: z + x * y, donate_argnums=0)),
        lambda x, y: X + x * y,
    ),
    "grad": (ft.jit(ft.grad(lambda x, y: fnp.sum(x * x * y))), lambda x, y: 2 * x * y),
    "add": (fnp.add, np.add),
    "operator": (lambda x, y: operator.mul(fnp.asarray(X), x) + y, lambda x, y: X * x + y),
    "sin": (lambda x, y: fnp.sin(x) + fnp.cos(y), lambda x, y: np.sin(x) + np.cos(y)),
    "power": (fnp.power, np.power),
    "float_power": (fnp.float_power, np.power),
    "lax": (lambda x, y: lax.mul(lax.sin(x), y), lambda x, y: np.sin(x) * y),
    "primitive": (lambda x, y: lax.concatenate([x, y], 0), lambda x, y: np.concatenate([x, y])),
    "dot": (fnp.dot, np.dot),
    "matmul": (fnp.matmul, np.matmul),
    "outer": (fnp.outer, np.outer),
    "where": (lambda x, y: fnp.where(x > 2, x, y), lambda x, y: np.where(x > 2, x, y)),
    "clip": (lambda x, y: fnp.clip(x, 2, y), lambda x, y: np.clip(x, 2, y)),
    "round": (lambda x, y: fnp.round(x * 1.26, 1) + y, lambda x, y: np.round(x * np.float32(1.26), 1) + y),
    "isclose": (fnp.isclose, np.isclose),
    "frexp": (lambda x, y: fnp.frexp(x)[0] * fnp.modf(y)[1], lambda x, y: np.frexp(x)[0] * np.modf(y)[1]),
    "sum": (lambda x, y: fnp.sum(x) + fnp.max(y), lambda x, y: np.sum(x) + np.max(y)),
    "initial": (lambda x, y: fnp.sum(x, initial=y[0]), lambda x, y: np.sum(x, initial=y[0])),
    "mean": (lambda x, y: fnp.mean(x) + fnp.std(y) + fnp.var(x), lambda x, y: np.mean(x) + np.std(y) + np.var(x)),
    "sort": (lambda x, y: fnp.sort(x)[::-1] * fnp.argsort(y), lambda x, y: np.sort(x)[::-1] * np.argsort(y)),
    "relu": (lambda x, y: nn.relu(x) + nn.leaky_relu(y, 0.1), np.add),
    "softmax": (
        lambda x, y: nn.softmax(x) + nn.gelu(y) - nn.gelu(y),
        lambda x, y: np.exp(x - x.max()) / np.exp(x - x.max()).sum(),
    ),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_another_byte_order_is_refused_or_converted_after_calls(name):
    function, reference = FUNCTIONS[name]
    for _ in range(40):  # NumPy computes the first ones of some
        np.testing.assert_allclose(function(X, X), reference(X, X), rtol=1e-5, atol=1e-6)
    for args in ((foreign(X), X), (X, foreign(X)), (fnp.asarray(X), foreign(X)), (subclass(X), X), (X, subclass(X))):
        for _ in range(2):
            try:
                result = function(*args)
            except DtypeError:
                continue
            np.testing.assert_allclose(result, reference(X, X), rtol=1e-5, atol=1e-6)
    np.testing.assert_allclose(function(X, X), reference(X, X), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("use", [fnp.sum, fnp.mean, fnp.std, fnp.var, fnp.max])
def test_masks_of_another_byte_order(use):
    kwargs = {"initial": 0} if use is fnp.max else {}
    for _ in range(3):
        use(X, where=MASK != 0, **kwargs)
    with pytest.raises(DtypeError):
        use(foreign(X), where=MASK != 0, **kwargs)
    for mask in (MASK, foreign(MASK)):
        try:
            result = use(X, where=mask, **kwargs)
        except DtypeError:
            continue
        np.testing.assert_allclose(result, use(X, where=MASK != 0, **kwargs), rtol=1e-6)


def test_conditions_of_another_byte_order():
    for _ in range(3):
        np.testing.assert_array_equal(fnp.where(MASK, X, 0.0), np.where(MASK, X, 0))
    with pytest.raises(DtypeError):
        fnp.where(foreign(MASK), X, 0.0)


@pytest.mark.parametrize("size", [4, MOST_BYTES // 4, MOST_BYTES // 4 + 1, 1 << 18])
@pytest.mark.parametrize("offset", [0, 1])
def test_writing_to_an_array_after_the_call_changes_nothing(size, offset):
    memory = np.empty(size + 32, np.float32)
    x = memory[(-memory.ctypes.data % 64) // 4 + offset :][:size]
    functions = [
        ft.jit(lambda x: x * 2),
        ft.jit(lambda x: (x, x[::-1])),
        ft.jit(lambda x: x),
        ft.jit(lambda x, y: (x, y), keep_unused=True),
        ft.jit(lambda x, y: x + y, donate_argnums=1),
        fnp.negative,
    ]
    for k, function in enumerate(functions):
        factor = {0: 2, 4: 2, 5: -1}.get(k, 1)
        for step in range(5):
            x[:] = step + 1
            out = function(*([x, x] if k in (3, 4) else [x]))
            assert (x == step + 1).all()  # no result takes its memory
            x[:] = -7
            for result in out if isinstance(out, tuple) else (out,):
                assert (np.asarray(result) == factor * (step + 1)).all()


@pytest.mark.parametrize("name", ["jit", "add"])
def test_small_arrays_do_not_come_to_python(name):
    function, _ = FUNCTIONS[name]
    # An eager function in the quick tier is called through Python.
    with ft.backends.compilation.flags(tiers="off"):
        function(X, X), function(X, X)
        before = counters.host_to_device, counters.misses
        function(X, X)
        assert (counters.host_to_device, counters.misses) == before
    large = np.ones(MOST_BYTES, np.float32)
    function(large, large), function(large, large)
    before = counters.host_to_device
    function(large, large)
    assert counters.host_to_device == before + 2


def test_trees_that_contain_themselves_are_refused_after_calls():
    """The check of byte orders flattens them before C++ does, and leaves as many levels of recursion."""
    first = ft.jit(lambda tree: tree[0] * 2)
    for _ in range(2):
        first([X])
    for _ in range(3):
        tree = [X]
        tree.append(tree)
        with pytest.raises(TreeDepthError, match="contains itself"):
            first(tree)
    np.testing.assert_array_equal(first([X]), X * 2)
