"""Python control flow where values are unknown: bodies of loops and rules, functions inside of functions, `lower`."""

import ast

import numpy as np
import pytest
from support.python_paths import bisect, newton, paths
from support.python_programs import made

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, testing
from functorch_like.sharding import NamedSharding, PartitionSpec


def branch(x):
    if x > 0:
        return fnp.sin(x)
    return fnp.cos(x)


def positive(x):
    assert x > 0, "must be positive"
    return x * 2


VALUES = np.array([1.0, -1.0, 2.0, -0.0], np.float32)
SQUARES = np.array([2.0, 9.0, 100.0, 3.0], np.float32)
SINES = np.where(VALUES > 0, np.sin(VALUES), np.cos(VALUES))
SLOPES = np.where(VALUES > 0, np.cos(VALUES), -np.sin(VALUES))


# ------------------------------------------------------------------------------------------------------------ bodies
def step(c, x):
    if x > 0:
        c = c + x
    elif c > 2:
        return c, x
    return c, c * 2


def plain_scan(c, xs):
    ys = []
    for x in xs:
        c, y = step(c, x)
        ys.append(y)
    return c, np.array(ys)


def test_conditions_in_the_body_of_scan():
    f = paths(lambda c, xs: ft.lax.scan(step, c, xs))
    for c in (np.float32(0), np.float32(5)):
        for got, want in zip(f(c, VALUES), plain_scan(c, VALUES), strict=True):
            np.testing.assert_allclose(got, want, rtol=1e-6)
    slope = paths(ft.grad(lambda c: ft.lax.scan(step, c, VALUES)[1].sum()))
    for c in (0.5, 5.0):
        h = 1e-3
        want = (plain_scan(c + h, VALUES)[1].sum() - plain_scan(c - h, VALUES)[1].sum()) / (2 * h)
        np.testing.assert_allclose(slope(c), want, rtol=1e-3)


def test_conditions_in_bodies_of_while_and_fori_loops():
    def body(k, x):
        return x - 3 if x > k else x + 1

    def more(c):
        if c[1] > 100:
            return c[1] < 200
        return c[0] < 5

    want = np.float32(1)
    for k in range(5):
        want = body(k, want)
    assert paths(lambda x: ft.lax.fori_loop(0, 5, body, x))(np.float32(1)) == want
    assert paths(lambda x, n: ft.lax.fori_loop(0, n, body, x))(np.float32(1), np.int32(5)) == want
    loop = paths(lambda x: ft.lax.while_loop(more, lambda c: (c[0] + 1, body(c[0], c[1])), (0, x)))
    assert loop(np.float32(1))[1] == want


@pytest.mark.parametrize(
    "over",
    [
        ft.checkpoint,
        ft.jit,
        lambda f: lambda x: ft.lax.cond(x < 5, f, lambda x: x, x),
        lambda f: ft.jit(ft.checkpoint(f)),
    ],
    ids=["checkpoint", "jit", "cond", "jit(checkpoint)"],
)
def test_conditions_in_other_bodies(over):
    f = lambda x: over(branch)(x) * 2
    for k, x in enumerate(VALUES):
        for g in (paths(f), ft.jit(paths(f))):
            np.testing.assert_allclose(g(x), 2 * SINES[k], rtol=1e-6)
        for g in (paths(ft.grad(f)), ft.grad(paths(f)), ft.jit(ft.grad(paths(f)))):
            np.testing.assert_allclose(g(x), 2 * SLOPES[k], rtol=1e-6)


def test_a_loop_in_a_body_is_a_loop():
    for f in (newton, bisect):
        with testing.count_compiles() as compiles:
            got = paths(lambda xs, f=f: ft.lax.map(f, xs))(SQUARES)
        assert compiles.count == 1
        np.testing.assert_allclose(got, [float(f(x)) for x in SQUARES], rtol=1e-6)


def test_effects_in_a_body_happen_on_the_side_taken(capfd):
    def told(x):
        if x > 0:
            ft.debug.print("positive {}", x)
            return x
        ft.debug.print("negative {}", x)
        return -x

    np.testing.assert_array_equal(paths(lambda xs: ft.lax.map(told, xs))(VALUES[:2]), [1, 1])
    assert capfd.readouterr().out.split() == ["positive", "1.0", "negative", "-1.0"]


def test_mapped_functions_select_for_each_element():
    inside = paths(lambda xs: ft.vmap(branch)(xs))
    np.testing.assert_allclose(inside(VALUES), SINES, rtol=1e-6)
    np.testing.assert_allclose(inside(np.abs(VALUES) + 1), np.sin(np.abs(VALUES) + 1), rtol=1e-6)
    np.testing.assert_allclose(paths(lambda xs: ft.vmap(ft.grad(branch))(xs))(VALUES), SLOPES, rtol=1e-6)
    np.testing.assert_allclose(paths(lambda xs: ft.vmap(newton)(xs))(SQUARES), np.sqrt(SQUARES), rtol=1e-4)
    np.testing.assert_allclose(ft.jit(lambda xs: ft.vmap(paths(bisect))(xs))(SQUARES), np.sqrt(SQUARES), atol=2e-3)
    both = paths(lambda xs, ys: ft.vmap(lambda x: ft.vmap(lambda y: x if x > y else y)(ys))(xs))
    np.testing.assert_array_equal(both(VALUES, VALUES[:2]), np.maximum(VALUES[:, None], VALUES[None, :2]))


