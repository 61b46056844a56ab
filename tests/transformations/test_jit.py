"""jit: static and donated arguments, closures, stages, results that do not depend on the caller's memory."""

import functools
import warnings

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp

X = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)


def test_as_a_decorator_with_and_without_options():
    @ft.jit
    def plain(x):
        return x + 1.0

    @ft.jit(static_argnames=("power",))
    def powered(x, *, power):
        """Docs."""
        return x**power

    np.testing.assert_array_equal(plain(X), X + 1)
    np.testing.assert_allclose(powered(X, power=2), X**2, rtol=1e-6)
    assert (powered.__name__, powered.__doc__) == ("powered", "Docs.")


@pytest.mark.parametrize("option", [{"static_argnums": 1}, {"static_argnames": "n"}, {"static_argnums": -1}])
def test_static_however_it_is_passed(option):
    def fun(x, n):
        return x * len(range(n))

    f = ft.jit(fun, **option)
    np.testing.assert_array_equal(f(X, 3), X * 3)
    np.testing.assert_array_equal(f(X, n=2), X * 2)
    np.testing.assert_array_equal(f(n=4, x=X), X * 4)


def test_static_defaults_need_not_be_passed():
    f = ft.jit(lambda x, how="double": x * 2 if how == "double" else x * 3, static_argnames="how")
    np.testing.assert_array_equal(f(X), X * 2)
    np.testing.assert_array_equal(f(X, "triple"), X * 3)
    np.testing.assert_array_equal(f(X, how="triple"), X * 3)


def test_pytrees_go_in_and_come_out():
    f = ft.jit(lambda p, *rest, scale: {"w": p["w"] * scale, "n": None, "rest": rest[::-1], "k": (1, 2.5)})
    out = f({"w": X}, X + 1, (X + 2,), scale=2.0)
    np.testing.assert_array_equal(out["w"], X * 2)
    np.testing.assert_array_equal(out["rest"][0][0], X + 2)
    np.testing.assert_array_equal(out["rest"][1], X + 1)
    assert out["n"] is None
    assert (int(out["k"][0]), float(out["k"][1])) == (1, 2.5)


def test_no_arguments_and_no_results():
    assert ft.jit(lambda: None)() is None
    assert ft.jit(lambda x: ())(X) == ()
    assert float(ft.jit(lambda: 3.0)()) == 3.0
    np.testing.assert_array_equal(ft.jit(lambda: fnp.arange(3))(), [0, 1, 2])


def test_an_argument_returned_as_it_is():
    a, b = ft.jit(lambda x, y: (y, x))(X, X + 1)
    np.testing.assert_array_equal(a, X + 1)
    np.testing.assert_array_equal(b, X)


def test_methods_and_partials_and_callables():
    class Scale:
        def __init__(self, by):
            self.by = by

        @ft.jit
        def bound(self_x, y):  # noqa: N805, RUF100  (static by closure is tested elsewhere)
            return self_x + y

        def __call__(self, x):
            return x * self.by

    np.testing.assert_array_equal(ft.jit(Scale(3.0))(X), X * 3)
    np.testing.assert_array_equal(ft.jit(Scale(4.0))(X), X * 4)
    np.testing.assert_array_equal(ft.jit(Scale(2.0).__call__)(X), X * 2)
    np.testing.assert_array_equal(ft.jit(functools.partial(fnp.add, X))(X), X + X)


def test_donated_memory_is_gone():
    for option in ({"donate_argnums": 0}, {"donate_argnames": "x"}, {"donate_argnums": (-2,)}):
        x = fnp.asarray(np.ones((64, 64), np.float32))
        y = fnp.asarray(np.ones((64, 64), np.float32))
        out = ft.jit(lambda x, y: x + y, **option)(x, y)
        assert x.is_deleted()
        assert not y.is_deleted()
        assert float(out.sum()) == 2 * 64 * 64


def test_a_donated_tree_is_donated_whole():
    tree = {"a": fnp.ones((32,)), "b": [fnp.ones((16,))]}
    ft.jit(lambda t: {"a": t["a"] * 2, "b": [t["b"][0] * 3]}, donate_argnums=0)(tree)
    assert tree["a"].is_deleted() and tree["b"][0].is_deleted()


def test_donated_numpy_memory_is_left_alone():
    x = np.ones((256,), np.float32)
    f = ft.jit(lambda x: x + 1.0, donate_argnums=0)
    for _ in range(3):
        assert float(f(x).sum()) == 512
    np.testing.assert_array_equal(x, np.ones(256))


def test_unused_arguments_are_dropped_unless_kept():
    for keep, count in ((False, 1), (True, 2)):
        f = ft.jit(lambda x, unused: x * 2, keep_unused=keep)
        text = f.lower(X, X).as_text()
        assert text.count("%arg") // max(text.count("%arg0"), 1) >= 1
        assert ("%arg1" in text) is (count == 2)
        np.testing.assert_array_equal(f(X, X), X * 2)
        np.testing.assert_array_equal(f(X, 1.0), X * 2)


