"""Taylor mode: coefficients against Cauchy's integral in NumPy, and against nested forward mode; its arguments."""

import numpy as np
import pytest
from scipy import special
from support.messages import refusal, says
from support.primitive_samples import differentiable, direction

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax, testing
from functorch_like.transforms.taylor import rules
from functorch_like.transforms.taylor.jet import lifted

ORDER = 5
RNG = np.random.default_rng(0)
X = RNG.uniform(0.4, 0.8, 3)
CURVE = RNG.normal(size=(ORDER, 3)) / 4  # coefficients


def cauchy(f, x=X, curve=CURVE, radius=0.2, points=64):
    """Return the coefficients of f(x(t)) from values on a circle of complex t; f is NumPy's and analytic there."""
    ts = radius * np.exp(2j * np.pi * np.arange(points) / points)
    values = np.stack([f(x + sum(c * t**k for k, c in enumerate(curve, 1))) for t in ts])
    found = np.fft.fft(values, axis=0)[: ORDER + 1] / points
    return (found / radius ** np.arange(ORDER + 1).reshape(-1, *[1] * (found.ndim - 1))).real


def coefficients(f, x=X, curve=CURVE, wrap=ft.jit):
    y, terms = wrap(lambda x, c: ft.jet(f, (x,), (list(c),), factorial_scaled=False))(x, list(curve))
    return [y, *terms]


ROWS = {
    "sin": np.sin, "cos": np.cos, "tan": np.tan, "sinh": np.sinh, "cosh": np.cosh, "tanh": np.tanh,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "log": np.log, "log1p": np.log1p, "sqrt": np.sqrt,
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "asinh": np.arcsinh, "atanh": np.arctanh,
    "logistic": lambda z: 1 / (1 + np.exp(-z)), "erf": special.erf, "erfc": lambda z: 1 - special.erf(z),
    "lgamma": special.loggamma, "digamma": special.digamma, "square": np.square, "reciprocal": lambda z: 1 / z,
    "rsqrt": lambda z: z**-0.5, "cbrt": lambda z: z ** (1 / 3),
}  # fmt: skip


@pytest.mark.parametrize("name", ROWS)
def test_elementwise_rows_have_their_taylor_series(name):
    for got, want in zip(coefficients(getattr(lax, name)), cauchy(ROWS[name]), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-9, atol=1e-10)


