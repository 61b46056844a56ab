"""A program as a user writes it: type checkers find no errors, and infer the types asserted here."""

from __future__ import annotations

from typing import Any, NamedTuple, assert_type

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import Array, lax, nn, random, scipy
from functorch_like.typing import ArrayLike


class Params(NamedTuple):
    """Weights of a dense layer."""

    w: Array
    b: Array


def init(key: Array, n_in: int, n_out: int) -> Params:
    """Draw weights."""
    first, second = random.split(key)
    return Params(random.normal(first, (n_in, n_out)) * 0.1, random.uniform(second, (n_out,), dtype=fnp.float32))


def predict(params: Params, x: Array) -> Array:
    """Logits."""
    return nn.relu(x @ params.w + params.b)


def loss(params: Params, x: Array, y: Array, *, scale: float = 1.0) -> Array:
    """Cross entropy."""
    logits = predict(params, x)
    return -fnp.mean(fnp.sum(nn.log_softmax(logits, axis=-1) * nn.one_hot(y, logits.shape[-1]), axis=(-1,))) * scale


@ft.jit
def step(params: Params, x: Array, y: Array) -> tuple[Params, Array]:
    """One step of gradient descent."""
    value, slope = ft.value_and_grad(loss)(params, x, y)
    assert_type(slope, Params)
    return Params(params.w - 0.1 * slope.w, params.b - 0.1 * slope.b), value


def smooth(x: ArrayLike, width: int = 3) -> Array:
    """A moving average."""
    kernel = fnp.ones(width) / width
    return fnp.where(fnp.abs(x) > 2, fnp.asarray(x), fnp.convolve(fnp.ravel(x), kernel, mode="same"))


class Model:
    """A class with a jitted method."""

    @ft.jit(static_argnums=0)
    def apply(self, x: Array) -> Array:
        """Double."""
        return x * 2


@ft.custom_jvp
def softened(x: Array) -> Array:
    """A function with a rule of its own."""
    return fnp.log1p(fnp.exp(x))


@softened.defjvp
def softened_rule(primals: tuple[Array], tangents: tuple[Array]) -> tuple[Array, Array]:
    """The jvp rule of `softened`."""
    (x,), (t,) = primals, tangents
    return softened(x), t * nn.sigmoid(x)


params = init(random.key(0), 4, 3)
data: Array = fnp.asarray(np.ones((8, 4), np.float32))
labels = fnp.arange(8) % 3
assert_type(step(params, data, labels), tuple[Params, Array])
print(step.lower(params, data, labels).as_text()[:100], step.trace(params, data, labels).jaxpr)
params, value = step(params, x=data, y=labels)
assert_type(value, Array)
assert_type(value.item(), Any)
assert_type(ft.grad(loss)(params, data, labels, scale=2.0), Params)
assert_type(ft.vmap(predict, in_axes=(None, 0))(params, data), Array)
assert_type(ft.checkpoint(predict)(params, data), Array)
assert_type(ft.jvp(fnp.sin, (data,), (data,)), tuple[Array, Array])
out, pull = ft.vjp(predict, params, data)
print(pull(out)[0], ft.hessian(softened)(data[0]), ft.jacfwd(softened)(data[0]).shape)
total, history = lax.scan(lambda c, x: (c + x.sum(), c * 2), fnp.zeros(()), data)
assert_type(lax.cond(total > 0, fnp.sin, fnp.cos, total), Array)
assert_type(lax.fori_loop(0, 3, lambda i, x: fnp.tanh(x), data), Array)
assert_type(data.at[0, 1:].set(0.0).reshape(2, -1).T.sum(axis=0, keepdims=True), Array)
assert_type(1.0 - data[..., None] ** 2 / data.max(), Array)
assert_type(fnp.where(data > 0, data, 0), Array)
assert_type(data == labels[:, None], Array)
assert_type((data.shape, data.ndim), tuple[tuple[int, ...], int])
print(float(value), np.asarray(data) + 1, [row.mean() for row in data], smooth(1.0), history, smooth(data[0], width=2))
print(Model().apply(data), ft.tree.map(fnp.sin, params).w, ft.device_put(data).device, fnp.linalg.norm(data))

# Training: decorators keep signatures, restored trees have the type of `like`, iterators keep the type of items.
assert_type(ft.autocast(loss)(params, data, labels), Array)


@ft.autocast(dtype="float16")
def narrow(params: Params, x: Array) -> Array:
    """Logits in float16."""
    return predict(params, x)


assert_type(narrow(params, data), Array)
assert_type(ft.cast_floating(params, "bfloat16"), Params)
with ft.autocast(dtype="bfloat16", deny=["conv_general_dilated"]):
    predict(params, data)
scaled = ft.amp.scaled_value_and_grad(loss)(ft.amp.loss_scale(), params, data, labels)
assert_type(scaled.state, ft.amp.LossScale)
assert_type(ft.amp.apply_if_finite(scaled.finite, params, params), Params)
for number, (x, y) in enumerate(ft.progress(ft.data.prefetch(ft.data.batches((data, labels), 4, random.key(0))))):
    assert_type(number, int)
    assert_type(predict(params, x), Array)
    print(y.shape)