def test_effects_before_a_mapped_condition_happen_once(capfd):
    def told(x):
        ft.debug.print("x {}", x)
        return branch(x)

    np.testing.assert_allclose(paths(lambda xs: ft.vmap(told)(xs))(VALUES[:2]), SINES[:2], rtol=1e-6)
    assert capfd.readouterr().out.split() == ["x", "1.0", "x", "-1.0"]


def test_mapped_functions_that_cannot_go_both_ways_need_all_elements_to_agree():
    f = paths(lambda xs: ft.vmap(positive)(xs))
    np.testing.assert_array_equal(f(SQUARES), 2 * SQUARES)
    with pytest.raises(errors.ConcretizationError, match="it raises AssertionError: must be positive"):
        f(VALUES)


# ------------------------------------------------------------------------------------------------------------- rules
def test_conditions_in_functions_with_rules():
    @ft.custom_jvp
    def forward(x):
        return branch(x)

    @forward.defjvp
    def slope(primals, tangents):
        (x,), (t,) = primals, tangents
        return forward(x), (5 * t if x > 0 else 7 * t)

    @ft.custom_vjp
    def backward(x):
        return branch(x)

    def fwd(x):
        return (fnp.sin(x), x) if x > 0 else (fnp.cos(x), x)

    backward.defvjp(fwd, lambda x, g: (5 * g,) if x > 0 else (7 * g,))
    gradient = ft.custom_gradient(lambda x: (branch(x), lambda g: 5 * g if x > 0 else 7 * g))
    for rule in (forward, backward, gradient):
        f = lambda x, rule=rule: rule(x) * 2
        for k, x in enumerate(VALUES):
            np.testing.assert_allclose(paths(f)(x), 2 * SINES[k], rtol=1e-6)
            for g in (paths(ft.grad(f)), ft.grad(paths(f)), ft.jit(ft.grad(paths(f)))):
                assert g(x) == (10 if x > 0 else 14)


def test_rules_that_keep_other_things_on_each_side_are_refused():
    @ft.custom_vjp
    def f(x):
        return x

    f.defvjp(lambda x: (x, ("up", x)) if x > 0 else (x, ("down", x)), lambda r, g: (g * (1 if r[0] == "up" else 2),))
    for x in (1.0, -1.0):
        assert paths(ft.grad(f))(x) == (1 if x > 0 else 2)  # values are known


# ------------------------------------------------------------------------------------- functions inside of functions
def test_a_function_with_paths_inside_of_a_function_without():
    for f, xs, want in ((branch, VALUES, SINES), (newton, SQUARES, np.sqrt(SQUARES))):
        inner = paths(f)
        np.testing.assert_allclose(ft.jit(lambda x, inner=inner: inner(x) * 2)(xs[1]), 2 * want[1], rtol=1e-4)
        np.testing.assert_allclose(ft.lax.map(inner, xs), want, rtol=1e-4)
        np.testing.assert_allclose(inner(xs[0]), want[0], rtol=1e-4)  # a direct call, after traces in other functions
        assert inner.paths().total


def test_effects_of_a_function_with_paths_inside_of_a_function_without(capfd):
    @paths
    def f(x):
        if x > 0:
            ft.debug.print("positive")
            return x
        return -x

    assert [float(ft.jit(lambda x: f(x) + 1)(x)) for x in (1.0, -1.0)] == [2.0, 2.0]
    assert capfd.readouterr().out.split() == ["positive"]


def test_jitted_functions_inside_that_refuse_control_flow_do_so_inside_of_paths_too():
    for options in ({"fullgraph": True}, {"control_flow": "error"}):
        with pytest.raises(errors.ConcretizationError, match="only traced and has no value"):
            paths(lambda x, options=options: ft.jit(branch, **options)(x))(1.0)
    inner = ft.jit(branch)
    np.testing.assert_allclose(paths(lambda x: inner(x) + 0)(1.0), np.sin(1), rtol=1e-6)
    with pytest.raises(errors.ConcretizationError, match=r"jit\(control_flow='paths'\)"):
        inner(1.0)


# ------------------------------------------------------------------------------------------ ahead-of-time compilation
def test_lower_trace_and_warmup_hold_all_paths():
    f = paths(branch)
    assert f.lower(VALUES[0]).compile()(VALUES[1]) == SINES[1]
    assert f.eval_shape(ft.ShapeDtypeStruct((), "float32")).dtype == np.float32
    g = paths(newton)
    g.warmup((SQUARES[0],))
    with testing.count_compiles() as compiles:
        np.testing.assert_allclose([g(x) for x in SQUARES], np.sqrt(SQUARES), rtol=1e-4)
    assert compiles.count == 0
    assert "one program of all paths" in str(g.paths())
    f(VALUES[0])
    assert f.trace(VALUES[0]).jaxpr.out_avals[0].dtype == np.float32


