"""Errors of loops for bodies, conditions and slices that do not fit; eager and jitted loops give the same text."""

import numpy as np
import pytest
from support.messages import line_of, refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax

X = np.zeros((4, 3), np.float32)
TREE = {"a": np.zeros(3, np.float32), "b": fnp.zeros((), "int32")}


def both(fun, *args, kinds=(errors.FtError,)):
    """Return the errors of a function called eagerly and under jit; assert that their heads are equal."""
    eager = refusal(lambda: fun(*args), *kinds)
    staged = refusal(lambda: ft.jit(fun)(*args), *kinds)
    assert eager.head == staged.head
    assert eager.remedy == staged.remedy
    assert "jit" not in eager.under
    assert f"jit({fun.__name__})" in staged.under
    return eager, staged


def shrinking(tree):
    step = lambda c, x: ({"a": c["a"][:2], "b": c["b"]}, x)
    return lax.scan(step, tree, X)  # the scan


def converting(tree):
    return lax.scan(lambda c, x: ({"a": c["a"], "b": c["b"] + 1.5}, x), tree, X)


def renaming(tree):
    return lax.scan(lambda c, x: ({"a": c["a"], "c": c["b"]}, x), tree, X)


def test_a_carry_of_another_shape():
    for message in both(shrinking, TREE, kinds=(errors.ShapeError,)):
        says(message.head, "lax.scan", "<lambda> at test_loops.py:", "another type of carry", "taken", "returned")
        rows = [line.split() for line in message.head.split("\n")]
        assert ["carry['a']", "f32[3]", "f32[2]"] in rows
        assert not any("carry['b']" in row for row in rows), "only leaves that differ are shown"
        says(message.at, line_of(shrinking, "# the scan"), "in shrinking")
        says(message.remedy, "shapes that are taken")


def test_a_carry_of_another_dtype():
    for message in both(converting, TREE, kinds=(errors.DtypeError,)):
        assert ["carry['b']", "i32[]", "f32[]", "(weak)"] in [line.split() for line in message.head.split("\n")]
        says(message.remedy, "astype")


def test_a_carry_of_another_structure():
    for message in both(renaming, TREE, kinds=(errors.TreeError,)):
        rows = [line.split() for line in message.head.split("\n")]
        assert ["carry['b']", "i32[]", "-"] in rows and ["carry['c']", "-", "i32[]"] in rows


def test_a_single_carry_and_its_weakness():
    message = refusal(
        lambda: lax.while_loop(lambda v: v < 3, lambda v: v + 0.5, fnp.asarray(1, "int32")), errors.DtypeError
    )
    says(message.head, "lax.while_loop")
    assert ["carry", "i32[]", "f32[]", "(weak)"] in [line.split() for line in message.head.split("\n")]


def test_the_counter_of_fori_loop_is_not_shown():
    call = lambda n: lax.fori_loop(0, n, lambda i, v: {"a": v["a"][1:]}, {"a": X})
    for run in (call, ft.jit(call)):
        message = refusal(lambda run=run: run(3), errors.ShapeError)
        says(message.head, "lax.fori_loop")
        assert ["carry['a']", "f32[4,3]", "f32[3,3]"] in [line.split() for line in message.head.split("\n")]


def test_a_body_that_returns_no_pair():
    for message in both(lambda x: lax.scan(lambda c, x: c + x, x[0], x), X, kinds=(errors.ArgumentError,)):
        says(message.head, "not a pair", "f32[3]")
        says(message.remedy, "(carry, y)")


def test_slices_of_different_lengths():
    tree = {"p": np.zeros((4, 2)), "q": [np.zeros(3)]}
    for message in both(lambda t: lax.scan(lambda c, x: (c, x), 0, t), tree, kinds=(errors.ShapeError,)):
        says(message.head, "xs['p']: f64[4,2]", "xs['q'][0]: f64[3]")
    message = refusal(lambda: lax.scan(lambda c, x: (c, x), 0, X, length=5), errors.ShapeError)
    says(message.head, "length=5", "xs: f32[4,3]")
    message = refusal(lambda: lax.map(lambda x: x, {"p": np.zeros(()), "q": X}), errors.ShapeError)
    says(message.head, "xs['p'] has no first axis", "f64[]")
    message = refusal(lambda: lax.scan(lambda c, x: (c, x), 0), errors.ArgumentError)
    says(message.head, "no length")


@pytest.mark.parametrize("unroll", [0, -1, 1.5, "all"])
def test_unroll(unroll):
    says(refusal(lambda: lax.scan(lambda c, x: (c, x), 0, X, unroll=unroll)).head, f"unroll={unroll!r}")


def test_lengths_that_are_no_counts():
    traced = lambda n: lax.scan(lambda c, x: (c, x), 0, None, length=n)
    says(refusal(lambda: ft.jit(traced)(3), errors.ArgumentError).head, "length=", "not an int")
    says(refusal(lambda: traced(-1), errors.ArgumentError).head, "length=-1")
    says(refusal(lambda: lax.map(fnp.sin, X, batch_size=0), errors.ArgumentError).head, "batch_size=0")


