"""Laws of effects, over random programs with nested transformations: checks and callbacks change no result."""

from hypothesis import given, settings
from support.laws import point, same

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import checkify as ck
from functorch_like.testing.drawn_programs import programs


def shaped(x):
    return ft.ShapeDtypeStruct(x.shape, x.dtype)


def observed(f, seen):
    """Return the function with a callback on its input and one on its output."""

    def watched(x, w):
        ft.debug.callback(lambda v: seen.append("in"), x, ordered=True)
        y = f(x, w)
        ft.debug.callback(lambda v: seen.append("out"), y, ordered=True)
        return y

    return watched


@settings(max_examples=6)
@given(programs(1))
def test_checkify_changes_no_result(f):
    x, w = point(f)
    want = f(x, w)
    for g in (ck.checkify(f, ck.all_checks), ft.jit(ck.checkify(ft.jit(f), ck.index_checks | ck.user_checks))):
        err, out = g(x, w)
        same(out, want)
        assert err.get() is None


@settings(max_examples=5)
@given(programs(1))
def test_derivatives_of_checkified_functions(f):
    x, w = point(f)
    plain = lambda x, w: fnp.sum(f(x, w))
    outside = ft.grad(lambda x, w: ck.checkify(plain, ck.div_checks | ck.user_checks)(x, w)[1])
    inside = ck.checkify(ft.grad(plain), ck.nan_checks)
    want = ft.grad(plain)(x, w)
    same(outside(x, w), want)
    same(inside(x, w)[1], want)


@settings(max_examples=6)
@given(programs(2))
def test_watching_changes_no_result(f):
    x, w = point(f)
    seen = []
    watched = observed(f, seen)
    want = f(x, w)
    for g in (watched, ft.jit(watched)):
        same(g(x, w), want)
        assert seen == ["in", "out"]
        seen.clear()
    slope = lambda f: ft.grad(lambda x, w: fnp.sum(f(x, w)))
    same(ft.jit(slope(watched))(x, w), slope(f)(x, w))
    assert seen == ["in", "out"]


@settings(max_examples=5)
@given(programs(1))
def test_a_callback_that_computes_the_function_is_the_function(f):
    x, w = point(f)
    want = f(x, w)
    called = lambda x, w: ft.pure_callback(lambda a, b: f(fnp.asarray(a), fnp.asarray(b)), shaped(want), x, w)
    same(ft.jit(called)(x, w), want)
    with ft.debug.nans():
        same(ft.jit(f)(x, w), want)
