"""`jit(f, buckets=...)` and `vmap(f, buckets=...)`: one program for many numbers of rows, results, errors."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.backends.xla import counters
from functorch_like.errors import ArgumentError, ShapeError, UnsupportedError

RNG = np.random.default_rng(0)


def rows(n, *rest):
    return RNG.normal(size=(n, *rest)).astype("float32")


def compiled_by(function, *calls):
    """The number of programs that the calls compile, or load from disk."""
    before = counters.snapshot()
    for args in calls:
        function(*args)
    grown = counters.since(before)
    return grown.get("compiles", 0) + grown.get("cache_hits", 0)


def agree(got, want):
    np.testing.assert_allclose(np.asarray(got), want, rtol=2e-5, atol=2e-5)


# ----------------------------------------------------------------------------------------------------------- compiling
def test_one_program_serves_all_numbers_of_rows_in_a_bucket():
    f = ft.jit(lambda x: (fnp.mean(x, axis=0), x - fnp.max(x, axis=0)), buckets={"x": 0})
    assert compiled_by(f, *[(rows(n, 3),) for n in (5, 6, 7, 8)]) == 1
    assert compiled_by(f, *[(rows(n, 3),) for n in (9, 16)]) == 1


def test_sizes_of_buckets_can_be_given():
    f = ft.jit(lambda x: fnp.sum(x), buckets={"x": 0}, bucket_sizes=(32, 6))
    assert compiled_by(f, (rows(2),), (rows(6),)) == 1
    assert compiled_by(f, (rows(7),), (rows(30),)) == 1
    with pytest.raises(ArgumentError, match="33 rows, and its largest bucket has 32"):
        f(rows(33))


def test_the_derivative_is_compiled_once_for_a_bucket():
    f = ft.jit(lambda w, x: fnp.mean(fnp.log(x @ w)), buckets={"x": 0})
    w = np.ones(3, "float32")
    ft.grad(f)(w, abs(rows(8, 3)) + 1)
    assert compiled_by(ft.grad(f), *[(w, abs(rows(n, 3)) + 1) for n in (5, 6, 7)]) == 0


# -------------------------------------------------------------------------------------------------------------- values
@pytest.mark.parametrize("n", [8, 5, 1, 0])
def test_reductions_count_the_rows_that_there_are(n):
    x, w = rows(n, 3), rows(n)
    f = ft.jit(lambda x, w: (x.sum(0), w @ x, x * w[:, None], (x > 0).any(0)), buckets={"x": 0, "w": 0})
    for got, want in zip(f(x, w), (x.sum(0), w @ x, x * w[:, None], (x > 0).any(0)), strict=True):
        agree(got, want)


def test_statistics_and_positions():
    def f(m, x):
        return {
            "mean": m.mean(x, axis=0), "var": m.var(x), "argmax": m.argmax(x, axis=0), "sorted": m.sort(x, axis=0),
            "median": m.median(x, axis=0), "last": x[-1], "tail": x[1:], "turned": x[::-1],
            "sums": m.cumsum(x, axis=0), "gram": x @ x.T, "joined": m.concatenate([x, x[:1], x], axis=0),
            "numbered": m.arange(x.shape[0]) + 0 * x[:, 0], "flat": x.reshape(-1),
        }  # fmt: skip

    bucketed = ft.jit(lambda x: f(fnp, x), buckets={"x": 0})
    for n in (5, 7):
        x = rows(n, 3)
        got, want = bucketed(x), f(np, x)
        for name in want:
            assert got[name].shape == want[name].shape
            agree(got[name], want[name])


def test_axes_need_not_be_the_first():
    f = ft.jit(lambda batch, y: fnp.sum(batch["a"], axis=1) + y, buckets={"batch": -1})
    a, y = rows(3, 5), rows(3)
    agree(f({"a": a}, y), a.sum(1) + y)


def test_a_loop_over_rows_stops_at_the_last_one():
    f = ft.jit(lambda x: lax.scan(lambda c, r: (0.5 * c + r, c), 0.0, x), buckets={"x": 0})
    for n in (8, 5):
        x = rows(n)
        c, seen = np.float32(0), []
        for r in x:
            seen.append(c)
            c = np.float32(0.5) * c + r
        last, each = f(x)
        agree(last, c)
        agree(each, seen)


def test_rows_that_choose_rows():
    x, i = rows(5, 3), np.array([4, -1, 0, 9, 2], "int32")
    f = ft.jit(lambda x, i: (x[i], x.at[i].set(0.0), fnp.zeros((3, 3)).at[i % 3].add(x)), buckets={"x": 0, "i": 0})
    taken, put, added = f(x, i)
    agree(taken, x[[4, 4, 0, 4, 2]])
    want = x.copy()
    want[[4, 0, 2]] = 0
    agree(put, want)
    want = np.zeros((3, 3), "float32")
    np.add.at(want, i % 3, x)
    agree(added, want)


def test_derivatives_do_not_see_the_padding():
    """The derivative of the square root is infinite at the zeros that a mask would leave."""
    f = ft.jit(lambda w, x: fnp.sum(fnp.sqrt(x @ w)), buckets={"x": 0})
    w, x = np.array([1.0, 2.0], "float32"), abs(rows(5, 2)) + 0.1
    agree(ft.grad(f)(w, x), (0.5 / np.sqrt(x @ w)) @ x)
    agree(ft.grad(f, argnums=1)(w, x), 0.5 / np.sqrt(x @ w)[:, None] * w)
    second = ft.jacrev(ft.jacrev(f))(w, x)
    agree(second, -np.einsum("n,ni,nj->ij", 0.25 * (x @ w) ** -1.5, x, x))
    by_jit = ft.jit(ft.grad(f.__wrapped__), buckets={"x": 0})
    agree(by_jit(w, x), (0.5 / np.sqrt(x @ w)) @ x)


def test_inside_of_other_transformations_sizes_are_known():
    f = ft.jit(lambda x: x - fnp.mean(x), buckets={"x": 0})
    x = rows(2, 5)
    agree(ft.vmap(f)(x), x - x.mean(1, keepdims=True))
    agree(ft.jit(f)(x), x - x.mean())
    with ft.disable_jit():
        agree(f(x), x - x.mean())


def test_a_size_that_takes_another_branch_of_python_runs_alone():
    f = ft.jit(lambda x: x * 2 if x.shape[0] < 6 else x * 3, buckets={"x": 0})
    for n in (8, 7, 5):
        x = rows(n)
        agree(f(x), x * 2 if n < 6 else x * 3)


def test_static_arguments_and_closures():
    w = fnp.asarray(rows(3))
    f = ft.jit(lambda x, k: x @ w * k, static_argnames="k", buckets={"x": 0})
    x = rows(5, 3)
    agree(f(x, k=2), x @ np.asarray(w) * 2)
    agree(f(x, k=3), x @ np.asarray(w) * 3)


# ------------------------------------------------------------------------------------------------------------ refusals
@pytest.mark.parametrize(
    ("fun", "told"),
    [
        (lambda x: fnp.fft.fft(x, axis=0), "fft works on all"),
        (lambda x: fnp.linalg.inv(x @ x.T), "solve works on all"),
        (lambda x: sum(x[i] for i in range(x.shape[0])), "operations"),
        (lambda x: fnp.reshape(x.T, -1), "axis before"),
        (lambda x: (ft.debug.print("{}", x), x)[1], "run on the padding"),
    ],
)
def test_what_cannot_be_masked_is_named_with_its_line(fun, told):
    with pytest.raises(UnsupportedError, match=told) as caught:
        ft.jit(fun, buckets={"x": 0})(rows(5, 3))
    assert "test_buckets.py" in str(caught.value)


def test_wrong_options():
    f = lambda x, y: x
    with pytest.raises(ArgumentError, match="'z', which <lambda> does not have"):
        ft.jit(f, buckets={"z": 0})
    with pytest.raises(ArgumentError, match="not a dict"):
        ft.jit(f, buckets=(0,))
    with pytest.raises(ArgumentError, match="not sizes"):
        ft.jit(f, buckets={"x": 0}, bucket_sizes=(0, 4))
    with pytest.raises(ArgumentError, match="without buckets"):
        ft.jit(f, bucket_sizes=(4,))
    with pytest.raises(ArgumentError, match="paths"):
        ft.jit(f, buckets={"x": 0}, control_flow="paths")
    with pytest.raises(ArgumentError, match="donate_argnums"):
        ft.jit(f, buckets={"x": 0}, donate_argnums=0)
    with pytest.raises(ShapeError, match="different numbers of rows"):
        ft.jit(f, buckets={"x": 0, "y": 0})(rows(3), rows(4))
    with pytest.raises(ShapeError, match="axis 1"):
        ft.jit(f, buckets={"x": 1})(rows(3), rows(4))
    with pytest.raises(UnsupportedError, match=r"no \.lower"):
        ft.jit(f, buckets={"x": 0}).lower(rows(3), rows(4))


# ---------------------------------------------------------------------------------------------------------------- vmap
def test_vmap_pads_and_cuts():
    w = rows(4, 3)
    f = ft.vmap(ft.jit(lambda w, x: (w @ x, fnp.sum(x))), in_axes=(None, 0), out_axes=(1, 0), buckets=(4, 8))
    assert compiled_by(f, *[(w, rows(n, 3)) for n in (5, 6, 8)]) == 1
    for n in (3, 7, 0):
        x = rows(n, 3)
        products, sums = f(w, x)
        agree(products, w @ x.T)
        agree(sums, x.sum(1))
    agree(ft.grad(lambda w: fnp.sum(f(w, x := fnp.ones((3, 3)))[0] * 2 + 0 * x[0, 0]))(w), np.full((4, 3), 6.0))


def test_vmap_with_buckets_refuses_names_of_the_axis():
    with pytest.raises(ArgumentError, match="collective"):
        ft.vmap(lambda x: lax.psum(x, "i"), axis_name="i", buckets=True)
    with pytest.raises(ArgumentError, match="axis_size"):
        ft.vmap(lambda x: x, axis_size=3, buckets=True)