def test_unroll_needs_known_bounds():
    message = refusal(lambda: ft.jit(lambda n: lax.fori_loop(0, n, lambda i, v: v, 0, unroll=2))(3))
    says(message.head, "unroll=2", "traced bounds")


def test_conditions():
    body = lambda v: v
    for condition, kind, shown in (
        (lambda v: v, errors.DtypeError, "f32[3]"),
        (lambda v: v > 0, errors.ShapeError, "bool[3]"),
        (lambda v: (v[0] > 0, v[1] > 0), errors.TreeError, "bool[]"),
        (lambda v: v[0], errors.DtypeError, "f32[]"),
    ):
        message = refusal(lambda c=condition: lax.while_loop(c, body, X[0]))
        assert isinstance(message.error, (kind, errors.ShapeError))
        says(message.head, "condition of lax.while_loop", shown)
        says(message.remedy, ".any()")


def test_what_is_no_function():
    for call in (
        lambda: lax.scan(3, 0, X),
        lambda: lax.map(None, X),
        lambda: lax.while_loop(lambda v: True, 3, 0),
        lambda: lax.fori_loop(0, 3, "f", 0),
        lambda: lax.associative_scan(1, X),
    ):
        says(refusal(call, errors.ArgumentError).head, "takes a function")


def test_errors_within_a_body_tell_the_users_line():
    def loop(x):
        def step(c, x):
            return c + x[:2], None  # the step

        return lax.scan(step, x[0], x)

    for message in both(loop, X, kinds=(errors.ShapeError,)):
        says(message.at, line_of(loop, "# the step"))


def test_control_flow_on_traced_values_names_the_loops():
    message = refusal(lambda: ft.jit(lambda x: 1 if x > 0 else 2)(1.0), errors.ConcretizationError)
    says(message.remedy, "lax.cond", "lax.while_loop", "lax.fori_loop")


def test_reverse_mode_of_while_loop():
    f = lambda x: lax.while_loop(lambda v: v < 9, lambda v: v * v, x)  # the loop
    message = refusal(lambda: ft.grad(f)(2.0), errors.UnsupportedError)
    says(message.head, "while", "how many steps")
    says(message.remedy, "lax.fori_loop", "lax.scan", "jvp", "custom_vjp")
    says(message.at, line_of(test_reverse_mode_of_while_loop, "# the loop"))


LOOPS = {
    "scan": lambda body, start: lax.scan(lambda c, x: (body(c), x), start, X)[0],
    "while_loop": lambda body, start: lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, body(s[1])), (0, start))[
        1
    ],
    "fori_loop": lambda body, start: lax.fori_loop(0, 3, lambda i, c: body(c), start),
}
UNDER = {
    "eager": lambda f: f,
    "jit": ft.jit,
    "vmap": lambda f: lambda c: ft.vmap(lambda x: f(c))(X),
    "grad": lambda f: lambda c: ft.grad(lambda x: x * 1.0 + 0 * f(c).astype("float32"))(1.0),
    "checkpoint": ft.checkpoint,
}


@pytest.mark.parametrize("under", UNDER)
@pytest.mark.parametrize("loop", LOOPS)
def test_a_number_that_comes_back_as_a_lower_kind(loop, under):
    for start, body in (
        (0.0, lambda c: c.astype("int32")),
        (0.0, lambda c: 1),
        (1, lambda c: c > 0),
        (1j, lambda c: c.real),
        (1j, lambda c: fnp.float64(1)),
    ):
        message = refusal(
            lambda start=start, body=body: UNDER[under](lambda c: LOOPS[loop](body, c))(start), errors.DtypeError
        )
        says(message.head, f"the body of lax.{loop}", "another type of carry", "taken", "returned")
        says(message.remedy, "start with the dtype that is returned", "astype")


@pytest.mark.parametrize("loop", LOOPS)
def test_numbers_that_take_the_kind_of_what_comes_back(loop):
    for start, body, kind in (
        (0, lambda c: c + 0.5, "float32"),
        (0, lambda c: c + fnp.int8(1), "int8"),
        (1.0, lambda c: c * 1j, "complex64"),
    ):
        wanted = np.asarray(start)
        for _ in range({"scan": len(X), "while_loop": 2, "fori_loop": 3}[loop]):
            wanted = np.asarray(body(wanted))
        out = LOOPS[loop](body, start)
        assert out.dtype == kind
        np.testing.assert_allclose(out, wanted)
    # The first number becomes an int with the first result, and then a float, because its neighbour becomes one.
    swap = lambda ab: (ab[1], ab[0] + ab[1])
    assert [x.dtype.name for x in LOOPS[loop](swap, (0.0, 1))] == ["float32", "float32"]
