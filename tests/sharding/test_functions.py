"""Functions with a special lowering for CPUs, on arrays large enough for it, split over eight devices."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, nn
from functorch_like.sharding import NamedSharding
from functorch_like.sharding import PartitionSpec as P

A = np.random.default_rng(0).standard_normal((512, 64)).astype(np.float32)

AS_NUMPY = {
    "sum": lambda np, x: np.sum(x, 0),
    "prod": lambda np, x: np.prod(1 + x * 0.001, 0),
    "argmax": lambda np, x: np.argmax(x, 0),
    "all": lambda np, x: np.all(x < 3, 1),
    "cumsum": lambda np, x: np.cumsum(x, 0),
    "cumprod": lambda np, x: np.cumprod(1 + x * 0.01, 1),
    "sort": lambda np, x: np.sort(x, 0),
    "median": lambda np, x: np.median(x, 0),
    "fft": lambda np, x: np.abs(np.fft.fft(x, axis=0)),
    "histogram": lambda np, x: np.histogram(x, 10)[0],
    "einsum": lambda np, x: np.einsum("ij,ik->jk", x, x),
    "unique": lambda np, x: np.unique(np.round(x)),
    "svd": lambda np, x: np.linalg.svd(x[:64], compute_uv=False),
}


@pytest.mark.parametrize("name", AS_NUMPY)
@pytest.mark.parametrize("spec", [P("x", "y"), P(None, "x")], ids=repr)
def test_functions_of_numpy(name, spec):
    x = ft.device_put(A, NamedSharding(ft.make_mesh((4, 2), ("x", "y")), spec))
    np.testing.assert_allclose(np.asarray(AS_NUMPY[name](fnp, x)), AS_NUMPY[name](np, A), rtol=2e-3, atol=2e-3)


ON_ONE_DEVICE = {
    "top_k": lambda x: lax.top_k(x.T, 3)[0],
    "cumlogsumexp": lambda x: lax.cumlogsumexp(x, 0),
    "scatter": lambda x: x.at[np.array([1, 300])].add(1.0),
    "pool": ft.grad(lambda x: lax.reduce_window(x, -np.inf, lax.max, (2, 2), (2, 2), "VALID").sum()),
    "gradient of sort": ft.grad(lambda x: (fnp.sort(x, 0) * A).sum()),
    "gradient of softmax": ft.grad(lambda x: (nn.log_softmax(x) * A).sum()),
    "attention": lambda x: nn.dot_product_attention(*(x.reshape(4, 128, 4, 16),) * 3),
    "reduce": lambda x: lax.reduce(x, np.float32(0), lambda a, b: fnp.maximum(a, b), (0,)),
    "permutation": lambda x: ft.random.permutation(ft.random.key(0), x),
}


@pytest.mark.parametrize("name", ON_ONE_DEVICE)
def test_functions_without_numpy(name):
    f = ON_ONE_DEVICE[name]
    x = ft.device_put(A, NamedSharding(ft.make_mesh((4, 2), ("x", "y")), P("x", "y")))
    np.testing.assert_allclose(np.asarray(ft.jit(f)(x)), np.asarray(f(fnp.asarray(A))), rtol=2e-3, atol=2e-3)


SPLIT = {
    "rows and features": P("x", None, None, "y"),
    "space": P(None, "x", "y"),
    "rows, in shard_map": P("x"),
}


@pytest.mark.parametrize("split", SPLIT)
def test_extremes_of_values_that_xla_may_compute_twice(split):
    a, b, c, d = given = np.random.default_rng(0).standard_normal((4, 8, 16, 16, 8)).astype(np.float32)
    blocks = lambda x: x.reshape(8, 8, 2, 8, 2, 8)

    def loss(a, b, c, d):
        x = nn.relu(a * b + c * d)
        rows, height, width, features = x.shape
        return fnp.sum(fnp.sin(fnp.max(x.reshape(rows, height // 2, 2, width // 2, 2, features), axis=(2, 4))))

    mesh, spec = ft.make_mesh((4, 2), ("x", "y")), SPLIT[split]
    slope = ft.shard_map(ft.grad(loss), mesh=mesh, in_specs=spec, out_specs=spec) if "map" in split else ft.grad(loss)
    got = ft.jit(slope)(*(ft.device_put(x, NamedSharding(mesh, spec)) for x in given))
    x = a.astype(np.float64) * b + c.astype(np.float64) * d
    here = (blocks(x) == blocks(x).max((2, 4), keepdims=True)).reshape(x.shape) & (x > 0)
    np.testing.assert_allclose(np.asarray(got), here * np.cos(x) * b, rtol=1e-4, atol=1e-4)
    assert got.sharding.is_equivalent_to(NamedSharding(mesh, spec), 4)
