"""checkify: which errors it finds and where it reports them, under which transformations."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import checkify as ck
from functorch_like import lax
from functorch_like.backends import xla
from functorch_like.errors import ArgumentError, CheckError, DtypeError, ShapeError, UnsupportedError

EVERY_WAY = [
    pytest.param(lambda f, e=ck.user_checks: ck.checkify(f, e), id="eager"),
    pytest.param(lambda f, e=ck.user_checks: ft.jit(ck.checkify(f, e)), id="jit of checkify"),
    pytest.param(lambda f, e=ck.user_checks: ck.checkify(ft.jit(f), e), id="checkify of jit"),
]


def positive(x):
    ck.check(x > 0, "x must be positive, got {} and {n}", x, n=3)
    return fnp.log(x)


# ------------------------------------------------------------------------------------------------------------- checks
@pytest.mark.parametrize("way", EVERY_WAY)
def test_a_check_that_fails_and_one_that_holds(way):
    f = way(positive)
    err, out = f(-1.0)
    assert err.get().startswith("x must be positive, got -1.0 and 3 (")
    assert "test_checkify.py" in err.get() and err.get().endswith("in positive)") and np.isnan(out)
    with pytest.raises(CheckError, match="positive, got -1") as caught:
        err.throw()
    assert caught.value.at.endswith("in positive")
    err, out = f(1.0)
    assert err.get() is None and err.throw() is None and err.get_exception() is None and float(out) == 0.0


@pytest.mark.parametrize("way", EVERY_WAY)
def test_the_first_failure_counts(way):
    def f(x):
        ck.check(x > 0, "first")
        ft.jit(lambda x: ck.check(x > 1, "second"))(x)
        ck.check(x > 2, "third {}", x)
        return x

    told = [way(f)(x)[0].get() for x in (0.0, 1.0, 2.0, 3.0)]
    assert [t and t.split(" (")[0] for t in told] == ["first", "second", "third 2.0", None]


def test_vmap_tells_which_elements():
    x = fnp.asarray([[1.0, -1.0, 2.0], [3.0, 4.0, -5.0]])
    for f in (ft.vmap(ft.vmap(ck.checkify(positive))), ft.jit(ft.vmap(ft.vmap(ck.checkify(positive)), 1, 1))):
        err, out = f(x)
        assert out.shape == (2, 3)
        lines = err.get().split("\n")
        assert [line.split(", got")[0] for line in lines] == [
            "at mapped index 0, 1: x must be positive", "at mapped index 1, 2: x must be positive",
        ] and "got -5.0" in lines[1]  # fmt: skip
    err, _ = ck.checkify(ft.vmap(ft.vmap(positive)))(x)
    assert err.get().startswith("at mapped index 0, 1: x must be positive, got -1.0")
    err, _ = ck.checkify(ft.jit(ft.vmap(ft.vmap(positive, 0), 1)))(x)
    assert err.get().startswith("at mapped index 1, 0: x must be positive, got -1.0")  # the map over columns is outside


def test_many_failures_are_reported_in_few_lines():
    err, _ = ft.vmap(ck.checkify(positive))(-fnp.ones(1000))
    assert len(err.get().split("\n")) == 9 and err.get().endswith("and 992 more")


def test_derivatives():
    for f in (ck.checkify(ft.grad(positive)), ft.jit(ck.checkify(ft.jit(ft.grad(positive))))):
        err, out = f(-2.0)
        assert "got -2.0" in err.get() and float(out) == -0.5
    slope, err = ft.grad(lambda x: ck.checkify(positive)(x)[::-1], has_aux=True)(-2.0)
    assert "got -2.0" in err.get() and float(slope) == -0.5


def test_outside_of_transformations_a_check_raises():
    with pytest.raises(CheckError, match=r"^x must be positive, got -1.0 and 3"):
        positive(-1.0)
    with pytest.raises(CheckError, match=r"^at mapped index 1: x must be positive, got -3.0"):
        ft.vmap(positive)(fnp.asarray([1.0, -3.0]))
    ck.check(True, "fine")


def test_compiled_code_needs_checkify():
    with pytest.raises(UnsupportedError, match="checkify") as caught:
        ft.jit(positive)(1.0)
    assert caught.value.at.endswith("in positive")
    f = lambda x: (ck.check(x > 0, "debug", debug=True), x)[1]
    assert float(ft.jit(f)(-1.0)) == -1.0 and float(f(-1.0)) == -1.0
    assert "debug" in ck.checkify(f)(-1.0)[0].get()


def test_checks_that_are_not_wanted_are_left_out():
    assert ft.jit(ck.checkify(positive, ck.nan_checks))(1.0)[0].get() is None
    for f in (ck.checkify(positive, ck.index_checks), ck.checkify(ft.jit(positive), ck.index_checks)):
        assert ft.jit(f)(-1.0)[0].get() is f(-1.0)[0].get() is None
    for f, x in ((choose, 7.0), (summed, fnp.full(2, 9.0)), (halved, 5)):
        assert ft.jit(ck.checkify(f, ck.index_checks))(x)[0].get() is None


def test_errors_of_errors():
    inner = ck.checkify(positive)

    def f(x):
        err, out = inner(x)
        ck.check_error(err)
        return out

    for g in (ck.checkify(f), ft.jit(ck.checkify(ft.jit(f)))):
        assert "x must be positive, got -1.0" in g(-1.0)[0].get() and g(2.0)[0].get() is None
    with pytest.raises(CheckError, match="positive"):
        f(-1.0)


def test_an_error_is_a_pytree():
    f = ck.checkify(positive)
    err, _ = ft.jit(lambda e: e)(f(-1.0)[0]), None
    assert "got -1.0" in err[0].get() if isinstance(err, tuple) else "got -1.0" in err.get()
    with pytest.raises(ft.errors.ConcretizationError):
        ft.jit(lambda x: f(x)[0].get() or x)(1.0)


def test_arguments():
    with pytest.raises(ArgumentError, match="errors="):
        ck.checkify(positive, {"nonsense"})
    with pytest.raises(ArgumentError, match="takes a function"):
        ck.checkify(3)
    with pytest.raises(ArgumentError, match="no value"):
        ck.check(True, "{}")
    with pytest.raises(ShapeError, match="all"):
        ck.check(fnp.ones(2) > 0, "vector")
    with pytest.raises(DtypeError, match="bool"):
        ck.check(fnp.ones(()), "float")


# ---------------------------------------------------------------------------------------------------- automatic checks
def first_line(f, errors, *args):
    """Return the error's message without its location; it must be the same in every order of jit and checkify."""
    told = {str(way.values[0](f, errors)(*args)[0].get()).split(" (/")[0] for way in EVERY_WAY}
    assert len(told) == 1
    return told.pop()


