"""Outlining: computations that XLA would repeat, or fuse into slow code, are compiled as separate parts."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import backends, lax
from functorch_like.compiler.fusion_counts import evaluations
from functorch_like.compiler.outlining import outline
from functorch_like.ir.jaxpr import Jaxpr

X = np.linspace(-2, 2, 5, dtype=np.float32)


def chain(x, steps=48):
    """Return each value of a chain with constants, an expensive operation and integers."""
    wanted = []
    for i in range(steps):
        wanted.append(fnp.cos(x))
        x = fnp.where(fnp.abs(x).astype("int32") > 1, fnp.sin(x) * 1.5, x * x - 0.25)
        if i == steps // 2:
            wanted.append(x)
            x = fnp.exp(-x)
    return [*wanted, x]


def size(f, *args):
    """Return the number of lines of the program that XLA compiled."""
    return ft.jit(f).lower(*args).compile().as_text().count("\n")


def test_a_chain_is_compiled_in_parts_and_grows_with_its_length():
    lowered = ft.jit(chain).lower(X)
    assert lowered.as_text().count('inlineable = "false"') > 5
    short, long = (size(lambda x, n=n: chain(x, n), X) for n in (24, 48))
    assert long < 2.5 * short  # as one piece, the second is four times as long as the first
    with backends.flags({"cpu.fast_lowerings": "-parts"}):
        # Only lowered, because newer versions of jaxlib take minutes to compile this.
        assert "inlineable" not in ft.jit(lambda x: chain(x)).lower(X).as_text()
    for got, expected in zip(ft.jit(chain)(X), chain(X), strict=True):  # jitted, and eager
        np.testing.assert_allclose(got, expected, rtol=2e-3, atol=2e-3)  # rounding errors grow along the chain


def test_equal_parts_become_one_function():
    def repeated(x, scales):
        wanted = []
        for scale in scales:  # equations of one source line, with different constants
            for _ in range(16):
                x = fnp.abs(x * scale - 0.25)
                wanted.append(x)
        return wanted

    def functions(scales):
        text = ft.jit(lambda x: repeated(x, scales)).lower(X).as_text()
        return text.count("func.func private"), text.count("call @")

    few, calls = functions([1.5] * 8)
    assert few < calls
    many, same = functions([1.0 + k / 8 for k in range(8)])
    assert few < many and same == calls
    for scales in ([1.5] * 8, [1.0 + k / 8 for k in range(8)]):
        expected = repeated(X, scales)
        for value, one in zip(ft.jit(lambda x, s=scales: repeated(x, s))(X), expected, strict=True):
            np.testing.assert_allclose(value, one, rtol=1e-3, atol=1e-3)


def test_what_is_wanted_in_few_places_stays_in_one_piece():
    last = lambda x: chain(x)[-1]
    assert "inlineable" not in ft.jit(last).lower(X).as_text()
    assert "inlineable" not in ft.jit(ft.grad(lambda x: fnp.sum(last(x)))).lower(X).as_text()
    assert "inlineable" not in ft.jit(lambda x: ft.jit(chain)(x)[-1]).lower(X).as_text()


def test_gradients_of_jitted_chains_and_of_loops_over_chains():
    def swing(x):
        for _ in range(40):
            x = fnp.sin(x) * 1.25
        return x

    total = lambda x: fnp.sum(swing(x))
    want = ft.grad(total)(X)
    np.testing.assert_allclose(ft.grad(ft.jit(total))(X), want, rtol=1e-5)
    twice = lambda x: fnp.sum(lax.fori_loop(0, 2, lambda i, x: swing(x), x))
    gradient = ft.jit(ft.grad(twice))
    assert "inlineable" in gradient.lower(X).as_text()
    np.testing.assert_allclose(gradient(X), ft.grad(lambda x: fnp.sum(swing(swing(x))))(X), rtol=1e-4)


def test_parts_do_what_the_whole_does():
    jaxpr = ft.make_jaxpr(chain)(X)
    found = outline(jaxpr)
    inner = [e for part in found if isinstance(part, Jaxpr) for e in part.equations]
    outer = [e for e in found if not isinstance(e, Jaxpr)]
    assert {id(e) for e in jaxpr.equations} == {id(e) for e in (*inner, *outer)}
    known = set(jaxpr.inputs)
    for e in found:  # inputs of a part are computed before it
        assert known.issuperset(a for a in e.inputs if a in {v for each in jaxpr.equations for v in each.outputs})
        known.update(e.outputs)
    assert known.issuperset(jaxpr.outputs)


def test_large_transposes_that_elementwise_rows_read_are_kept_apart():
    x = np.random.default_rng(0).normal(size=(4, 130, 131)).astype(np.float32)
    whole = np.arange(300 * 301, dtype=np.int32).reshape(300, 301)
    f = lambda x, i: (
        fnp.tanh(x.transpose(2, 0, 1)) * 2,
        x.transpose(0, 2, 1) + x.sum(),
        -i.T,
        x.transpose(1, 0, 2) * 2,
    )
    lowered = ft.jit(f).lower(x, whole).as_text()
    assert (
        lowered.count('inlineable = "false"') == lowered.count("@LayoutConstraint") == 3
    )  # the last one moves whole rows
    for got, want in zip(ft.jit(f)(x, whole), f(x, whole), strict=True):
        np.testing.assert_allclose(got, want, rtol=1e-5)
    s = np.random.default_rng(1).normal(size=(257, 257)).astype(np.float32)
    slope = ft.jit(ft.grad(lambda s: fnp.sum((s + s.T) ** 2)))
    np.testing.assert_allclose(slope(s), 4 * (s + s.T), rtol=1e-5)


def test_transposes_that_xla_does_without_are_left_to_it():
    s = np.random.default_rng(1).normal(size=(257, 257)).astype(np.float32)
    for f in (
        lambda s: s.T @ s,
        lambda s: s.T + (s * s).T,
        lambda s: (s @ s).T + s,
        lambda s: s.T.reshape(-1) * 2,
        lambda s: s[:50].T * 2,
    ):
        assert "inlineable" not in ft.jit(f).lower(s).as_text()
        np.testing.assert_allclose(ft.jit(f)(s), f(s), rtol=1e-4, atol=1e-4)


def _slopes(value, x):
    """Return the gradient by finite differences."""
    steps = np.eye(x.size).reshape(-1, *x.shape) * 1e-6
    return np.array([(value(x + e) - value(x - e)) / 2e-6 for e in steps]).reshape(x.shape)


def _mirrored(x, steps, tanh=np.tanh, flip=np.flip):
    for _ in range(steps):
        x = tanh(x + 0.5 * x * flip(x, 0)) + 0.1
    return x


def test_reversals_beyond_the_third_of_a_chain_are_kept_apart():
    """The number of paths to a value, each of which XLA computes, doubles with each reversal."""
    jaxpr = lambda f, *args: ft.make_jaxpr(f)(*args)
    network = lambda steps: lambda x: _mirrored(x, steps, fnp.tanh, fnp.flip)
    for steps, apart in ((3, 0), (4, 1), (7, 4), (12, 9)):
        parts = [part for part in outline(jaxpr(network(steps), X)) if isinstance(part, Jaxpr)]
        assert [part.equations[-1].prim.name for part in parts] == ["rev"] * apart
    sides = lambda x: [fnp.flip(x, 0) * k for k in range(9)]  # no chain
    assert not any(isinstance(step, Jaxpr) for step in outline(jaxpr(sides, X)))


def test_chains_of_reversals():
    """Without parts, the gradient is not compiled within minutes."""
    x = np.linspace(-1, 1, 6)
    f = lambda x: fnp.sum(_mirrored(x, 14, fnp.tanh, fnp.flip))
    slopes = _slopes(lambda x: _mirrored(x, 14).sum(), x)
    for tiers in ("off", "quick"):
        with backends.compilation.flags(tiers=tiers):
            value, slope = ft.jit(ft.value_and_grad(f))(x)
        np.testing.assert_allclose(value, _mirrored(x, 14).sum(), rtol=1e-12)
        np.testing.assert_allclose(slope, slopes, rtol=1e-6, atol=1e-9)


def _stencil(u, steps, roll=np.roll):
    v = u * 0
    for _ in range(steps):
        v = v + 0.1 * (roll(u, 1, 0) + roll(u, -1, 0) + roll(u, 1, 1) + roll(u, -1, 1) - 4 * u)
        u = u + 0.1 * v - 0.01 * u**3
    return u


def _orbit(s, steps, stack=np.stack):
    for _ in range(steps):
        slope = lambda s: stack([10 * (s[1] - s[0]), s[0] * (28 - s[2]) - s[1], s[0] * s[1] - 2.5 * s[2]])
        middle = s + 0.005 * slope(s)
        s = s + 0.01 * slope(middle)
    return s


def _recurrent(h, steps, tanh=np.tanh, exp=np.exp):
    w = np.linspace(-1, 1, 9).reshape(3, 3)
    for k in range(steps):
        gate = 1 / (1 + exp(-(h @ w)))
        h = (1 - gate) * tanh(h @ w.T + 0.1 * k) + gate * h
    return h


UNROLLED = {
    "stencil": (lambda u, n: _stencil(u, n, fnp.roll), _stencil, np.sin(np.arange(30.0)).reshape(5, 6)),
    "orbit": (lambda s, n: _orbit(s, n, fnp.stack), _orbit, np.array([[0.1, 0.2], [0.4, 0.3], [1.0, 2.0]])),
    "recurrent": (lambda h, n: _recurrent(h, n, fnp.tanh, fnp.exp), _recurrent, np.cos(np.arange(6.0)).reshape(2, 3)),
}


@pytest.mark.parametrize("name", UNROLLED)
def test_gradients_of_unrolled_steps(name):
    function, reference, x = UNROLLED[name]
    gradient = ft.jit(ft.value_and_grad(lambda x: fnp.sum(function(x, 12) ** 2)))
    value = lambda x: (reference(x, 12) ** 2).sum()
    slopes = _slopes(value, x)
    for tiers in ("off", "quick"):
        with backends.compilation.flags(tiers=tiers):
            result, slope = gradient(x)
        np.testing.assert_allclose(result, value(x), rtol=1e-10)
        np.testing.assert_allclose(slope, slopes, rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("name", UNROLLED)
def test_programs_of_unrolled_steps_grow_with_their_number(name):
    """XLA's grow as a square: it computes each value in many kernels, at many indices."""
    function, _, x = UNROLLED[name]
    gradient = lambda steps: ft.grad(lambda x: fnp.sum(function(x, steps) ** 2))
    assert size(gradient(64), x) < 2.5 * size(gradient(32), x)


