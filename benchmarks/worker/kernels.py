"""Programs of one or a few operations over arrays; each is `(api) -> a function of its inputs`."""

from collections.abc import Callable
from types import SimpleNamespace


def layernorm_grad(api: SimpleNamespace) -> Callable:
    """Layer norm: the gradient with respect to the input, the scale and the shift."""
    fnp = api.fnp

    def loss(x, scale, shift):
        mean = fnp.mean(x, axis=-1, keepdims=True)
        variance = fnp.mean((x - mean) ** 2, axis=-1, keepdims=True)
        return fnp.sum(((x - mean) * api.lax.rsqrt(variance + 1e-5) * scale + shift) ** 3)

    return api.ft.grad(loss, argnums=(0, 1, 2))


def logsumexp_grad(api: SimpleNamespace) -> Callable:
    """The gradient of log-sum-exp over rows."""
    return api.ft.grad(lambda x: api.fnp.sum(api.nn.logsumexp(x, axis=-1) ** 2))


def elementwise(api: SimpleNamespace) -> Callable:
    """A long chain over two large arrays."""
    fnp = api.fnp

    def chain(x, y):
        z = fnp.tanh(x) * fnp.exp(-y * y) + fnp.sqrt(fnp.abs(x * y))
        z = fnp.where(z > 0.5, fnp.log1p(z * z), z / (1 + fnp.abs(y)))
        return fnp.maximum(z, 0.01 * x) + api.nn.sigmoid(y)

    return chain


def dropout(api: SimpleNamespace) -> Callable:
    """Dropout of half of the elements."""
    return lambda x, seed: api.fnp.where(api.random.bernoulli(api.random.PRNGKey(seed), 0.5, x.shape), x * 2, 0)


def distinct(api: SimpleNamespace) -> Callable:
    """Count the distinct values."""

    def count(x):
        x = api.fnp.sort(x)
        return 1 + api.fnp.sum(x[1:] != x[:-1])

    return count


def slices_and_pads(api: SimpleNamespace) -> Callable:
    """Strided slices that are reversed, padded and concatenated."""
    fnp = api.fnp

    def run(x):
        parts = [x[:, ::2, 1::2], x[:, 1::2, ::2][:, ::-1], fnp.pad(x[:, 2:-2:2, 2:-2:2], ((0, 0), (1, 1), (1, 1)))]
        return fnp.concatenate(parts, axis=1) + 1

    return run


def max_pool_grad(api: SimpleNamespace) -> Callable:
    """The gradient of max pooling with windows of 3 x 3 and stride 2."""

    def loss(x):
        pooled = api.lax.reduce_window(x, -api.fnp.inf, api.lax.max, (1, 1, 3, 3), (1, 1, 2, 2), "VALID")
        return api.fnp.sum(pooled**2)

    return api.ft.grad(loss)


PROGRAMS: dict[str, Callable[[SimpleNamespace], Callable]] = {
    each.__name__: each
    for each in (layernorm_grad, logsumexp_grad, elementwise, dropout, distinct, slices_and_pads, max_pool_grad)
} | {
    "softmax": lambda api: lambda x: api.nn.softmax(x),
    "trigonometric": lambda api: lambda x: api.fnp.sin(x) * api.fnp.cos(3 * x) + api.fnp.arctan2(x, x + 2),
    "powers": lambda api: lambda x: x**1.5 + x**-0.5 + x**3,
    "sum_rows": lambda api: lambda x: api.fnp.sum(x, axis=2),
    "sum_middle": lambda api: lambda x: api.fnp.sum(x, axis=1),
    "sum_columns": lambda api: lambda x: api.fnp.sum(x, axis=0),
    "variance": lambda api: lambda x: api.fnp.var(x, axis=-1),
    "argmax": lambda api: lambda x: api.fnp.argmax(x, axis=-1),
    "cumsum": lambda api: lambda x: api.fnp.cumsum(x, axis=1),
    "cumsum_columns": lambda api: lambda x: api.fnp.cumsum(x, axis=0),
    "cumprod": lambda api: lambda x: api.fnp.cumprod(x, axis=1),
    "sort": lambda api: lambda x: api.fnp.sort(x, axis=-1),
    "argsort": lambda api: lambda x: api.fnp.argsort(x, axis=-1),
    "sort_long": lambda api: lambda x: api.fnp.sort(x),
    "top_k": lambda api: lambda x: api.lax.top_k(x, 16),
    "median": lambda api: lambda x: api.fnp.median(x, axis=-1),
    "searchsorted": lambda api: lambda edges, x: api.fnp.searchsorted(edges, x),
    "histogram": lambda api: lambda x: api.fnp.zeros(256, "int32").at[x].add(1),
    "segment_sum": lambda api: lambda x, i: api.fnp.zeros((256, x.shape[1])).at[i].add(x),
    "gather": lambda api: lambda x, i: x[i] * 2,
    "transpose": lambda api: lambda x: x.transpose(2, 0, 1) + 1,
}