def test_nan():
    x = fnp.asarray([[1.0, 2.0], [3.0, -1.0]])
    assert first_line(fnp.log, ck.nan_checks, x) == "nan generated by log, at index (1, 1) of f32[2,2]"
    assert first_line(lambda x: fnp.sqrt(x) * 2, ck.nan_checks, -1.0) == "nan generated by sqrt"
    assert first_line(lambda x: x - x, ck.float_checks, np.inf) == "nan generated by sub"
    assert first_line(fnp.log, ck.nan_checks, 0.0) == "None"
    assert first_line(lambda x: fnp.zeros(0) / x, ck.all_checks, 0.0) == "None"  # no element


def test_division():
    for x, y in ((1.0, 0.0), (1, 0), (1.0, fnp.asarray([1.0, 0.0])), (3, fnp.asarray([2, 0]))):
        op = fnp.divide if isinstance(x, float) else fnp.remainder
        assert first_line(op, ck.div_checks, x, y).startswith("division by zero")
    assert first_line(fnp.divide, ck.all_checks, 1.0, 2.0) == "None"


@pytest.mark.parametrize(
    ("f", "index", "told"),
    [
        (lambda x, i: x[i], 5, "out-of-bounds index 5 for axis 0 of size 4 of f32[4,3]"),
        (lambda x, i: x[i], -4, "None"),
        (lambda x, i: x[:, i], fnp.asarray([0, 3]), "out-of-bounds index 3 for axis 1 of size 3"),
        (lambda x, i: x.at[i].set(1.0), 4, "out-of-bounds index 4 for axis 0"),
        (lambda x, i: x.at[i, 0].add(1.0), fnp.asarray([0, 9]), "out-of-bounds index 9 for axis 0"),
        (lambda x, i: lax.dynamic_slice(x, (i, 0), (2, 2)), 3, "out-of-bounds index 3 of a window of size 2 for"),
        (lambda x, i: lax.dynamic_update_slice(x, x[:2], (i, 0)), -6, "out-of-bounds index -2 of a window of size"),
        (lambda x, i: ft.vmap(lambda i: x[i, 0])(i), fnp.asarray([0, 7, 1]), "out-of-bounds index 7 for axis 0"),
        (lambda x, i: fnp.take_along_axis(x, i, 1), fnp.asarray([[0], [1], [2], [3]]), "out-of-bounds index 3 for"),
    ],
)
def test_indices(f, index, told):
    assert first_line(f, ck.index_checks, fnp.ones((4, 3)), index).startswith(told)