@pytest.mark.parametrize(
    "over",
    [
        ft.vmap(branch),
        lambda xs: ft.lax.map(branch, xs),
        lambda xs: ft.lax.scan(lambda c, x: (c, branch(x)), 0, xs)[1],
    ],
    ids=["vmap", "map", "scan"],
)
def test_conditions_in_bodies_alone(over):
    for _ in range(2):  # the second time the body is known already
        f = paths(over)
        np.testing.assert_allclose(f.lower(VALUES).compile()(VALUES), SINES, rtol=1e-6)
        np.testing.assert_allclose(ft.jit(lambda xs, f=f: f(xs))(VALUES), SINES, rtol=1e-6)
        assert ft.eval_shape(paths(over), VALUES).shape == VALUES.shape
    np.testing.assert_allclose(ft.export.export(paths(over))(VALUES).call(VALUES), SINES, rtol=1e-6)


def test_shardings_go_with_paths_that_are_all_known():
    mesh = ft.make_mesh((1,), ("i",))
    f = paths(lambda x: x * 2 if x[0] > 0 else -x, in_shardings=NamedSharding(mesh, PartitionSpec("i")))
    for x in (VALUES, -VALUES):
        np.testing.assert_array_equal(f(x), x * 2 if x[0] > 0 else -x)


def test_exported_functions_hold_all_paths():
    exported = ft.export.export(paths(branch))(VALUES[0])
    np.testing.assert_allclose([exported.call(x) for x in VALUES], SINES, rtol=1e-6)


# ------------------------------------------------------------------------------------------------------------ errors
def test_what_cannot_be_answered_both_ways_is_refused():
    def counted(x):
        n = 0
        while x > 1:
            x, n = x / 2, n + 1
        return x * n

    pair = lambda x: (x, x) if x > 0 else x
    named = lambda x: {"a": x} if x > 0 else {"b": x}
    cases = (
        (positive, "it raises AssertionError: must be positive"),
        (counted, r"more than 64 paths(.|\n)*count in an array"),
        (pair, "results of different structures or types"),
        (named, "results of different structures or types"),
        (lambda x: x * int(x), "take the number outside, and close over it"),
        (lambda x: x * float(x), "take the number outside, and close over it"),
    )
    for f, told in cases:
        for fails in (lambda f=f: paths(lambda xs: ft.lax.map(f, xs))(VALUES), lambda f=f: paths(f).lower(VALUES[0])):
            with pytest.raises(errors.ConcretizationError, match=told) as raised:
                fails()
            assert "let jit trace each path" not in str(raised.value)
        with pytest.raises(errors.ConcretizationError, match=r"where the outer function follows paths(.|\n)*are known"):
            ft.jit(lambda x, f=f: paths(f)(x))(VALUES[0])
    with pytest.raises(errors.ConcretizationError, match=r"let jit\(<lambda>\) follow paths, too"):
        paths(lambda x: ft.jit(named)(x))(VALUES[0])
    assert paths(lambda x: paths(named)(x))(VALUES[0])["a"] == VALUES[0]


def test_arrays_that_are_too_large_for_a_guard_are_refused_without_advising_paths():
    with pytest.raises(errors.ConcretizationError, match="more than 16 elements make no paths") as raised:
        paths(lambda x: x.tolist())(np.ones(17))
    assert "let jit trace each path" not in str(raised.value)


def test_an_impure_body_is_refused():
    calls = []

    def body(x):
        calls.append(1)
        return x * len(calls) if x > 0 else -x

    def before(x):
        calls.append(1)
        y = x * len(calls)
        return y if y > 0 else -y

    with pytest.raises(errors.ArgumentError, match="did not do the same again"):
        paths(lambda xs: ft.lax.map(before, xs))(VALUES)


#: Program with far jumps; Python 3.11 gives both tests of an `and` the same position.
LONG = f"""
def program(x, y):
    if 1.0 <= x and truth(x <= y):
        {"; ".join(["y = y + 1.0"] * 80)}
    else:
        x, y = y, x
    return x + 10 * y
"""
TWICE = """
def program(x, y):
    if x > 0.0:
        x = x + 1.0
    if x > 0.0:
        y = y + 1.0
    return x + 10 * y
"""


@pytest.mark.parametrize("name", ["LONG", "TWICE"])
def test_conditions_are_distinguished_by_more_than_their_position(name):
    plain = made(globals()[name], {"truth": bool})
    tree = ast.parse(globals()[name])
    if name == "TWICE":  # everything at one position, as in some generated code
        for node in ast.walk(tree):
            if hasattr(node, "lineno"):
                node.lineno, node.end_lineno, node.col_offset, node.end_col_offset = 1, 1, 0, 1
    namespace = {"truth": lambda v: v}
    exec(compile(tree, "generated.py", "exec"), namespace)
    for run in (paths(namespace["program"]), ft.jit(lambda x, y: paths(namespace["program"])(x, y))):
        for x, y in ((1.0, -1.0), (2.0, 5.0), (0.0, 3.0), (-1.0, -1.0)) * 2:
            assert run(x, y) == plain(x, y)
