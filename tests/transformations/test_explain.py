"""ft.explain: the traces, compilations and loads of a call, with their reasons."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends

X = np.ones((2, 3), np.float32)


def why(f, *args, **kwargs):
    """Return the reason for the one trace of a call, or an empty string if nothing was traced."""
    reasons = [e.about["why"] for e in ft.explain(f)(*args, **kwargs).events if e.kind == "trace"]
    assert len(reasons) <= 1
    return reasons[0] if reasons else ""


def test_a_first_call_and_a_second():
    f = ft.jit(lambda x: fnp.sin(x) * 2)
    first = ft.explain(f)(X)
    np.testing.assert_allclose(first.result, np.sin(X) * 2, rtol=1e-6)
    assert first.count("trace") == 1 and first.count("compile") + first.count("load") == 1
    assert "traced <lambda> in" in str(first) and ": first call; 3 equations" in str(first)
    second = ft.explain(f)(X)
    assert {e.kind for e in second.events} <= {"tier"} and "ran what was compiled before" in str(second)


@pytest.mark.parametrize(
    ("args", "reason"),
    [
        ((X[0],), "args[0]: shape (2, 3) before, (3,) now"),
        ((X.astype(np.float64),), "args[0]: dtype float32 before, float64 now"),
        ((X.astype(int),), "args[0]: dtype float32 before, int64 now"),
        (((X, X),), "the structure of the arguments: PyTreeDef(((*,), {})) before, PyTreeDef((((*, *),), {})) now"),
    ],
)
def test_what_changed(args, reason):
    f = ft.jit(lambda x: ft.tree.map(fnp.sin, x))
    f(X)
    assert why(f, *args) == reason
    assert why(f, *args) == ""


def test_weak_types_statics_and_names_of_arguments():
    f = ft.jit(lambda x, rate, n: x * rate * n, static_argnames="n")
    f(X, rate=np.float32(1)[None][0:1].reshape(()), n=1)
    f(X, rate=fnp.float32(1), n=1)
    assert why(f, X, rate=1.0, n=1) in (
        "",
        "kwargs['rate']: type an array's before, weakly typed (a Python number) now",
    )
    assert why(f, X, rate=1.0, n=2) == "static argument 'n': 1 before, 2 now"
    assert why(f, X, rate=1.0, n=2.0) == "static argument 'n': 1 before, 2.0 now"


def test_the_nearest_earlier_signature_is_compared():
    f = ft.jit(lambda x, y: x.sum() + y.sum())
    f(X, X)
    f(X[0], X.astype(np.float64))
    assert why(f, X[0], X) == "args[0]: shape (2, 3) before, (3,) now"
    # Each difference of an argument counts: X[0] differs from X in shape alone, from the first call in dtype, too.
    g = ft.jit(lambda x: fnp.sin(x))  # another test may have traced fnp.sin itself
    g(X.astype(np.float64))
    g(X)
    assert why(g, X[0]) == "args[0]: shape (2, 3) before, (3,) now"


def test_settings():
    f = ft.jit(lambda x: x @ x.T)
    f(X)
    with backends.flags({"cpu.fast_lowerings": False}):
        assert why(f, X) == "setting cpu.fast_lowerings: True before, False now"
    ft.set_default_dtype("float64")
    try:
        assert why(f, X) == "setting default_float: 'float32' before, 'float64' now"
    finally:
        ft.set_default_dtype("float32")
    assert why(f, X) == ""


def test_a_function_made_anew_for_each_call():
    def made():
        return ft.jit(lambda x: x - 1)

    assert why(made(), X) == "first call"
    assert "another function object" in why(made(), X)


def test_named_axes():
    f = ft.jit(lambda x: x + 1)
    f(X[0])
    assert why(ft.vmap(f, axis_name="rows"), X) == "named axes in scope: {} before, {'rows': 2} now"


def test_another_program_for_the_same_trace():
    f = ft.jit(lambda x: x + 1)
    f(2.0)
    happened = ft.explain(f)(np.float32(2))
    assert happened.count("trace") == 0
    assert [e.about["why"] for e in happened.events if e.kind == "program"] == ["args[0]: float before, float32 now"]


def test_derived_functions_are_reported():
    f = ft.jit(lambda x: fnp.tanh(x))  # another test may have derived the jvp of fnp.tanh itself
    assert "derived <lambda>_jvp: jvp of <lambda>" in str(ft.explain(ft.grad(f))(1.0))
    assert ft.explain(ft.grad(f))(1.0).count("derive") == 0


def test_it_takes_functions():
    with pytest.raises(ft.errors.ArgumentError, match=r"explain\(f\)\(x\)"):
        ft.explain(3.0)


def test_long_times_are_in_seconds():
    from functorch_like.debug.explain import Explanation

    assert str(Explanation("f", None, [], 42.24)).startswith("f: 42.2 s in all")
    assert str(Explanation("f", None, [], 0.04224)).startswith("f: 42.2 ms in all")
