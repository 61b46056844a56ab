"""torch.func's helpers, and its compositions: per-sample gradients, ensembles, MAML, tangent kernels; against NumPy."""

import dataclasses

import numpy as np
import pytest
from support.messages import refusal, says

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, nn

RNG = np.random.default_rng(7)
XS, YS = RNG.normal(size=(6, 3)), RNG.normal(size=(6, 2))
PARAMS = {
    "hidden": {"w": RNG.normal(size=(3, 4)), "b": RNG.normal(size=4)},
    "out": {"w": RNG.normal(size=(4, 2)), "b": RNG.normal(size=2)},
}


def close(got, want, rtol=1e-9):
    np.testing.assert_allclose(np.asarray(got), want, rtol=rtol, atol=1e-11)


def predict(p, x):
    h = fnp.tanh(x @ p["hidden"]["w"] + p["hidden"]["b"])
    return h @ p["out"]["w"] + p["out"]["b"]


def loss(p, x, y):
    return fnp.mean((predict(p, x) - y) ** 2)


def numpy_gradients(p, x, y):
    """Return the gradients of the loss for one example, derived by hand."""
    h = np.tanh(x @ p["hidden"]["w"] + p["hidden"]["b"])
    d = 2 * (h @ p["out"]["w"] + p["out"]["b"] - y) / y.size
    e = (1 - h**2) * (p["out"]["w"] @ d)
    return {"hidden": {"w": np.outer(x, e), "b": e}, "out": {"w": np.outer(h, d), "b": d}}


# --------------------------------------------------------------------------------------------------- functional_call
@ft.tree.register_dataclass
@dataclasses.dataclass
class Model:
    layers: list
    scale: object
    kind: str = dataclasses.field(default="tanh", metadata={"static": True})

    def __call__(self, x, shift=0.0):
        for w in self.layers:
            x = getattr(fnp, self.kind)(x @ w)
        return x * self.scale + shift


def model():
    return Model(
        [fnp.asarray(RNG.normal(size=(3, 3))), fnp.asarray(RNG.normal(size=(3, 3)))], fnp.asarray(np.float64(2))
    )


def test_a_function_is_called_with_its_parameters():
    close(ft.functional_call(predict, PARAMS, (XS,)), predict(PARAMS, XS))
    close(ft.functional_call(predict, PARAMS, XS), predict(PARAMS, XS))
    close(ft.functional_call(predict, PARAMS, (), {"x": XS}), predict(PARAMS, XS))


def test_some_parameters_by_name():
    other = np.ones(2)
    want = predict({**PARAMS, "out": {"w": PARAMS["out"]["w"], "b": other}}, XS)
    close(ft.functional_call(predict, {"out.b": other}, XS, defaults=PARAMS), want)
    close(
        ft.functional_call(predict, ({"out.b": other}, {"hidden.b": PARAMS["hidden"]["b"]}), XS, defaults=PARAMS), want
    )
    close(ft.functional_call(predict, PARAMS, XS, defaults=PARAMS), predict(PARAMS, XS))
    close(ft.functional_call(predict, {}, XS, defaults=PARAMS), predict(PARAMS, XS))


def test_a_model_that_is_a_pytree():
    m = model()
    assert list(ft.named_parameters(m)) == ["layers.0", "layers.1", "scale"]
    want = np.tanh(np.tanh(XS @ np.asarray(m.layers[0])) @ np.asarray(m.layers[1]))
    close(ft.functional_call(m, {"scale": 3.0}, XS, {"shift": 1.0}), want * 3 + 1)
    close(ft.functional_call(m, ft.tree.map(lambda x: x, m), XS), want * 2)
    close(ft.grad(lambda p: ft.functional_call(m, p, XS).sum())({"scale": np.float64(3)})["scale"], want.sum())
    named = ft.named_parameters(m)
    slopes = ft.jit(ft.grad(lambda p: ft.functional_call(m, p, XS, strict=True).sum()))(named)
    assert list(slopes) == list(named)
    close(slopes["scale"], want.sum())


def test_tied_weights_follow_each_other():
    m = model()
    m.layers[1] = m.layers[0]
    assert list(ft.named_parameters(m)) == ["layers.0", "scale"]
    w = np.eye(3) / 2
    close(ft.functional_call(m, {"layers.0": w}, XS), 2 * np.tanh(np.tanh(XS / 2) / 2))
    close(ft.functional_call(m, {"layers.1": w}, XS), 2 * np.tanh(np.tanh(XS / 2) / 2))
    once = np.tanh(XS @ np.asarray(m.layers[0]))
    close(ft.functional_call(m, {"layers.1": w}, XS, tie_weights=False), 2 * np.tanh(once / 2))
    tied = ft.grad(lambda w: ft.functional_call(m, {"layers.0": w}, XS).sum())(w)
    apart = ft.grad(
        lambda a, b: ft.functional_call(m, {"layers.0": a, "layers.1": b}, XS, tie_weights=False).sum(), (0, 1)
    )
    close(tied, sum(map(np.asarray, apart(w, w))))
    message = refusal(lambda: ft.functional_call(m, {"layers.0": w, "layers.1": 2 * w}, XS), errors.ArgumentError)
    says(message.head, "'layers.0' and 'layers.1' are one array")
    says(message.remedy, "tie_weights=False")


