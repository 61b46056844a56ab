"""Collectives within groups of positions, under vmap and shard_map, equal collectives along an inner axis of size 2."""

import numpy as np
import pytest

import functorch_like as ft
from functorch_like import lax
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.sharding import PartitionSpec as P

GROUPS = [[0, 3], [5, 1], [2, 4]]
ORDER = np.concatenate(GROUPS)
MESH = ft.make_mesh((6,), ("i",))
X = np.random.default_rng(0).standard_normal((6, 2, 4))

COLLECTIVES = {
    "psum": lambda x, name, **groups: lax.psum(x, name, **groups),
    "psum_of_bools": lambda x, name, **groups: lax.psum(x > 0, name, **groups),
    "pmean": lambda x, name, **groups: lax.pmean({"a": x, "b": x[0]}, name, **groups)["b"],
    "pmax": lambda x, name, **groups: lax.pmax(x, name, **groups),
    "pmin": lambda x, name, **groups: lax.pmin(x, name, **groups),
    "all_gather": lambda x, name, **groups: lax.all_gather(x, name, axis=1, **groups),
    "all_gather_tiled": lambda x, name, **groups: lax.all_gather(x, name, axis=1, tiled=True, **groups),
    "psum_scatter": lambda x, name, **groups: lax.psum_scatter(x, name, **groups),
    "psum_scatter_tiled": lambda x, name, **groups: lax.psum_scatter(
        x, name, scatter_dimension=1, tiled=True, **groups
    ),
    "all_to_all": lambda x, name, **groups: lax.all_to_all(x, name, 0, 1, **groups),
    "all_to_all_tiled": lambda x, name, **groups: lax.all_to_all(x, name, 1, 0, tiled=True, **groups),
    "pswapaxes": lambda x, name, **groups: lax.pswapaxes(x, name, 0, **groups),
}


def nested(f):
    """Return a function that applies the collective to each group along an inner axis, and restores the order."""
    inner = ft.vmap(ft.vmap(lambda x: f(x, "j"), axis_name="j"))
    back = np.argsort(ORDER)
    return ft.jit(
        lambda x: (lambda out: out.reshape(6, *out.shape[2:])[back])(inner(x[ORDER].reshape(3, 2, *x.shape[1:])))
    )


def grouped(f):
    return {
        "vmap": ft.jit(ft.vmap(lambda x: f(x, "i", axis_index_groups=GROUPS), axis_name="i")),
        "shard_map": ft.jit(
            ft.shard_map(
                lambda x: f(x[0], "i", axis_index_groups=GROUPS)[None], mesh=MESH, in_specs=P("i"), out_specs=P("i")
            )
        ),
    }


@pytest.mark.parametrize("name", COLLECTIVES)
def test_within_groups(name):
    f = COLLECTIVES[name]
    expected = np.asarray(nested(f)(ft.numpy.asarray(X)))
    for found in grouped(f).values():
        np.testing.assert_allclose(np.asarray(found(X)), expected, rtol=1e-12)


@pytest.mark.parametrize("name", [n for n in COLLECTIVES if n not in ("psum_of_bools", "pmax", "pmin")])
def test_derivatives(name):
    """Gradients of a weighted sum of the results at all positions agree."""
    f = COLLECTIVES[name]
    weights = np.random.default_rng(1).standard_normal(np.shape(nested(f)(ft.numpy.asarray(X))))
    expected = ft.jit(ft.grad(lambda x: (nested(f)(x) * weights).sum()))(X)
    for found in grouped(f).values():
        gradient = ft.jit(ft.grad(lambda x, found=found: (found(x) * weights).sum()))(X)
        np.testing.assert_allclose(np.asarray(gradient), np.asarray(expected), rtol=1e-10, atol=1e-12)


def test_nothing_crosses_the_border_of_a_group():
    text = grouped(COLLECTIVES["psum"])["shard_map"].lower(X).compile().as_text()
    assert "all-reduce(" not in text and "all-gather(" not in text and "collective-permute" in text


def test_numbers_count_the_group():
    assert (
        ft.vmap(lambda x: x * lax.psum(1, "i", axis_index_groups=GROUPS), axis_name="i")(np.ones(6)).tolist() == [2] * 6
    )