def _counts(f, *args):
    jaxpr = ft.make_jaxpr(f)(*args)
    return {(e.prim.name, k): n for k, (e, n) in enumerate(zip(jaxpr.equations, evaluations(jaxpr), strict=True)) if n}


def test_values_are_counted_as_xla_computes_them():
    count = lambda f, *args: [*_counts(f, *args).values()]

    def sines(x):
        first = fnp.sin(x)
        second = fnp.sin(first)
        return first, second, fnp.sin(second)

    assert count(sines, X) == [3, 2, 1]  # one operand: in each kernel again
    y, other = np.ones(5, np.float32), np.ones(5, np.float32)

    def products(x, y, z):
        first = x * y
        second = first * z
        return first, second, second * x

    assert count(products, X, y, other) == [1, 1, 1]  # two operands, and a result of the program: once
    tripled = lambda x, y: (lambda s: [s * k for k in (2.0, 3.0, 4.0)])(fnp.sin(x + y))
    assert max(count(tripled, X, y)) == 3  # in all kernels that depend on it
    shared = lambda x, y: (lambda q: [fnp.sin(q), fnp.cos(q)])(x / y)
    assert _counts(shared, X, y)["div", 0] == 1  # expensive, and read twice
    spread = lambda x: fnp.broadcast_to(fnp.sin(fnp.exp(x[0])), (5,)) * x
    assert [n for (name, _), n in _counts(spread, X).items() if name == "exp"] == [1]
    joined = lambda x: (lambda c: (fnp.sin(c), fnp.cos(c)))(fnp.concatenate([x, x * 2]))
    assert [n for (name, _), n in _counts(joined, X).items() if name == "concatenate"] == [1]
    moved = lambda x: (lambda s: s[1:] + s[:-1])(fnp.sin(x))
    assert _counts(moved, X)["sin", 0] == 2  # at two indices of one kernel