def test_names_that_do_not_fit():
    message = refusal(lambda: ft.functional_call(predict, {"out.bias": 1.0}, XS, defaults=PARAMS), errors.ArgumentError)
    says(message.head, "'out.bias'")
    says(message.remedy, "'out.b'")
    message = refusal(lambda: ft.functional_call(model(), {"scale": 1.0}, XS, strict=True), errors.ArgumentError)
    says(message.head, "'layers.0', 'layers.1'")
    message = refusal(lambda: ft.functional_call(model(), [1.0], XS), errors.TreeError)
    says(message.remedy, "named_parameters")
    message = refusal(lambda: ft.functional_call(model(), ({"scale": 1.0}, {"scale": 2.0}), XS), errors.ArgumentError)
    says(message.head, "two values for 'scale'")
    message = refusal(lambda: ft.functional_call(model(), {}, XS, defaults=PARAMS), errors.ArgumentError)
    says(message.head, "Model")


# ---------------------------------------------------------------------------------------------------------- ensembles
def test_an_ensemble_is_mapped_over_its_stacked_states():
    states = [ft.tree.map(lambda x, k=k: x + 0.1 * k, PARAMS) for k in range(3)]
    stacked = ft.stack_state(states)
    each = [np.asarray(predict(s, XS)) for s in states]
    close(ft.vmap(predict, in_axes=(0, None))(stacked, XS), np.stack(each))
    close(ft.jit(ft.vmap(predict))(stacked, XS.reshape(3, 2, 3))[1], predict(states[1], XS.reshape(3, 2, 3)[1]))
    for got, want in zip(ft.unstack_state(stacked), states, strict=True):
        ft.tree.map(close, got, want)
    m = model()
    (one,) = ft.unstack_state(ft.stack_state([m]))
    assert isinstance(one, Model) and one.kind == "tanh" and one.scale.shape == ()
    assert ft.stack_state([1.0, 2.0]).tolist() == [1, 2]


def test_states_that_do_not_stack():
    message = refusal(lambda: ft.stack_state([{"w": XS}, {"v": XS}]), errors.TreeError)
    says(message.head, "stack_state", "state 1")
    message = refusal(lambda: ft.stack_state([{"w": XS}, {"w": XS[:2]}]), errors.ShapeError)
    says(message.head, "['w']", "f64[6,3] in state 0", "f64[2,3] in state 1")
    message = refusal(lambda: ft.stack_state([]), errors.ArgumentError)
    says(message.head, "at least one")
    message = refusal(lambda: ft.unstack_state({"a": XS, "b": YS[:2]}), errors.ShapeError)
    says(message.head, "['a']: f64[6,3]", "['b']: f64[2,2]")
    message = refusal(lambda: ft.unstack_state({"a": 1.0}), errors.ShapeError)
    says(message.head, "leading")


# ------------------------------------------------------------------------------------------------------- functionalize
def test_functionalize_is_the_identity():
    f = lambda x: x.at[0].set(0.0) + x
    assert ft.functionalize(f) is f
    assert ft.functionalize(f, remove="mutations_and_views") is f
    says(refusal(lambda: ft.functionalize(f, remove="views"), errors.ArgumentError).head, "'views'")
    says(refusal(lambda: ft.functionalize(3), errors.ArgumentError).head, "takes a function")


# -------------------------------------------------------------------------------------------- torch.func's compositions
@pytest.mark.parametrize("chunk", [None, 4])
def test_per_sample_gradients(chunk):
    each = ft.jit(ft.vmap(ft.grad(loss), in_dims=(None, 0, 0), chunk_size=chunk))(PARAMS, XS, YS)
    for k in range(len(XS)):
        ft.tree.map(lambda g, want, k=k: close(g[k], want), each, numpy_gradients(PARAMS, XS[k], YS[k]))
    mean = ft.jit(ft.grad(loss))(PARAMS, XS, YS)
    ft.tree.map(lambda g, m: close(np.asarray(g).mean(0), m), each, mean)
    slopes, values = ft.jit(ft.vmap(ft.grad_and_value(loss), in_dims=(None, 0, 0)))(PARAMS, XS, YS)
    close(np.mean(values), loss(PARAMS, XS, YS))
    ft.tree.map(close, slopes, each)


