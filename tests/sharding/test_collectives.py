"""Collectives inside shard_map, and their derivatives, equal those under vmap with a named axis."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.sharding import PartitionSpec as P

SHIFT = [(i, (i + 1) % 4) for i in range(4)]


@pytest.fixture(scope="module")
def mesh():
    return ft.make_mesh((4, 2), ("x", "y"))


@pytest.fixture(scope="module")
def line():
    return ft.make_mesh((4,), ("i",))


def close(actual, desired, tolerance=1e-5):
    np.testing.assert_allclose(np.asarray(actual), np.asarray(desired), rtol=tolerance, atol=tolerance)


COLLECTIVES = {
    "psum": lambda x: lax.psum(x, "i"),
    "pmean": lambda x: lax.pmean(x, "i"),
    "pmax": lambda x: lax.pmax(x, "i"),
    "pmin": lambda x: lax.pmin(x, "i"),
    "psum_of_bools": lambda x: lax.psum(x > 0, "i"),
    "all_gather": lambda x: lax.all_gather(x, "i"),
    "all_gather_last": lambda x: lax.all_gather(x, "i", axis=2),
    "all_gather_tiled": lambda x: lax.all_gather(x, "i", axis=1, tiled=True),
    "psum_scatter": lambda x: lax.psum_scatter(x, "i"),
    "psum_scatter_tiled": lambda x: lax.psum_scatter(x, "i", scatter_dimension=1, tiled=True),
    "all_to_all": lambda x: lax.all_to_all(x, "i", 0, 0),
    "all_to_all_across": lambda x: lax.all_to_all(x, "i", 0, 1),
    "all_to_all_back": lambda x: lax.all_to_all(x.T, "i", 1, 0),
    "all_to_all_tiled": lambda x: lax.all_to_all(x, "i", 1, 0, tiled=True),
    "ppermute": lambda x: lax.ppermute(x, "i", SHIFT),
    "ppermute_some": lambda x: lax.ppermute(x, "i", [(0, 2), (3, 1)]),
    "ppermute_none": lambda x: lax.ppermute(x, "i", []),
    "pshuffle": lambda x: lax.pshuffle(x, "i", [2, 0, 3, 1]),
    "pswapaxes": lambda x: lax.pswapaxes(x, "i", 0),
    "pbroadcast": lambda x: lax.pbroadcast(x, "i", 2),
    "axis_index": lambda x: x * lax.axis_index("i"),
    "axis_size": lambda x: x * lax.axis_size("i"),
    "psum_of_a_number": lambda x: x * lax.psum(1, "i"),
    "psum_of_what_is_the_same": lambda x: x * lax.psum(lax.psum(x.sum(), "i"), "i"),
    "pmax_of_what_is_the_same": lambda x: lax.pmax(lax.pmin(x, "i"), "i"),
    "composed": lambda x: lax.psum(fnp.sin(x) * lax.axis_index("i"), "i") - lax.ppermute(x * x, "i", SHIFT),
}
STACK = np.random.default_rng(0).standard_normal((4, 4, 8)).astype(np.float32)  # a part for each device


def on_parts(f, mesh, **options):
    """Return the equivalent of `vmap(f, axis_name="i")` with one element on each device."""
    one = lambda x: f(x[0])[None]
    return ft.shard_map(one, mesh=mesh, in_specs=P("i"), out_specs=P("i"), **options)


@pytest.mark.parametrize("name", COLLECTIVES)
@pytest.mark.parametrize("wrap", [lambda f: f, ft.jit], ids=["eager", "jit"])
def test_collectives_agree_with_vmap(line, name, wrap):
    f = COLLECTIVES[name]
    expected = ft.vmap(f, axis_name="i")(STACK)
    out = wrap(on_parts(f, line))(STACK)
    assert out.dtype == expected.dtype
    close(out, expected)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_derivatives_of_collectives_agree_with_vmap(line, name):
    f = COLLECTIVES[name]
    if name == "psum_of_bools":
        return
    weights = np.cos(np.arange(np.asarray(ft.vmap(f, axis_name="i")(STACK)).size, dtype=np.float32))
    total = lambda mapped: lambda x: (fnp.sin(mapped(x)).ravel() * weights).sum()
    one, many = total(ft.vmap(f, axis_name="i")), total(on_parts(f, line))
    close(ft.jit(ft.grad(many))(STACK), ft.jit(ft.grad(one))(STACK), 1e-4)
    tangent = np.sin(STACK)
    push = lambda f: ft.jit(lambda x: ft.jvp(f, (x,), (tangent,)))(STACK)
    for a, b in zip(push(many), push(one), strict=True):
        close(a, b, 1e-3)


@pytest.mark.parametrize("name", COLLECTIVES)
def test_vmap_of_collectives(line, name):
    f = COLLECTIVES[name]
    batch = np.stack([STACK, STACK * 2, np.sin(STACK)])
    close(ft.jit(ft.vmap(on_parts(f, line)))(batch), np.stack([ft.vmap(f, axis_name="i")(s) for s in batch]))
    last = ft.vmap(on_parts(f, line), in_axes=3, out_axes=1)(np.moveaxis(batch, 0, 3))
    close(last, np.stack([ft.vmap(f, axis_name="i")(s) for s in batch], 1))


@pytest.mark.parametrize("dtype", ["int32", "uint8", "int64", "bool", "float16", "bfloat16", "float64", "complex64"])
def test_dtypes_of_collectives(line, dtype):
    x = np.asarray(fnp.asarray(STACK * 3).astype(dtype))
    for name in ("psum", "all_gather", "psum_scatter_tiled", "all_to_all", "ppermute", "pbroadcast"):
        f = COLLECTIVES[name]
        close(on_parts(f, line)(x), ft.vmap(f, axis_name="i")(x), 2e-2 if "16" in dtype else 1e-5)


@pytest.mark.parametrize("names", [("x", "y"), ("y", "x"), "y"])
def test_collectives_over_several_axes(mesh, names):
    x = STACK.reshape(4, 2, 2, 8)
    f = lambda v: (lax.psum(v, names), lax.axis_index(names), lax.all_gather(v, names), lax.pmax(v, names))
    expected = ft.vmap(ft.vmap(f, axis_name="y"), axis_name="x")(x)
    one = lambda v: tuple(o[None, None] for o in f(v[0, 0]))
    out = ft.shard_map(one, mesh=mesh, in_specs=P("x", "y"), out_specs=P("x", "y"))(x)
    for a, b in zip(out, expected, strict=True):
        close(a, b)
