"""Loss scaling: the state is data; an overflow skips the step and shrinks the scale, steps without one grow it."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import amp
from functorch_like.sharding import PartitionSpec as P

X = fnp.asarray(np.linspace(-1, 1, 12).reshape(4, 3), "float32")
W = fnp.asarray([0.5, -0.25, 0.125])


def loss(w, x=X):
    return fnp.mean((x @ w) ** 2)


def exact(w=W, x=X):
    w, x = np.asarray(w, "float64"), np.asarray(x, "float64")
    return np.mean((x @ w) ** 2), 2 * x.T @ (x @ w) / len(x)


def test_values_and_gradients_are_not_scaled():
    for scale in (1.0, 2.0**10):
        out = ft.jit(amp.scaled_value_and_grad(loss))(amp.loss_scale(scale), W)
        value, gradient = exact()
        np.testing.assert_allclose(out.value, value, rtol=1e-6)
        np.testing.assert_allclose(out.grads, gradient, rtol=1e-6)
        assert bool(out.finite)
        assert (out.state.scale.item(), out.state.good_steps.item()) == (scale, 1)


def test_gradients_that_underflow_in_float16_do_not_when_scaled():
    tiny = lambda w: fnp.mean((X @ w) ** 2) * 1e-7
    plain = ft.grad(ft.autocast(tiny, dtype="float16"))(W)
    out = ft.jit(amp.scaled_value_and_grad(ft.autocast(tiny, dtype="float16")))(amp.loss_scale(2.0**20), W)
    want = exact()[1] * 1e-7
    assert np.abs(np.asarray(plain) - want).max() > 0.05 * np.abs(want).max()
    np.testing.assert_allclose(out.grads, want, rtol=4e-3)


def test_float16_recovers_from_a_scale_that_overflows():
    step = ft.jit(amp.scaled_value_and_grad(ft.autocast(lambda w: loss(w, X * 30), dtype="float16")))
    state, scales = amp.loss_scale(2.0**24), []
    for _ in range(24):
        out = step(state, W)
        scales.append((state.scale.item(), bool(out.finite)))
        state = out.state
        if out.finite:
            break
    overflown = [s for s, finite in scales if not finite]
    assert overflown == [2.0 ** (24 - k) for k in range(len(overflown))]
    assert len(overflown) > 3
    np.testing.assert_allclose(out.grads, exact(W, X * 30)[1], rtol=4e-3)


def test_training_from_a_scale_that_overflows_ends_where_float32_does():
    scaled = amp.scaled_value_and_grad(ft.autocast(loss, dtype="float16"))

    def step(carry, _):
        w, state = carry
        out = scaled(state, w)
        return (amp.apply_if_finite(out.finite, w - 0.5 * out.grads, w), out.state), out.finite

    (w, state), finite = ft.jit(lambda c: ft.lax.scan(step, c, None, length=100))((W, amp.loss_scale(2.0**24)))
    assert not bool(finite[0]) and bool(finite[-1])
    assert 0 < state.scale.item() < 2.0**24
    np.testing.assert_allclose(loss(w), 0, atol=1e-4)


def test_the_state_machine():
    """The rules, by hand: grow after three finite steps, shrink at each overflow, stay in bounds."""
    overflow = lambda w, bad: fnp.sum(w) * fnp.where(bad, fnp.inf, 1.0)
    step = ft.jit(
        amp.scaled_value_and_grad(overflow, growth_interval=3, growth=4.0, shrink=0.25, smallest=1.0, largest=128.0)
    )
    state, scale, good = amp.loss_scale(8.0), 8.0, 0
    for bad in [0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 0]:
        out = step(state, W, bool(bad))
        assert bool(out.finite) is not bool(bad)
        state = out.state
        if bad:
            scale, good = max(scale * 0.25, 1.0), 0
        elif good + 1 >= 3:
            scale, good = min(scale * 4, 128.0), 0
        else:
            good += 1
        assert (state.scale.item(), state.good_steps.item()) == (scale, good)


def test_static_scaling():
    step = amp.scaled_value_and_grad(lambda w: fnp.sum(w) * fnp.inf, growth_interval=None)
    out = step(amp.loss_scale(64.0), W)
    assert (out.state.scale.item(), out.state.good_steps.item(), bool(out.finite)) == (64.0, 0, False)


def test_aux_argnums_and_keywords():
    f = lambda x, w, *, bias: (loss(w["w"], x) + bias, {"n": x.shape[0]})
    out = amp.scaled_value_and_grad(f, argnums=(1,), has_aux=True)(amp.loss_scale(), X, {"w": W}, bias=1.0)
    assert out.value[1] == {"n": 4}
    np.testing.assert_allclose(out.value[0], exact()[0] + 1, rtol=1e-6)
    np.testing.assert_allclose(out.grads[0]["w"], exact()[1], rtol=1e-5)


def test_a_narrow_loss_and_narrow_parameters():
    out = amp.scaled_value_and_grad(lambda w: loss(w, X.astype("float16")))(
        amp.loss_scale(2.0**10), W.astype("float16")
    )
    assert (out.value.dtype.name, out.grads.dtype.name) == ("float16", "float16")
    np.testing.assert_allclose(out.grads.astype("float32"), exact()[1], rtol=2e-2)
    far = amp.scaled_value_and_grad(lambda w: loss(w, X.astype("float16")))(
        amp.loss_scale(2.0**24), W.astype("float16")
    )
    assert not bool(far.finite)


def test_members_of_a_named_axis_agree():
    bad = fnp.asarray([1.0, fnp.inf])
    f = amp.scaled_value_and_grad(lambda w, b: fnp.sum(w) * b, axis_name="i")
    out = ft.vmap(f, in_axes=(None, None, 0), axis_name="i")(amp.loss_scale(), W, bad)
    assert out.finite.tolist() == [False, False]
    mesh = ft.make_mesh((1,), ("i",))
    mapped = ft.shard_map(
        lambda w: f(amp.loss_scale(), w, 1.0).finite, mesh=mesh, in_specs=P("i"), out_specs=P(), check_vma=False
    )
    assert bool(mapped(W))


def test_vmap_over_states():
    states = ft.tree.map(lambda a, b: fnp.stack([a, b]), amp.loss_scale(2.0), amp.loss_scale(32.0))
    out = ft.vmap(amp.scaled_value_and_grad(loss), in_axes=(0, None))(states, W)
    np.testing.assert_allclose(out.grads, np.stack([exact()[1]] * 2), rtol=1e-5)
    assert out.state.scale.tolist() == [2.0, 32.0]


def test_apply_if_finite_keeps_everything():
    new, old = {"w": fnp.ones(2), "n": fnp.asarray(3)}, {"w": fnp.zeros(2), "n": fnp.asarray(2)}
    assert ft.tree.map(lambda x: x.tolist(), amp.apply_if_finite(fnp.asarray(True), new, old)) == {"w": [1, 1], "n": 3}
    assert ft.tree.map(lambda x: x.tolist(), amp.apply_if_finite(fnp.asarray(False), new, old)) == {"w": [0, 0], "n": 2}
    with pytest.raises(ft.errors.TreeError, match="structure"):
        amp.apply_if_finite(fnp.asarray(True), new, {"w": fnp.ones(2)})


@pytest.mark.parametrize(
    ("make", "text"),
    [
        (lambda: amp.scaled_value_and_grad(3), "takes a function"),
        (lambda: amp.scaled_value_and_grad(loss, growth=0.5), "growth"),
        (lambda: amp.scaled_value_and_grad(loss, shrink=2.0), "shrink"),
        (lambda: amp.scaled_value_and_grad(loss, growth_interval=0), "growth_interval"),
        (lambda: amp.scaled_value_and_grad(loss, smallest=4.0, largest=2.0), "smallest"),
        (lambda: amp.scaled_value_and_grad(loss, argnums=-1), "argnums"),
        (lambda: amp.scaled_value_and_grad(loss)(W), "begin with loss_scale"),
        (lambda: amp.loss_scale(0.0), "initial loss scale"),
        (lambda: amp.loss_scale(float("nan")), "initial loss scale"),
    ],
)
def test_errors(make, text):
    with pytest.raises(ft.errors.ArgumentError, match=text):
        make()


def test_positions_may_be_numbers_of_numpy():
    out = amp.scaled_value_and_grad(lambda x, y: x * y, argnums=np.int64(1))(amp.loss_scale(), 2.0, 3.0)
    assert float(out.grads) == 2.0