def test_inline_leaves_no_call():
    inner = lambda x: fnp.sin(x) * 2
    for inline in (False, True):
        f = ft.jit(inner, inline=inline)
        outer = lambda x, f=f: f(x) + 1
        text = str(ft.make_jaxpr(lambda x, outer=outer: outer(x))(1.0))
        assert ("call(" in text) is not inline
        assert "sin(" in text
        np.testing.assert_allclose(ft.jit(lambda x, outer=outer: outer(x))(X), np.sin(X) * 2 + 1, rtol=1e-6)


def test_closures_over_arrays_are_constants():
    table = fnp.asarray(np.arange(100, dtype=np.float32))
    host = np.arange(100, dtype=np.float32)
    f = ft.jit(lambda i: table[i] + host[3])
    assert float(f(7)) == 10
    assert float(f(8)) == 11


def test_closures_over_traced_values():
    def outer(x):
        inner = ft.jit(lambda y: y * x)
        return inner(2.0) + inner(3.0)

    assert float(ft.grad(outer)(1.5)) == 5
    assert float(ft.jit(outer)(1.5)) == 7.5
    np.testing.assert_allclose(ft.vmap(outer)(X[0]), X[0] * 5, rtol=1e-6)
    np.testing.assert_allclose(ft.vmap(ft.grad(outer))(X[0]), np.full(3, 5.0))
    assert float(ft.jit(ft.grad(outer))(1.5)) == 5


def test_a_function_that_closes_over_different_traced_values_is_not_mixed_up():
    """The same function object is called under one trace after another; no value of the first trace may be kept."""
    box = []

    def reads(y):
        return y * box[-1]

    f = ft.jit(reads)

    def outer(x):
        box.append(x)
        try:
            return f(2.0)
        finally:
            box.pop()

    for value in (1.0, 2.0):
        assert float(ft.grad(outer)(value)) == 2
        assert float(ft.jit(outer)(value)) == 2 * value
        np.testing.assert_array_equal(ft.vmap(outer)(fnp.asarray([value, 5.0])), [2 * value, 10])


def test_numpy_memory_changed_right_after_the_call_changes_nothing():
    for size in (8, 1000, 200_000):
        for offset in range(4):
            backing = np.ones(size + 16, np.float32)
            x = backing[offset : offset + size]
            f = ft.jit(lambda x: fnp.sum(x * 2.0) + x)
            kept = [f(x), fnp.asarray(x), ft.device_put(x), fnp.add(x, x), ft.jit(lambda x=x: x * 1.0)()]
            x[:] = -7
            for out, want in zip(kept, (2 * size + 1, 1, 1, 2, 1), strict=True):
                np.testing.assert_array_equal(np.asarray(out), np.full(size, want, np.float32))


def test_numbers_of_64_bits_need_no_flag():
    f = ft.jit(lambda x: x * 2)
    assert f(np.float64([1e-300])).dtype == np.float64
    assert float(f(np.float64([1e-300]))[0]) == 2e-300
    assert int(f(np.int64([2**40]))[0]) == 2**41
    assert f(np.uint64([2**63 - 1])).dtype == np.uint64
    assert f(np.complex128([1j])).dtype == np.complex128
    assert int(f(2**40)) == 2**41


def test_a_number_beside_arrays_of_64_bits_is_as_wide_under_other_transformations():
    f = ft.jit(lambda x, y: x * y)
    x = np.asarray([1.0, 2.0])
    assert ft.vmap(lambda v: f(v, 0.1))(x).tolist() == [0.1, 0.2]
    assert ft.jit(lambda v: f(v, 0.1))(x).tolist() == [0.1, 0.2]
    assert ft.grad(lambda v: f(v, 0.1).sum())(x).tolist() == [0.1, 0.1]


@pytest.mark.parametrize("transform", [lambda f: f, ft.jit, ft.vmap], ids=["eager", "jit", "vmap"])
def test_rank_0_numpy_values_are_weak(transform):
    x = fnp.asarray(X)
    for other in (np.sqrt(2), np.float64(2), np.array(2.0), 2.0, np.int64(3), 3, np.float32(2)):
        assert transform(lambda x, other=other: x / other)(x).dtype == np.float32, repr(other)
        assert transform(lambda x, other=other: other * x)(x).dtype == np.float32, repr(other)


def test_weak_results_stay_weak_through_jit():
    two = ft.jit(lambda: 2.0 * 3.0)()
    x = fnp.asarray(np.ones(2, np.float16))
    assert (ft.jit(lambda a, b: a * b)(x, 2.0)).dtype == np.float16
    assert (x * ft.jit(lambda b: b * b)(2.0)).dtype == (x * (fnp.multiply(2.0, 2.0))).dtype
    assert float(two) == 6