UNEQUAL = [[4], [0, 5, 2], [3, 1]]
REDUCED = {
    "psum": (lambda x, **groups: lax.psum(x, "i", **groups), np.sum),
    "psum_of_integers": (lambda x, **groups: lax.psum((x * 10).astype("int32"), "i", **groups), None),
    "pmean": (lambda x, **groups: lax.pmean(x, "i", **groups), np.mean),
    "pmax": (lambda x, **groups: lax.pmax(x, "i", **groups), np.max),
    "pmin": (lambda x, **groups: lax.pmin(x, "i", **groups), np.min),
}


def both(f):
    """Return the function under vmap and the function in shard_map, both jitted."""
    mapped = ft.shard_map(lambda x: f(x[0])[None], mesh=MESH, in_specs=P("i"), out_specs=P("i"))
    return ft.jit(ft.vmap(f, axis_name="i")), ft.jit(mapped)


@pytest.mark.parametrize("name", REDUCED)
def test_groups_of_different_sizes(name):
    f, of = REDUCED[name]
    expected = np.empty_like(X)
    for group in UNEQUAL:
        part = (X[group] * 10).astype(np.int32) if of is None else X[group]
        expected[group] = (of or np.sum)(part, 0)
    for found in both(lambda x: f(x, axis_index_groups=UNEQUAL)):
        out = np.asarray(found(X))
        np.testing.assert_allclose(out, expected, rtol=1e-12)
        for group in UNEQUAL:  # results within a group are bitwise equal
            np.testing.assert_array_equal(out[group], np.broadcast_to(out[group[0]], out[group].shape))


@pytest.mark.parametrize("name", ["psum", "pmean", "pmax", "pmin"])
def test_derivatives_in_groups_of_different_sizes(name):
    f, of = REDUCED[name]
    weights = np.random.default_rng(2).standard_normal(X.shape)
    expected = np.empty_like(X)
    for group in UNEQUAL:
        total, part = weights[group].sum(0), X[group]
        share = {"psum": 1.0, "pmean": 1 / len(group)}.get(name)
        expected[group] = total * (part == of(part, 0) if share is None else share)
    for found in both(lambda x: f(x, axis_index_groups=UNEQUAL)):
        gradient = ft.jit(ft.grad(lambda x, found=found: (found(x) * weights).sum()))(X)
        np.testing.assert_allclose(np.asarray(gradient), expected, rtol=1e-10, atol=1e-12)


def test_extremes_of_integers_in_groups_of_different_sizes():
    x = np.arange(-3, 3, dtype=np.int8)
    for of, fold in ((lax.pmax, max), (lax.pmin, min)):
        expected = np.empty_like(x)
        for group in UNEQUAL:
            expected[group] = fold(x[group])
        for found in both(lambda v, of=of: of(v, "i", axis_index_groups=UNEQUAL)):
            np.testing.assert_array_equal(np.asarray(found(x)), expected)


def test_numbers_count_their_group():
    for found in both(lambda x: x * lax.psum(2, "i", axis_index_groups=UNEQUAL)):
        np.testing.assert_array_equal(np.asarray(found(np.ones(6))), [6, 4, 6, 4, 2, 6])


@pytest.mark.parametrize(
    ("groups", "kind", "message"),
    [
        ([[0, 1], [2, 3]], ArgumentError, r"=\[\[0, 1\], \[2, 3\]\] do not divide the 6 positions of the axis 'i'"),
        ([[0, 1, 2, 3], [4, 5]], ArgumentError, "lists of one length"),
        ([[0, 1, 2, 3], [4, 4, 5]], ArgumentError, "lists of one length"),
        (3, ArgumentError, "axis_index_groups=3"),
        ([[0, 1, 2], [3, 4, 5]], ShapeError, r"dimension 0 of .*\[2,4\] does not split into 3 parts"),
    ],
)
def test_refused(groups, kind, message):
    with pytest.raises(kind, match=message):
        ft.vmap(lambda x: lax.psum_scatter(x, "i", axis_index_groups=groups), axis_name="i")(X)