def test_chains_of_sines_of_large_arrays():
    """Their sines branch, so that XLA fuses nothing into them, and the sums between them into each."""
    x = np.linspace(-2, 2, 1 << 17, dtype=np.float32)

    def chain(x, sin=fnp.sin):
        for _ in range(16):
            x = sin(x) * np.float32(0.5) + x - np.float32(0.25)
        return x

    assert any(isinstance(step, Jaxpr) for step in outline(ft.make_jaxpr(chain)(x)))
    np.testing.assert_allclose(ft.jit(chain)(x), chain(x.astype(np.float64), np.sin), rtol=1e-4, atol=1e-4)


def test_few_copies_are_left_to_xla():
    """A chain through operations that XLA does not compute twice, as that of bodies that attract each other."""

    def motion(q):
        v = q * 0
        for _ in range(8):
            d = q[:, None] - q[None]
            distance = fnp.sum(d * d, -1) + 0.1
            v = v - 0.01 * fnp.sum(d / (distance * fnp.sqrt(distance))[..., None], 1)
            q = q + 0.01 * v
        return fnp.sum(q * q)

    jaxpr = ft.make_jaxpr(ft.grad(motion))(np.ones((4, 3), np.float32))
    assert not any(isinstance(step, Jaxpr) for step in outline(jaxpr))
    weights = [np.ones((4, 4), np.float32)] * 12

    def step(ws, gs):  # one norm scales all gradients
        scale = fnp.minimum(1, 1 / fnp.sqrt(sum(fnp.sum(g * g) for g in gs)))
        return [w - 0.1 * (g * scale + 0.01 * w) for w, g in zip(ws, gs, strict=True)]

    assert not any(isinstance(part, Jaxpr) for part in outline(ft.make_jaxpr(step)(weights, weights)))


def test_random_words_that_several_kernels_read_are_computed_once():
    draw = lambda key: ft.random.uniform(key, (40, 30))

    def laplacian(key):
        u = draw(key)
        return u - (fnp.roll(u, 1, 0) + fnp.roll(u, -1, 0) + fnp.roll(u, 1, 1) + fnp.roll(u, -1, 1)) / 4

    key = ft.random.PRNGKey(3)
    parts = lambda f: [p.equations[0].prim.kind for p in outline(ft.make_jaxpr(f)(key)) if isinstance(p, Jaxpr)]
    assert parts(laplacian) == ["bits"]
    assert parts(lambda key: 2 * draw(key)) == []
    u = np.asarray(draw(key), np.float64)
    around = sum(np.roll(u, by, axis) for by in (1, -1) for axis in (0, 1))
    np.testing.assert_allclose(ft.jit(laplacian)(key), u - around / 4, rtol=1e-6, atol=1e-6)