# -------------------------------------------------------------------------------------------------------- control flow
def choose(x):
    def no(x):
        ck.check(x > -5, "far below: {}", x)
        return x

    def yes(x):
        ck.check(x < 5, "far above: {}", x)
        return 1 / (x - 3)

    ck.check(x != 0, "zero")
    return lax.cond(x > 0, yes, no, x)


@pytest.mark.parametrize("way", EVERY_WAY)
def test_cond(way):
    f = way(choose, ck.user_checks | ck.div_checks)
    told = [f(x)[0].get() for x in (1.0, -1.0, 7.0, -7.0, 3.0, 0.0)]
    assert [t and t.split(" (")[0] for t in told] == [
        None, None, "far above: 7.0", "far below: -7.0", "division by zero", "zero"
    ]  # fmt: skip


def summed(xs):
    def step(total, x):
        ck.check(x < 3, "{} is too much", x)
        return total + 1 / (x - 2), x * 2

    return lax.scan(step, 0.0, xs)


@pytest.mark.parametrize("way", EVERY_WAY)
def test_scan(way):
    f = way(summed, ck.user_checks | ck.div_checks)
    err, (total, doubled) = f(fnp.asarray([0.0, 1.0]))
    assert err.get() is None and float(total) == -1.5 and doubled.tolist() == [0.0, 2.0]
    assert f(fnp.asarray([0.0, 5.0, 6.0]))[0].get().startswith("in step 1 of scan: 5.0 is too much (")
    assert f(fnp.asarray([0.0, 1.0, 2.0, 7.0]))[0].get().startswith("in step 2 of scan: division by zero (")
    assert f(fnp.zeros(0))[0].get() is None


def test_scan_under_vmap_and_grad():
    xs = fnp.asarray([[0.0, 1.0], [0.0, 4.0], [3.5, 0.0]])
    lines = ft.jit(ft.vmap(ck.checkify(summed)))(xs)[0].get().split("\n")
    assert [line.split(" (")[0] for line in lines] == [
        "at mapped index 1: in step 1 of scan: 4.0 is too much",
        "at mapped index 2: in step 0 of scan: 3.5 is too much",
    ]
    err, _ = ck.checkify(ft.vmap(summed))(xs)
    assert err.get().startswith("in step 0 of scan: at mapped index 2: 3.5 is too much")
    err, slope = ck.checkify(ft.grad(lambda xs: summed(xs)[0]))(xs[1])
    assert "step 1 of scan: 4.0" in err.get()
    np.testing.assert_allclose(slope, [-0.25, -0.25])


def halved(x):
    def more(x):
        ck.check(x != 12, "condition sees {}", x)
        return x > 1

    def step(x):
        ck.check(x != 5, "body sees {}", x)
        return x // 2

    return lax.while_loop(more, step, x)


@pytest.mark.parametrize("way", EVERY_WAY)
def test_while(way):
    f = way(halved)
    told = [f(x)[0].get() for x in (8, 12, 20, 24, 1)]
    assert [t and t.split(" (")[0] for t in told] == [
        None, "condition sees 12", "in step 2 of while_loop: body sees 5", "in step 0 of while_loop: condition sees 12",
        None,
    ]  # fmt: skip
    assert int(f(20)[1]) == 1


def test_loops_in_loops():
    def f(xs):
        inner = lambda c, x: (c + lax.fori_loop(0, 3, lambda i, y: y / (x - i), 1.0), None)
        return lax.scan(inner, 0.0, xs)[0]

    err, _ = ft.jit(ck.checkify(f, ck.div_checks))(fnp.asarray([0.5, 2.0]))
    assert "in step 1 of scan" in err.get() and "in step 2 of" in err.get() and "division by zero" in err.get()


