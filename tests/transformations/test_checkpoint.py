"""checkpoint: values and all derivatives are unchanged; residuals that are kept, and work that is repeated."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import checkpoint_policies as policies
from functorch_like import lax
from functorch_like.backends.xla import counters
from functorch_like.compiler.lower import lower
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.primitives.effects.checkpoint_name import name

RNG = np.random.default_rng(11)
W = [RNG.normal(size=(4, 4)) * 0.5 for _ in range(3)]
X = RNG.normal(size=4)
V = RNG.normal(size=4)

inner = ft.jit(lambda x, w: fnp.sin(ft.checkpoint_name(w @ x, "product")))


@ft.custom_jvp
def gentle(x):
    return fnp.tanh(x)


gentle.defjvps(lambda t, out, x: t * (1 - out * out))


def network(w, x):
    """A function with products, names, nested jit, custom rules, a branch and a closed-over array."""
    x = inner(x, w[0])
    x = ft.checkpoint_name(gentle(w[1] @ x), "hidden") * fnp.exp(0.1 * x) + V
    x = lax.cond(x[0] > 0, lambda x: fnp.cos(w[2] @ x), lambda x: x * x, x)
    return fnp.sum(x * fnp.sin(x))


POLICIES = {
    "default": None,
    "nothing": policies.nothing_saveable,
    "everything": policies.everything_saveable,
    "dots": policies.dots_saveable,
    "dots without batch": policies.dots_with_no_batch_dims_saveable,
    "only hidden": policies.save_only_these_names("hidden"),
    "all names but product": policies.save_any_names_but_these("product"),
    "all but product": policies.save_anything_except_these_names("product"),
    "both": policies.save_from_both_policies(policies.save_only_these_names("hidden"), policies.dots_saveable),
    "sines": lambda prim, *avals, **params: prim.name == "sin" and avals[0].size > 1,
    "within nothing": policies.within(0),
    "within a little": policies.within(100),
    "within a lot": policies.within(1 << 30),
}

NESTS = {
    "value": lambda f: f,
    "grad": lambda f: ft.grad(f, (0, 1)),
    "jvp": lambda f: lambda w, x: ft.jvp(lambda x: f(w, x), (x,), (V,)),
    "linearize": lambda f: lambda w, x: ft.linearize(lambda x: f(w, x), x)[1](V),
    "grad of jit": lambda f: ft.grad(ft.jit(f), (0, 1)),
    "hessian": lambda f: ft.hessian(f, 1),
    "grad of grad": lambda f: ft.grad(lambda w, x: fnp.sum(ft.grad(f, 1)(w, x) ** 2), (0, 1)),
    "vmap": lambda f: lambda w, x: ft.vmap(f, (None, 0))(w, np.stack([X, V, X * V])),
    "vmap of grad": lambda f: lambda w, x: ft.vmap(ft.grad(f, (0, 1)), (None, 0))(w, np.stack([V, V * V])),
    "grad of vmap": lambda f: lambda w, x: ft.grad(lambda w: ft.vmap(f, (None, 0))(w, np.stack([X, V])).sum())(w),
}


def same(got, want, rtol=1e-9):
    for g, w in zip(ft.tree.leaves(got), ft.tree.leaves(want), strict=True):
        assert np.asarray(g).dtype == np.asarray(w).dtype
        np.testing.assert_allclose(np.asarray(g), np.asarray(w), rtol=rtol, atol=1e-12)


@pytest.mark.parametrize("nest", NESTS)
def test_checkpoint_is_the_identity(nest):
    # All policies under grad, with one partial evaluation; two of them elsewhere. All run in one program, because
    # compilation takes most of the time.
    chosen = POLICIES if nest == "grad" else ["default", "within a little"]
    checkpointed = [ft.checkpoint(network, policy=POLICIES[name]) for name in chosen]
    want, *found = ft.jit(lambda w, x: [NESTS[nest](f)(w, x) for f in [network, *checkpointed]])(W, X)
    for got in found:
        same(got, want)


def test_outside_of_jit():
    f = ft.checkpoint(network, policy=policies.save_only_these_names("hidden"))
    for nest in ("value", "grad", "jvp"):
        same(NESTS[nest](f)(W, X), ft.jit(NESTS[nest](network))(W, X))


@pytest.mark.parametrize("prevent", [True, False])
def test_checkpoints_in_checkpoints_and_in_jit(prevent):
    part = lambda x, w: ft.checkpoint(lambda x, w: fnp.tanh(w @ fnp.sin(x)), prevent_cse=prevent)(x, w)
    plain = lambda w, x: fnp.sum(fnp.tanh(w[1] @ fnp.sin(fnp.tanh(w[0] @ fnp.sin(x)))) ** 2)
    nested = ft.remat(lambda w, x: fnp.sum(ft.jit(part)(part(x, w[0]), w[1]) ** 2), prevent_cse=prevent)
    got, want = ft.jit(lambda w, x: [[NESTS[nest](f)(w, x) for nest in NESTS] for f in (nested, plain)])(W, X)
    same(got, want)


# ------------------------------------------------------------------------------------------------------- recomputation
def count(jaxpr, name):
    """Return the number of equations of a primitive in a jaxpr and its inner jaxprs."""
    found = 0
    for e in jaxpr.equations:
        found += e.prim.name == name
        for value in e.params.values():
            for held in value if isinstance(value, tuple) else (value,):
                found += count(held, name) if isinstance(held, Jaxpr) else 0
    return found


def chain(x, w):
    for _ in range(5):
        x = fnp.sin(ft.checkpoint_name(fnp.dot(w, x), "product"))
    return fnp.sum(x)


@pytest.mark.parametrize(
    ("policy", "sines", "products"),
    [
        ("everything", 5, 5),
        ("dots", 9, 5),  # the last sine is never needed again
        ("only product", 9, 5),
        ("sines", 5, 10),
        ("nothing", 9, 10),
        ("within a lot", 9, 5),
    ],
)
def test_what_is_computed_again(policy, sines, products):
    chosen = {**POLICIES, "only product": policies.save_only_these_names("product")}[policy]
    jaxpr = ft.make_jaxpr(ft.value_and_grad(ft.checkpoint(chain, policy=chosen), (0, 1)))(X, W[0])
    assert count(jaxpr, "sin") == sines
    assert count(jaxpr, "dot_general") == products + 10, "two more to pull each cotangent back"


def test_functions_called_often_stay_calls():
    """The derivative of an unrolled loop is as long as the loop, whatever its step."""

    @ft.jit
    def step(x):
        for _ in range(10):
            x = fnp.sin(x) + 0.1 * x
        return x

    def loop(x):
        for _ in range(12):
            x = step(x)
        return fnp.sum(x)

    mapped = lambda f: ft.value_and_grad(lambda x: fnp.sum(ft.vmap(f)(x)))
    x = np.linspace(-1, 1, 6, dtype=np.float32).reshape(2, 3)
    jaxpr = ft.make_jaxpr(mapped(ft.checkpoint(loop)))(x)
    calls = sum(len(e.params["jaxpr"].equations) for e in jaxpr.equations if e.prim.name == "checkpoint")
    assert 24 <= calls <= 60
    for nest in (mapped, lambda f: ft.jit(mapped(f)), lambda f: ft.hessian(lambda x: f(x.reshape(-1)))):
        same(nest(ft.checkpoint(loop))(x), nest(loop)(x))


def test_xla_is_kept_from_undoing_it():
    for prevent in (True, False):
        f = ft.value_and_grad(ft.checkpoint(lambda x: fnp.sum(fnp.sin(fnp.sin(fnp.sin(x)))), prevent_cse=prevent))
        lowered = ft.jit(f).lower(np.ones(64, np.float32))
        compiled = lowered.compile().as_text()
        if ft.default_backend() == "cpu":
            assert ("conditional(" in compiled) == prevent, "XLA drops barriers, but cannot know which branch is taken"
        else:
            assert ("optimization_barrier" in lowered.as_text()) == prevent
        assert compiled.count(" sine(") >= (5 if prevent else 3)


def test_budgets_trade_memory_for_work():
    """Memory grows as the square root of the depth, for at most one more run: 24 layers need that of some 12."""
    width, batch, layers = 32, 256, 24
    weights = [np.eye(width, dtype=np.float32)] * layers
    x = np.ones((batch, width), np.float32)
    unit = x.nbytes

    def deep(weights, x):
        for w in weights:
            x = fnp.tanh(x @ w)
        return fnp.sum(x * x)

    def measured(f):
        compiled = ft.jit(ft.grad(f)).lower(weights, x).compile()
        return compiled.memory_analysis()["temp"] / unit, compiled.cost_analysis()["flops"]

    memory, work = measured(deep)
    assert memory > layers
    for budget, most in [(30, layers + 4), (16, 20), (0, 14)]:
        smaller, more = measured(ft.checkpoint(deep, policy=policies.within(budget * unit)))
        assert smaller <= most + 0.1  # plus a few scalars
        assert more <= work * 4 / 3
    by_hand = lambda weights, x: fnp.sum(sections(weights, x) ** 2)

    def sections(weights, x):
        for k in range(0, layers, 6):
            x = ft.checkpoint(lambda x, ws: [x := fnp.tanh(x @ w) for w in ws][-1])(x, weights[k : k + 6])
        return x

    smaller, more = measured(by_hand)
    assert smaller <= 14 and more <= work * 4 / 3 * 1.02


def test_scan_keeps_carries_alone():
    def total(checkpointed, x, w):
        step = lambda x, _: (fnp.sin(fnp.cos(fnp.sin(w @ x))), None)
        return fnp.sum(lax.scan(ft.checkpoint(step, prevent_cse=False) if checkpointed else step, x, None, length=7)[0])

    def stacked(checkpointed):
        jaxpr = ft.make_jaxpr(ft.grad(lambda x: total(checkpointed, x, W[0])))(X)
        forward = next(e for e in jaxpr.equations if e.prim.name == "scan")
        return sum(v.aval.shape == (7, 4) for v in forward.outputs)

    assert stacked(True) == 1 < stacked(False)
    for nest in (ft.grad, lambda f: ft.grad(lambda x: ft.grad(f)(x).sum()), lambda f: ft.jit(ft.grad(f))):
        same(nest(lambda x: total(True, x, W[0]))(X), nest(lambda x: total(False, x, W[0]))(X))


def test_effects_happen_once():
    seen = []

    def f(x):
        y = fnp.sin(x)
        ft.debug.callback(lambda a: seen.append(float(a)), y)
        z = ft.io_callback(
            lambda a: (seen.append("io"), a)[1], ft.ShapeDtypeStruct((), "float32"), lax.stop_gradient(y)
        )
        return fnp.sin(y) * z

    for wrap in (lambda f: f, ft.jit):
        seen.clear()
        wrap(ft.grad(ft.checkpoint(f)))(0.0)
        ft.effects_barrier()
        assert sorted(map(str, seen)) == ["0.0", "io"]


# ---------------------------------------------------------------------------------------------------------- interface
def test_arguments():
    f = ft.checkpoint(lambda x, how, *, scale=1.0: scale * (fnp.sin(x) if how == "sin" else x * x), static_argnums=1)
    same(f(X, "sin"), np.sin(X))
    same(ft.grad(lambda x: f(x, "square", scale=3.0).sum())(X), 6 * X)
    named = ft.checkpoint(lambda x, *, how: fnp.sin(x) if how == "sin" else x * x, static_argnames="how")
    same(ft.grad(lambda x: named(x, how="square").sum())(X), 2 * X)
    same(ft.checkpoint(static_argnames="how")(lambda x, how: x if how else -x)(X, how=False), -X)
    decorated = ft.checkpoint(policy=policies.dots_saveable)(lambda t: {"y": t["x"] * 2})
    same(decorated({"x": X, "n": None})["y"], 2 * X)
    tree = ft.checkpoint_name({"a": X, "b": (W[0], 2)}, "all")
    same(tree["b"][0], W[0])


def test_static_values_that_are_not_hashable():
    f = ft.checkpoint(lambda how, x: fnp.sin(x) * how["scale"], static_argnums=0)
    for scale in (2.0, 3.0):
        same(f({"scale": scale}, X), np.sin(X) * scale)
        same(ft.grad(lambda x, how: f(how, x).sum())(X, {"scale": scale}), np.cos(X) * scale)


def test_kept_functions_are_traced_once():
    calls = []

    def f(x):
        calls.append(1)
        return fnp.sum(fnp.sin(fnp.sin(x)))

    g = ft.grad(ft.checkpoint(f))
    x = ft.device_put(X)
    for _ in range(2):
        g(x)
    before = counters.snapshot()
    g(x), ft.grad(ft.checkpoint(f))(x)
    after = counters.snapshot()
    assert len(calls) == 1
    assert all(after[c] == before[c] for c in ("traces", "modules", "compiles", "cache_hits"))


def test_saved_residuals_as_text(capsys):
    def f(w, x):
        return fnp.sin(ft.checkpoint_name(fnp.sin(w @ x), "inner"))  # the line

    def printed(f):
        ft.print_saved_residuals(f, W[0], X)
        return capsys.readouterr().out.splitlines()

    line = f"test_checkpoint.py:{f.__code__.co_firstlineno + 1}"
    plain = printed(f)
    assert "f64[4,4] from the argument args[0]" in plain
    assert sum("cos" in row and line in row for row in plain) == 2
    arguments = ["f64[4,4] from the argument args[0]", "f64[4] from the argument args[1]"]
    assert sorted(printed(ft.checkpoint(f))) == sorted(arguments)
    kept = printed(ft.checkpoint(f, policy=policies.save_only_these_names("inner")))
    assert any("named 'inner'" in row and line in row for row in kept)


def test_policies_made_alike_are_equal():
    assert policies.save_only_these_names("a", "b") == policies.save_only_these_names("b", "a")
    assert policies.within(10) == policies.within(10.0) != policies.within(11)


def test_messages():
    for wrong, text in [
        (lambda: ft.checkpoint(3), "takes a function"),
        (lambda: ft.checkpoint(network, policy="dots"), "'dots'"),
        (lambda: ft.checkpoint_name(X, 3), "got 3"),
        (lambda: policies.within(-1), "-1"),
        (lambda: policies.save_only_these_names(["a"]), "['a']"),
    ]:
        with pytest.raises(ft.errors.ArgumentError) as caught:
            wrong()
        assert text in str(caught.value)
    with pytest.raises(ft.errors.ConcretizationError, match=r"checkpoint\(<lambda>\)"):
        ft.checkpoint(lambda x: x if x > 0 else -x)(1.0)


def offloading(*names, saved=(), source="device", target="pinned_host"):
    return policies.save_and_offload_only_these_names(
        names_which_can_be_saved=list(saved),
        names_which_can_be_offloaded=list(names),
        offload_src=source,
        offload_dst=target,
    )


OFFLOAD = {"names": offloading("hidden"), "dots": policies.offload_dot_with_no_batch_dims("device", "pinned_host")}


def deep(policy, scanned):
    def loss(w, x):
        layer = ft.checkpoint(lambda x, _: (fnp.tanh(ft.checkpoint_name(x @ w, "hidden")), None), policy=policy)
        for _ in range(0 if scanned else 3):
            x, _ = layer(x, None)
        return (ft.lax.scan(layer, x, None, length=3)[0] ** 2).sum() if scanned else (x**2).sum()

    return loss


@pytest.mark.parametrize("scanned", [False, True])
@pytest.mark.parametrize("policy", OFFLOAD.values(), ids=OFFLOAD)
def test_values_kept_in_other_memory(policy, scanned):
    rng = np.random.default_rng(0)
    w, x = rng.standard_normal((4, 4)), rng.standard_normal((2, 4))
    loss = deep(policy, scanned)
    expected = np.zeros_like(w)
    for at in np.ndindex(w.shape):  # by central differences, in NumPy
        for sign in (1, -1):
            moved, h = w.copy(), x
            moved[at] += sign * 1e-6
            for _ in range(3):
                h = np.tanh(h @ moved)
            expected[at] += sign * (h**2).sum() / 2e-6
    for gradient in (ft.grad(loss), ft.jit(ft.grad(loss))):
        np.testing.assert_allclose(gradient(w, x), expected, rtol=1e-7, atol=1e-8)
    second = ft.jit(ft.hessian(loss))(w, x)
    np.testing.assert_allclose(second, ft.hessian(deep(None, scanned))(w, x), rtol=1e-9, atol=1e-10)
    each = ft.vmap(ft.grad(loss), in_axes=(None, 0))
    np.testing.assert_allclose(ft.jit(each)(w, x[:, None]).sum(0), expected, rtol=1e-7, atol=1e-8)


@pytest.mark.parametrize("policy", OFFLOAD.values(), ids=OFFLOAD)
def test_a_gpu_program_moves_them(policy):
    """The program moves the values to the other memory and back, once each; XLA for CPUs has one memory."""
    arguments = [ft.ShapeDtypeStruct((4, 4), np.float32)] * 2
    jaxpr = ft.jit(ft.grad(deep(policy, True))).trace(*arguments).jaxpr
    texts = {platform: str(lower(jaxpr, name="f", platform=platform).module) for platform in ("gpu", "cpu")}
    for kind in ("pinned_host", "device"):
        assert texts["gpu"].count(f'_xla_buffer_placement = "{kind}"') == 1
    assert "annotate_device_placement" not in texts["cpu"]


def test_policies_of_other_memory_that_cannot_be():
    assert offloading("a", "b") == offloading("b", "a") != offloading("a", saved="b")
    assert policies.save_from_both_policies(offloading("a"), policies.dots_saveable)(
        name, name="a"
    ) == policies.Offload("device", "pinned_host")
    with pytest.raises(
        ft.errors.ArgumentError, match="offload_dst='pinned_hots' is not a kind of memory; did you mean 'pinned_host"
    ):
        offloading("a", target="pinned_hots")
    with pytest.raises(ft.errors.ArgumentError, match="b: to be saved and to be offloaded"):
        offloading("a", "b", saved="b")
    with pytest.raises(ft.errors.ArgumentError, match="offload_src=3 is not a kind of memory"):
        policies.offload_dot_with_no_batch_dims(3, "pinned_host")