assert_type(list(ft.progress([1, 2])), list[int])
step.warmup((params, data, labels), wait=False)


def resumed(manager: ft.io.CheckpointManager, params: Params) -> Params:
    """The last checkpoint."""
    assert_type(ft.io.load("model.safetensors", params), Params)
    assert_type(manager.latest_step(), int | None)
    return manager.restore(like=params)


# Results whose type depends on an option.
assert_type(fnp.unique(labels), Array)
values, counts = fnp.unique(labels, return_counts=True)
assert_type(counts, Array)
assert_type(fnp.average(data, returned=True), tuple[Array, Array])
assert_type(fnp.linspace(0.0, 1.0, retstep=True), tuple[Array, Array])
assert_type(fnp.intersect1d(labels, labels), Array)
assert_type(fnp.atleast_2d(data), Array)
assert_type(fnp.atleast_2d(data, labels), list[Array])
assert_type(fnp.gradient(data, axis=0), Array)
assert_type(fnp.linalg.svd(data, full_matrices=False).S, Array)
assert_type(fnp.linalg.svd(data, compute_uv=False), Array)
assert_type(fnp.linalg.qr(data)[1], Array)
assert_type(fnp.linalg.qr(data, mode="r"), Array)
assert_type(fnp.linalg.slogdet(data[:4]).logabsdet, Array)
assert_type(lax.linalg.svd(data, compute_uv=False), Array)
assert_type(lax.sort(data), Array)
assert_type(lax.sort((labels, labels), num_keys=1), tuple[Array, ...])


def with_logits(params: Params, x: Array) -> tuple[Array, Array]:
    """A loss, and what it was computed from."""
    logits = predict(params, x)
    return logits.sum(), logits


assert_type(ft.grad(with_logits, has_aux=True)(params, data), tuple[Params, Array])
assert_type(ft.value_and_grad(with_logits, has_aux=True)(params, data), tuple[tuple[Array, Array], Params])
assert_type(ft.jacrev(softened)(data[0]), Array)
assert_type(nn.logsumexp(data, axis=0), Array)
assert_type(nn.logsumexp(data, axis=0, return_sign=True), tuple[Array, Array])
assert_type(scipy.linalg.lu(data[:4]), tuple[Array, Array, Array])
assert_type(scipy.linalg.eigh(data[:4] @ data[:4].T, eigvals_only=True), Array)
assert_type(ft.functional_call(predict, params, data), Array)
assert_type(ft.devices()[0].platform, str)
with ft.named_scope("checks"), ft.debug_nans(False), ft.default_device("cpu"):
    assert_type(random.gumbel(random.key(1), (3,)), Array)

# Functions made by factories: functions of arrays, not of lists.
assert_type(fnp.nansum(data, axis=0), Array)
assert_type(fnp.nanargmax(data), Array)
assert_type(fnp.fft.rfft(data, n=8, norm="ortho"), Array)
assert_type(fnp.setdiff1d([1, 2], labels), Array)
assert_type(fnp.hanning(5), Array)
assert_type(fnp.float32(3), Array)
assert_type(lax.reduce_max(data, (0,)), Array)
assert_type(lax.cumsum(data, axis=1, reverse=True), Array)
assert_type(lax.top_k(data, 2), tuple[Array, Array])
assert_type(scipy.stats.norm.logpdf(data, loc=1.0), Array)
assert_type(scipy.special.gammainc(1.0, data), Array)
assert_type(fnp.split(data, 2), list[Array])
assert_type(fnp.concatenate([data, np.ones((1, 4), np.float32)]), Array)
assert_type(fnp.asarray([[1, 2], [3.0, 4.0]]), Array)
assert_type(fnp.vectorize(softened)(data), Array)
assert_type(fnp.histogram(data, bins=4), tuple[Array, Array])


# Loops, and sums over axes with names, keep the types of pytrees.
def added(c: Array, row: Array) -> tuple[Array, Array]:
    """Running sums of columns, and the sum of each row."""
    return c + row, row.sum()


assert_type(lax.scan(added, data[0], data), tuple[Array, Array])
assert_type(lax.map(fnp.sin, data), Array)
assert_type(lax.while_loop(lambda p: p.b.sum() < 1, lambda p: Params(p.w, p.b + 1), params), Params)


def mean_over_devices(p: Params, n: ArrayLike) -> tuple[Params, Array]:
    """Mean of the weights."""
    return lax.pmean(p, "devices"), lax.psum(n, "devices")


def solved(b: Array) -> Array:
    """Half of b."""
    return lax.custom_linear_solve(lambda x: 2.0 * x, b, lambda _, y: y / 2.0, symmetric=True)


print(solved(data[0]), ft.vmap(mean_over_devices, in_axes=(None, 0), axis_name="devices")(params, fnp.arange(2.0)))

# Attributes and methods of meshes and shardings have types.
mesh = ft.make_mesh((1,), ("rows",))
split = ft.sharding.NamedSharding(mesh.local_mesh, ft.sharding.PartitionSpec("rows"))
assert_type(split.with_memory_kind("pinned_host").update(mesh=mesh), ft.sharding.NamedSharding)
assert_type(split.shard_shape(data.shape), tuple[int, ...])
assert_type(data.sharding.is_equivalent_to(split, data.ndim), bool)