def test_jacobians_three_ways():
    w, b, x = RNG.normal(size=(4, 3)), RNG.normal(size=4), XS[0]
    layer = lambda w, b, x: fnp.tanh(w @ x + b)
    s = 1 - np.tanh(w @ x + b) ** 2
    _, pull = ft.vjp(lambda x: layer(w, b, x), x)
    rows = np.stack([np.asarray(pull(e)[0]) for e in np.eye(4)])
    for got in (rows, ft.vmap(pull)(np.eye(4))[0], ft.jacrev(layer, 2)(w, b, x), ft.jacfwd(layer, 2)(w, b, x)):
        close(got, s[:, None] * w)
    by_w, by_x = ft.jacrev(layer, argnums=(0, 2), chunk_size=2)(w, b, x)
    close(by_w, np.einsum("i,ij,k->ijk", s, np.eye(4), x))
    close(by_x, s[:, None] * w)
    batched = ft.vmap(ft.jacrev(layer, 2), in_dims=(None, None, 0))(w, b, XS)
    close(batched, (1 - np.tanh(XS @ w.T + b) ** 2)[:, :, None] * w)
    trace = ft.jit(ft.vmap(lambda x: fnp.trace(ft.hessian(lambda x: fnp.sum(fnp.sin(x)))(x))))(XS)
    close(trace, -np.sin(XS).sum(1))


def test_linearize_once_and_push_often():
    f = lambda p: predict(p, XS)
    _, push = ft.linearize(f, PARAMS)
    for k in range(3):
        v = ft.tree.map(lambda x, k=k: np.full_like(x, k + 0.5), PARAMS)
        close(push(v), ft.jvp(f, (PARAMS,), (v,))[1])


def test_an_inner_loop_of_maml_is_differentiated_through():
    """One step of gradient descent inside the loss (Finn et al., 2017), by hand for a line through the origin."""
    rate = 0.1

    def adapted(slope, x, y):
        inner = lambda a: fnp.mean((a * x - y) ** 2)
        return slope - rate * ft.grad(inner)(slope)

    def task_loss(slope, x1, y1, x2, y2):
        return fnp.mean((adapted(slope, x1, y1) * x2 - y2) ** 2)

    def outer(slope, tasks):
        return fnp.mean(ft.vmap(task_loss, in_dims=(None, 0, 0, 0, 0))(slope, *tasks))

    tasks = tuple(RNG.normal(size=(5, 8)) for _ in range(4))
    slope = np.float64(0.7)
    x1, y1, x2, y2 = tasks
    moved = slope - rate * 2 * np.mean((slope * x1 - y1) * x1, 1)
    speed = 1 - rate * 2 * np.mean(x1 * x1, 1)
    want = np.mean(2 * np.mean((moved[:, None] * x2 - y2) * x2, 1) * speed)
    close(ft.jit(ft.grad(outer))(slope, tasks), want)


def test_tangent_kernels():
    """The empirical neural tangent kernel J J^T is the same by contracting Jacobians and by products alone."""
    x1, x2 = XS[:4], XS[4:]
    one = lambda p, x: predict(p, x)
    j1, j2 = (ft.jit(ft.vmap(ft.jacrev(one), in_dims=(None, 0)))(PARAMS, x) for x in (x1, x2))
    flat = lambda j: np.concatenate([np.asarray(a).reshape(*a.shape[:2], -1) for a in ft.tree.leaves(j)], -1)
    contracted = np.einsum("nof,mpf->nmop", flat(j1), flat(j2))

    def product(a, b):
        _, pull = ft.vjp(lambda p: one(p, b), PARAMS)
        push = lambda ct: ft.jvp(lambda p: one(p, a), (PARAMS,), pull(ct))[1]
        return ft.vmap(push, out_dims=1)(np.eye(2))

    kernel = ft.jit(ft.vmap(ft.vmap(product, (None, 0)), (0, None)))
    close(kernel(x1, x2), contracted)
    row = lambda x: np.concatenate([np.ravel(g) for g in ft.tree.leaves(_row(x, 0))])
    by_hand = [[row(p) @ row(q) for q in x2] for p in x1]
    close(contracted[:, :, 0, 0], by_hand)


def _row(x, k):
    """Return the gradient of the k-th output, by hand: that of a loss whose error is the k-th unit vector."""
    out = np.tanh(x @ PARAMS["hidden"]["w"] + PARAMS["hidden"]["b"]) @ PARAMS["out"]["w"] + PARAMS["out"]["b"]
    return numpy_gradients(PARAMS, x, out - np.eye(2)[k])


def test_a_training_step_of_an_ensemble():
    def step(p, x, y):
        return ft.tree.map(lambda v, g: v - 0.1 * g, p, ft.grad(loss)(p, x, y))

    states = [ft.tree.map(lambda x, k=k: x * (k + 1), PARAMS) for k in range(2)]
    got = ft.unstack_state(ft.jit(ft.vmap(step, in_dims=(0, None, None)))(ft.stack_state(states), XS, YS))
    for g, s in zip(got, states, strict=True):
        gradients = [numpy_gradients(s, x, y) for x, y in zip(XS, YS, strict=True)]
        want = ft.tree.map(lambda v, *gs: v - 0.1 * np.mean(gs, 0), s, *gradients)
        ft.tree.map(close, g, want)


def test_gradients_of_a_classifier_with_temperature():
    logits = lambda w, x, t: nn.log_softmax(x @ w / t)
    w, t = RNG.normal(size=(3, 5)), np.float64(1.5)
    by_t = ft.jacfwd(logits, argnums=2)(w, XS[0], t)
    z = XS[0] @ w / t
    soft = np.exp(z) / np.exp(z).sum()
    close(by_t, -(z - soft @ z) / t)