M = RNG.normal(size=(3, 3))
FUNCTIONS = {
    "third power": (lambda x: x**3, lambda z: z**3),
    "ninth power": (lambda x: lax.integer_pow(x, 9), lambda z: z**9),
    "inverse square": (lambda x: x**-2, lambda z: z**-2.0),
    "real power": (lambda x: x**2.5, lambda z: z**2.5),
    "power of itself": (lambda x: x**x, lambda z: z**z),
    "quotient": (lambda x: fnp.sin(x) / (x + x * x), lambda z: np.sin(z) / (z + z * z)),
    "matrix product": (lambda x: fnp.tanh(M @ x) @ x, lambda z: np.tanh(M @ z) @ z),
    "linear rows": (
        lambda x: fnp.cumsum(fnp.concatenate([x[::-1], x * x])[1:-1]) - fnp.pad(x, (0, 1)),
        lambda z: np.cumsum(np.concatenate([z[::-1], z * z])[1:-1]) - np.pad(z, (0, 1)),
    ),
    "sums": (lambda x: fnp.log(fnp.exp(x).sum()), lambda z: np.log(np.exp(z).sum())),
    "products": (fnp.prod, np.prod),
    "gather": (lambda x: x[np.array([2, 0])] ** 2, lambda z: z[[2, 0]] ** 2),
    "gather beyond the end": (
        lambda x: (x * x).at[np.array([1, 7])].get(mode="fill", fill_value=2.0),
        lambda z: np.array([z[1] ** 2, 2]),
    ),
    "scatter": (lambda x: (x * x).at[1].multiply(x[0]), lambda z: np.array([z[0] ** 2, z[1] ** 2 * z[0], z[2] ** 2])),
    "slices": (
        lambda x: lax.dynamic_update_slice(x * x, lax.dynamic_slice(x, (1,), (1,)), (2,)),
        lambda z: np.array([z[0] ** 2, z[1] ** 2, z[1]]),
    ),
    "greatest": (lambda x: fnp.max(x * x), lambda z: z[np.argmax(X)] ** 2),
    "least": (lambda x: fnp.min(fnp.sin(x)), lambda z: np.sin(z[np.argmin(X)])),
    "greater": (lambda x: fnp.maximum(x, 0.6) + fnp.minimum(x, 0.6), lambda z: z + 0.6),
    "sort": (lambda x: fnp.sort(x) ** 2, lambda z: z[np.argsort(X)] ** 2),
    "where": (lambda x: fnp.where(x > 0.6, x * x, fnp.sin(x)), lambda z: np.where(X > 0.6, z * z, np.sin(z))),
    "abs": (lambda x: abs(x - 0.6), lambda z: (z - 0.6) * np.sign(X - 0.6)),
    "clip": (lambda x: fnp.clip(x * x, 0.25, 9), lambda z: np.where(X * X > 0.25, z * z, 0.25)),
    "solve": (
        lambda x: fnp.linalg.solve(fnp.eye(3, dtype="float64") * 3 + x[:, None] * x, x),
        lambda z: np.linalg.solve(np.eye(3) * 3 + z[:, None] * z, z),
    ),
    "convolution": (
        lambda x: lax.conv_general_dilated(x[None, None], x[None, None, ::-1], (1,), [(2, 2)])[0, 0],
        lambda z: np.convolve(z, z),
    ),
    "jit": (ft.jit(lambda x: fnp.sin(ft.jit(fnp.exp)(x)) * x), lambda z: np.sin(np.exp(z)) * z),
    "vmap": (ft.vmap(lambda x: fnp.sin(x) * x), lambda z: np.sin(z) * z),
    "grad": (ft.grad(lambda x: fnp.sum(fnp.sin(x) * x)), lambda z: np.cos(z) * z + np.sin(z)),
    "constant": (lambda x: fnp.floor(x) + fnp.sign(x) + lax.stop_gradient(x), lambda z: 1 + X + 0j),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_have_their_taylor_series(name):
    f, reference = FUNCTIONS[name]
    for got, want in zip(coefficients(f), cauchy(reference), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-9)


def test_two_moving_operands():
    a, b = RNG.uniform(0.5, 1, (2, 3)), RNG.normal(size=(2, ORDER, 3)) / 4
    f = lambda np_: lambda x, y: np_.sin(x * y) / y
    y, terms = ft.jet(f(fnp), tuple(a), tuple(map(list, b)), factorial_scaled=False)
    joined = lambda z: f(np)(z[:3], z[3:])
    want = cauchy(joined, np.concatenate(a), np.concatenate(b, axis=1))
    for got, w in zip([y, *terms], want, strict=True):
        np.testing.assert_allclose(got, w, rtol=1e-9, atol=1e-10)


def derivatives(f, x):
    """Return the derivatives d^k f / dx^k, k < 4, at a scalar, by nested forward mode."""
    found = []
    slope = lambda f: lambda x: ft.jvp(f, (x,), (fnp.ones_like(x),))[1]
    for _ in range(4):
        found.append(float(f(x)))
        f = slope(f)
    return found


def test_the_higher_chain_rule_of_nested_forward_mode():
    f = ft.jit(lambda x: fnp.log(1 + fnp.sin(x) ** 2) * fnp.arctan(x))
    x, (u, v, w) = fnp.asarray(np.float64(0.7)), (0.3, -1.2, 0.5)
    f0, f1, f2, f3 = derivatives(f, x)
    y, terms = ft.jet(f, (x,), ([u, v, w],))
    np.testing.assert_allclose(y, f0)
    # Faa di Bruno
    np.testing.assert_allclose(terms, [f1 * u, f2 * u**2 + f1 * v, f3 * u**3 + 3 * f2 * u * v + f1 * w], rtol=1e-10)


def test_powers_of_zero_are_exact():
    for f, want in [
        (lambda x: x**3, [0, 0, 0, 6, 0]),
        (lambda x: x**2.0, [0, 0, 2, 0, 0]),
        (lambda x: fnp.power(x, 4.0), [0, 0, 0, 0, 24]),
        (lambda x: x * x, [0, 0, 2, 0, 0]),
    ]:
        y, terms = ft.jet(f, (np.float64(0),), ([1.0, 0.0, 0.0, 0.0],))
        np.testing.assert_array_equal([y, *terms], want)


def test_trees_none_and_results_that_stay():
    p, e = {"a": X, "n": np.arange(3)}, np.ones(3)
    first, second = {"a": e, "n": None}, None
    out, terms = ft.jet(
        lambda p, y: {"s": p["a"] ** 2 * y, "n": p["n"], "c": 3.0},
        (p, 2.0),
        ([first, {"a": None, "n": None}], [None, second]),
    )
    np.testing.assert_allclose(out["s"], 2 * X**2)
    np.testing.assert_allclose(terms["s"][0], 4 * X)
    np.testing.assert_allclose(terms["s"][1], np.full(3, 4.0))
    assert terms["n"][0].dtype == ft.float0
    assert [float(t) for t in terms["c"]] == [0, 0]


def test_python_branches_on_values():
    f = lambda x: fnp.sin(x) if x > 0 else x
    assert [float(t) for t in ft.jet(f, (-1.0,), ([1.0, 0.0],))[1]] == [1, 0]


def test_jets_can_be_transformed():
    f = lambda x: ft.jet(fnp.sin, (x,), ([1.0, 0.0],))[1][1]  # -sin
    np.testing.assert_allclose(ft.vmap(ft.grad(f))(X), -np.cos(X))
    np.testing.assert_allclose(ft.jvp(f, (X[0],), (1.0,))[1], -np.cos(X[0]))
    nested = lambda x: ft.jet(lambda y: ft.jet(lambda z: z**4, (y,), ([1.0, 0.0],))[1][1], (x,), ([1.0, 0.0],))[1][1]
    np.testing.assert_allclose(nested(np.float64(2)), 24.0)


def test_a_jitted_function_is_traced_once():
    f = ft.jit(lambda x: fnp.sin(x) * x)
    g = lambda x: ft.jet(f, (x,), ([fnp.ones(3, "float64"), None],))
    g(fnp.asarray(X))
    with testing.count_traces() as traces, testing.count_compiles() as compiles:
        g(fnp.asarray(X + 1))
    assert (traces.count, compiles.count) == (0, 0)


def test_the_cost_of_an_order_is_a_polynomial():
    """The cost of exp and tanh grows as a polynomial; nested forward mode doubles it with each order."""
    count = lambda k: len(
        ft.make_jaxpr(lambda x: ft.jet(lambda x: fnp.tanh(fnp.exp(x)), (x,), ([1.0] * k,))[1])(1.0).equations
    )
    assert count(12) < 5 * count(6)


def test_arguments_that_do_not_fit():
    message = refusal(lambda: ft.jet(fnp.sin, X, [X]), errors.ArgumentError)
    says(message.remedy, "jet(f, (x,),")
    message = refusal(lambda: ft.jet(fnp.multiply, (X, X), ([X], [X, X])), errors.ArgumentError)
    says(message.head, "1, 2 terms")
    message = refusal(lambda: ft.jet(fnp.sin, (X,), ([X[:2]],)), errors.DifferentiationError)
    says(message.head, "f64[3]", "f64[2]")


def test_no_terms():
    y, terms = ft.jet(fnp.sin, (X,), ([],))
    np.testing.assert_allclose(y, np.sin(X))
    assert terms == []


def _by_row():
    """Yield a real and a complex sample of each primitive that has a Taylor rule or is linear."""
    seen = set()
    for case in differentiable():
        name, kind = case.prim.name, case.sample.operands[case.floats[0]].dtype.kind
        told = case.prim in rules.RULES or case.prim.linear is not None
        if told and (name, kind) not in seen and all(0 not in np.shape(o) for o in case.draw()):
            seen.add((name, kind))
            yield pytest.param(case, id=case.label)


@pytest.mark.parametrize("case", list(_by_row()))
def test_rules_agree_with_the_jvp_rule(case):
    xs = [ft.device_put(x) for x in case.draw()]
    drawn = zip(*(direction(case, case.draw(), k) for k in range(3)), strict=True)
    curves = [[None if v is None else ft.device_put(v) for v in vs] for vs in drawn]
    series = [[x, *c] for x, c in zip(xs, curves, strict=True)]
    found = rules.rule(case.prim, series, case.sample.params)
    if found is None:
        return
    outs, terms = lifted(case.prim, series, case.sample.params, 3)
    for z, out, ts in zip(found, outs, terms, strict=True):
        for got, want in zip(z, [out, *ts], strict=True):
            assert (got is None) == (want is None) or not np.any(np.asarray(want if got is None else got))
            if got is not None and want is not None:
                np.testing.assert_allclose(got, want, rtol=1e-8, atol=1e-8)