def test_disable_jit_runs_python():
    seen = []

    @ft.jit
    def f(x):
        seen.append(x)
        return x * 2 if x > 0 else -x

    with ft.disable_jit():
        assert float(f(fnp.asarray(3.0))) == 6
        assert float(f(fnp.asarray(-3.0))) == 3
        assert float(ft.grad(f)(-3.0)) == -1
    assert len(seen) == 3
    with pytest.raises(TypeError):
        f(3.0)


@pytest.mark.parametrize("wide", [2**31, -(2**31) - 1, np.int64(2**40), np.uint64(2**40)])
def test_an_int_argument_beyond_32_bits_is_not_narrowed(wide):
    f = ft.jit(lambda n: fnp.arange(3) + n)
    assert f(np.int64(1)).dtype == f(1).dtype == np.int32
    np.testing.assert_allclose(
        f(wide).astype("float64"), np.arange(3) + float(wide), rtol=1e-7
    )  # uint64 and int32 promote to float32
    assert f(np.int64(1)).dtype == np.int32


@pytest.mark.parametrize("transform", [ft.jit, ft.make_jaxpr, lambda f: lambda x: ft.eval_shape(f, x)])
def test_a_result_that_is_no_array(transform):
    with pytest.raises(ft.errors.DtypeError, match=r"returned 'text'.*at \['b'\]\[0\]") as caught:
        transform(lambda x: {"a": x, "b": ["text"]})(1.0)
    assert "return arrays" in caught.value.fix
    assert "<lambda>" in caught.value.chain


def test_a_compiled_stage_releases_what_it_was_given():
    x = fnp.ones(8)
    compiled = ft.jit(lambda x: x + 1, donate_argnums=0).lower(x).compile()
    np.testing.assert_array_equal(compiled(x), np.full(8, 2.0))
    for use in (lambda: x + 1, lambda: ft.jit(lambda x: x)(x), lambda: np.asarray(x), lambda: compiled(x)):
        with pytest.raises(ft.errors.DonatedError):
            use()


@ft.tree_util.register_pytree_node_class
class Wide:
    """A node that makes arrays of what it is given."""

    def __init__(self, x):
        self.x = fnp.asarray(x)

    def tree_flatten(self):
        return [self.x], None

    @classmethod
    def tree_unflatten(cls, _, children):
        return cls(*children)


def test_donated_arguments_may_be_nodes_that_take_arrays_alone():
    f = ft.jit(lambda state, x, *, y: (Wide(state.x + x), y), donate_argnums=0, donate_argnames="y")
    given = Wide([1.0, 2.0]), fnp.asarray([3.0, 4.0]), {"a": fnp.asarray(5.0)}
    state, y = f(*given[:2], y=given[2])
    assert state.x.tolist() == [4.0, 6.0] and y["a"].tolist() == 5.0
    assert given[0].x.is_deleted() and given[2]["a"].is_deleted() and not given[1].is_deleted()
    traced = f.trace(Wide([1.0, 2.0]), fnp.ones(2), y={"a": fnp.ones(())})
    assert traced.donated == (True, False, True)


@pytest.mark.parametrize(
    ("fun", "shapes", "unused"),
    [
        (lambda x: x.sum(), [(3, 4)], "f32[3,4]"),
        (lambda x, y: x.sum() + y.sum(), [(3, 4), (2,)], "f32[3,4], f32[2]"),
        (lambda x, y: x + y, [(3, 4), (3, 4)], "f32[3,4]"),
        (lambda x: x + 1, [(3, 4)], ""),
        (lambda x: x.T, [(3, 4)], ""),
        (lambda x: (x.sum(), 2 * x), [(3, 4)], ""),
        (lambda x, y: y + 1, [(3, 4), (2,)], ""),  # not read, so not passed to the program
        # A result may have other elements, but as many bytes.
        (lambda x: fnp.full(10, x.sum(), "float16"), [(5,)], ""),
        (lambda x: fnp.full(5, x.sum(), "int8"), [(5,)], "f32[5]"),
        (lambda x: fnp.full(41, x.sum(), "int4"), [(5,)], "f32[5]"),
        (lambda x: fnp.full(40, x.sum(), "int4"), [(5,)], ""),
    ],
)
def test_donated_arguments_that_no_result_can_replace_are_warned_about(fun, shapes, unused):
    jitted = ft.jit(fun, donate_argnums=range(len(shapes)))
    with warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        for _ in range(2):  # once for each program, at the user's line
            given = [fnp.ones(shape) for shape in shapes]
            jitted(*given)
    assert [w.filename for w in seen] == [__file__] * bool(unused)
    assert all(f"not usable: {unused}. " in str(w.message) for w in seen)
    if len(given) == 1:  # XLA has taken its memory
        assert given[0].is_deleted() is not bool(unused)