def test_functions_with_rules_keep_them():
    @ft.custom_jvp
    def f(x):
        ck.check(x > 0, "not positive: {}", x)
        return x * x

    f.defjvp(lambda primals, tangents: (f(*primals), 100.0 * tangents[0]))
    for g in (ck.checkify(f), ft.jit(ck.checkify(f)), ck.checkify(ft.jit(f))):
        assert "not positive: -1.0" in g(-1.0)[0].get() and float(g(3.0)[1]) == 9.0
        slope, err = ft.grad(lambda x: g(x)[::-1], has_aux=True)(-3.0)  # noqa: B023
        assert float(slope) == 100.0 and "-3.0" in err.get()

    @ft.custom_vjp
    def h(x):
        ck.check(x > 0, "not positive: {}", x)
        return x * x

    h.defvjp(lambda x: (h(x), None), lambda res, ct: (7.0 * ct,))
    slope, err = ft.grad(lambda x: ck.checkify(h)(x)[::-1], has_aux=True)(-3.0)
    assert float(slope) == 7.0 and "-3.0" in err.get()

    @ft.custom_batching.custom_vmap
    def k(x):
        ck.check(x > 0, "not positive: {}", x)
        return x * x

    k.def_vmap(lambda size, batched, x: (x * 100.0, True))
    assert "-1.0" in ck.checkify(k)(-1.0)[0].get()
    assert ck.checkify(ft.vmap(k))(fnp.asarray([2.0]))[1].tolist() == [200.0]
    err, out = ft.vmap(ck.checkify(k))(fnp.asarray([2.0, -3.0]))
    assert "at mapped index 1: not positive: -3.0" in err.get() and out.tolist() == [4.0, 9.0]


# ------------------------------------------------------------------------------------------------------------- caching
def test_nothing_is_traced_twice():
    f, g = ck.checkify(ft.jit(summed)), ft.jit(ck.checkify(choose, ck.all_checks))
    f(fnp.ones(3)), g(1.0)
    before = xla.counters.snapshot()
    f(fnp.ones(3)), g(2.0)
    assert not {"traces", "modules", "compiles"} & set(xla.counters.since(before))


def test_checkpoint():
    f = ft.checkpoint(positive)
    for g in (ck.checkify(f), ck.checkify(ft.grad(f)), ft.jit(ck.checkify(ft.grad(ft.jit(f))))):
        assert "got -1.0" in g(-1.0)[0].get() and g(1.0)[0].get() is None
    slope, err = ft.grad(lambda x: ck.checkify(f)(x)[::-1], has_aux=True)(-2.0)
    assert "got -2.0" in err.get() and float(slope) == -0.5


def test_check_error_raises_at_once_outside_of_transformations_and_tells_the_line_once():
    def f(x):
        ck.check(x > 0, "not positive: {}", x)  # the check
        return x

    error, _ = ck.checkify(f)(-1.0)
    with pytest.raises(CheckError) as caught:
        ck.check_error(error)
    line = f.__code__.co_firstlineno + 1
    assert str(caught.value).count("not positive: -1.0") == 1
    assert str(caught.value).count(".py:") == 1 and f".py:{line}" in str(caught.value)
    outer, _ = ck.checkify(lambda: ck.check_error(error))()
    assert "not positive: -1.0" in outer.get()


def test_elements_that_loop_or_choose_for_themselves():
    def count(x):
        def body(v):
            ck.check(v < 3.5, "{} is too much", v)
            return v + 1

        return lax.while_loop(lambda v: v < 5, body, x)

    x = fnp.asarray([5.0, 1.0, 2.0])
    choose = lambda v: lax.cond(v > 1, lambda v: (ck.check(v > 3, "{} is not enough", v), v)[1], lambda v: v, v)
    for wrap in (lambda f: f, ft.jit):
        err, out = wrap(ck.checkify(ft.vmap(count)))(x)
        assert err.get().startswith("at mapped index 1: in step 3 of while_loop: 4.0 is too much (")
        assert out.tolist() == [5, 5, 5]
        err, _ = wrap(ck.checkify(ft.vmap(choose)))(x)
        assert err.get().startswith("at mapped index 2: 2.0 is not enough (")
    assert ck.checkify(ft.vmap(count))(x[:1])[0].get() is None
