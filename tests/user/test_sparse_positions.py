"""Gathers, indexing by arrays, and convolutions of sparse arrays, against NumPy and finite differences."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors, lax
from functorch_like.experimental import sparse

SHAPE = (5, 6, 4)
Numbers = lax.GatherDimensionNumbers


def values(shape, seed=0, density=0.4):
    rng = np.random.default_rng(seed)
    return (rng.normal(size=shape) * (rng.random(shape) < density)).astype("float32")


X = values(SHAPE)


def doubled(mat):
    """Return the same array with every element stored as two halves, and padding with a value."""
    data, indices = np.asarray(mat.data) / 2, np.asarray(mat.indices)
    padding = np.array([mat.shape], np.int32)
    return sparse.BCOO((np.concatenate([data, data, np.ones(1, "float32")]),
                        np.concatenate([indices, indices, padding])), shape=mat.shape)  # fmt: skip


def close(found, want, tol=2e-5):
    found = found.todense() if isinstance(found, sparse.JAXSparse) else found
    np.testing.assert_allclose(np.asarray(found, np.float64), want, rtol=tol, atol=tol)


def slices(x, starts, numbers, sizes, fill=False):
    """Return a gather of NumPy's arrays, by its definition."""
    lead = starts.shape[:-1]
    out = {}
    for at in np.ndindex(*lead):
        first = np.zeros(x.ndim, int)
        for k, d in enumerate(numbers.start_index_map):
            first[d] = starts[at][k]
        room = np.array(x.shape) - sizes
        blank = fill and ((first < 0) | (first > room)).any()
        first = np.clip(first, 0, room)
        part = x[tuple(slice(f, f + n) for f, n in zip(first, sizes, strict=True))]
        out[at] = (0 * part if blank else part).squeeze(tuple(numbers.collapsed_slice_dims))
    stacked = np.stack([out[at] for at in np.ndindex(*lead)]).reshape(*lead, *next(iter(out.values())).shape)
    ndim = stacked.ndim
    outer = [d for d in range(ndim) if d not in numbers.offset_dims]
    return np.moveaxis(stacked, range(ndim), [*outer, *numbers.offset_dims])


ROWS = Numbers((1, 2), (0,), (0,)), (1, 6, 4)
GATHERS = [
    ([[1], [3], [1]], *ROWS), (np.array([[[0, 1]], [[3, 5]], [[2, 2]]]), Numbers((2,), (0, 1), (0, 1)), (1, 1, 4)),
    ([1, 2], Numbers((0, 1), (0,), (0, 1)), (1, 3, 4)), ([[1, 2], [0, 1]], Numbers((0, 1, 3), (), (1, 0)), (2, 3, 2)),
    ([[1, 2], [0, 1]], Numbers((1,), (1, 2), (2, 1)), (2, 1, 1)), (np.zeros((2, 0), int), Numbers((1, 2, 3), (), ()),
                                                                   (2, 1, 1)),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(GATHERS)))
def test_gathers_of_known_and_of_traced_positions(case):
    starts, numbers, sizes = GATHERS[case]
    starts = np.asarray(starts, np.int32)
    want = slices(X, starts, numbers, sizes)
    f = lambda m, at: sparse.bcoo_gather(m, at, numbers, sizes)
    for mat in (sparse.BCOO.fromdense(X), doubled(sparse.BCOO.fromdense(X))):
        found = f(mat, starts)
        close(found, want)
        assert found.shape == want.shape and found.nse == np.count_nonzero(want)
        close(ft.jit(f)(mat, starts), want)


def test_gathers_of_batch_and_dense_dimensions():
    starts = np.array([[1], [3]], np.int32)
    want = slices(X, starts, *ROWS)
    for n_batch, n_dense in ((1, 0), (0, 1), (1, 1), (2, 0)):
        close(sparse.bcoo_gather(sparse.BCOO.fromdense(X, n_batch=n_batch, n_dense=n_dense), starts, *ROWS), want)


@pytest.mark.parametrize("traced", [False, True])
def test_positions_out_of_bounds(traced):
    mat, starts = sparse.BCOO.fromdense(X), np.array([[1], [7], [-2], [4]], np.int32)
    lift = ft.jit if traced else lambda f: f
    gather = lambda **options: lift(lambda m, at: sparse.bcoo_gather(m, at, *ROWS, **options))(mat, starts)
    close(gather(mode="clip"), slices(X, starts, *ROWS))
    close(gather(mode=lax.GatherScatterMode.FILL_OR_DROP, fill_value=0), slices(X, starts, *ROWS, fill=True))
    with pytest.raises(errors.UnsupportedError, match="pass fill_value=0"):
        gather(mode="fill")
    assert sparse.bcoo_gather(mat, starts[:1], *ROWS, mode="fill").shape == (1, 6, 4)


def test_bad_gathers():
    mat = sparse.BCOO.fromdense(X)
    with pytest.raises(errors.UnsupportedError, match="use vmap"):
        sparse.bcoo_gather(mat, np.zeros((5, 1), int), Numbers((1,), (1,), (1,), (0,), (0,)), (1, 1, 4))
    with pytest.raises(errors.ShapeError):
        sparse.bcoo_gather(mat, np.zeros((5, 2), int), *ROWS)
    with pytest.raises(errors.ArgumentError, match="unknown"):
        sparse.bcoo_gather(mat, np.zeros((5, 1), int), *ROWS, mode="wrap around")
    with pytest.raises(errors.DtypeError, match="takes a BCOO"):
        sparse.bcoo_gather(X, np.zeros((5, 1), int), *ROWS)


I, MASK = np.array([0, 3, -1]), np.array([True, False, True, False, False])
ITEMS = [
    (I,), (slice(None), I), (I, slice(None), I), (I, slice(1, 3)), (MASK,), (Ellipsis, np.array([[0, 1], [1, 3]])),
    (None, I, Ellipsis, 1), (slice(None, None, -1), I[::-1]), (np.zeros((0,), int),),
]  # fmt: skip


def test_indexing_by_arrays():
    mat = sparse.BCOO.fromdense(X)
    found = ft.jit(lambda m: [m[item].todense() for item in ITEMS])(mat)
    for item, out in zip(ITEMS, found, strict=True):
        close(out, X[item])
        close(mat[item], X[item])
    close(ft.jit(lambda m, i: m[i].todense())(mat, I), X[I])
    close(ft.jit(lambda m, i: m[:, i, 0].todense())(mat, 2), X[:, 2, 0])
    for cls in (sparse.BCSR, sparse.COO, sparse.CSR, sparse.CSC):
        close(cls.fromdense(X[0])[I], X[0][I])
    close(sparse.sparsify(lambda m: fnp.take(m, I[:2], axis=1))(mat), X[:, I[:2]])


def test_large_gathers_store_the_elements_of_the_result():
    n = 10**5
    rows = np.arange(n, dtype=np.int32)
    mat = sparse.BCOO((fnp.ones(n), np.stack([rows, rows], -1)), shape=(n, n), unique_indices=True)
    part = mat[rows[::2]]
    assert part.nse == n // 2 and part.shape == (n // 2, n)
    np.testing.assert_array_equal(part.indices, np.stack([rows[: n // 2], rows[::2]], -1))


# -------------------------------------------------------------------------------------------------------- convolutions
def convolved(x, w, strides, pads, ldil, rdil, groups):
    """Return a convolution of NumPy's arrays, by its definition."""
    spatial = x.shape[2:]
    stretched = np.zeros((*x.shape[:2], *((n - 1) * d + 1 for n, d in zip(spatial, ldil, strict=True))))
    stretched[(..., *(slice(None, None, d) for d in ldil))] = x
    padded = np.pad(stretched, [(0, 0), (0, 0), *(tuple(max(p, 0) for p in pair) for pair in pads)])
    cut = tuple(slice(max(-a, 0), n - max(-b, 0)) for (a, b), n in zip(pads, padded.shape[2:], strict=True))
    padded = padded[(..., *cut)]
    reach = [(k - 1) * d + 1 for k, d in zip(w.shape[2:], rdil, strict=True)]
    counts = [(n - r) // s + 1 for n, r, s in zip(padded.shape[2:], reach, strides, strict=True)]
    out = np.zeros((x.shape[0], w.shape[0], *counts))
    per, width = w.shape[0] // groups, w.shape[1]
    for o, at in itertools.product(range(w.shape[0]), np.ndindex(*counts)):
        window = tuple(slice(p * s, p * s + r, d) for p, s, r, d in zip(at, strides, reach, rdil, strict=True))
        features = slice(o // per * width, (o // per + 1) * width)
        out[(slice(None), o, *at)] = np.sum(padded[(slice(None), features, *window)] * w[o], tuple(range(1, x.ndim)))
    return out


#: Shapes of operand and kernel, strides, padding, dilations of both, groups of features.
CONVOLUTIONS = [
    ((1, 1, 10), (1, 1, 4), (1,), [(0, 0)], (1,), (1,), 1), ((1, 1, 10), (1, 1, 3), (1,), [(3, 1)], (1,), (1,), 1),
    ((1, 1, 10), (1, 1, 3), (1,), [(-1, 0)], (1,), (1,), 1), ((2, 3, 10), (4, 3, 3), (2,), [(2, 0)], (1,), (1,), 1),
    ((1, 2, 6), (2, 2, 3), (1,), [(1, 2)], (3,), (2,), 1),
    ((2, 4, 6, 5), (6, 2, 3, 2), (2, 1), [(2, 1), (0, 3)], (1, 2), (1, 2), 2), ((3, 2), (4, 2), (), [], (), (), 1),
]  # fmt: skip


@pytest.mark.parametrize("case", range(len(CONVOLUTIONS)))
def test_convolutions(case):
    left, right, strides, pads, ldil, rdil, groups = CONVOLUTIONS[case]
    x, w = values(left, 1, 0.5), values(right, 2, 0.7)
    want = convolved(x, w, strides, pads, ldil, rdil, groups)
    f = lambda a, b: sparse.bcoo_conv_general_dilated(
        a, b, window_strides=strides, padding=pads, lhs_dilation=ldil, rhs_dilation=rdil, feature_group_count=groups
    )
    a, b = sparse.BCOO.fromdense(x), sparse.BCOO.fromdense(w)
    found = f(a, b)
    close(found, want)
    assert found.indices_sorted and found.unique_indices
    close(f(x, b), want)
    g = ft.jit(f)
    close(g(doubled(a), b), want)
    close(g(a, w), want)


def test_layouts_and_names_of_convolutions():
    x, w = values((1, 10, 2), 3, 0.5), values((3, 2, 4), 4, 0.9)
    want = convolved(np.moveaxis(x, -1, 1), w.transpose(2, 1, 0), (1,), [(1, 1)], (1,), (1,), 1).transpose(0, 2, 1)
    options = {"window_strides": (1,), "padding": "SAME", "dimension_numbers": ("NWC", "WIO", "NWC")}
    a = sparse.BCOO.fromdense(x, n_batch=1, n_dense=1)
    close(sparse.bcoo_conv_general_dilated(a, sparse.BCOO.fromdense(w), **options), want)
    f = ft.jit(sparse.sparsify(lambda a, w: lax.conv_general_dilated(a, w, **options)))
    close(f(a, w), want)
    y = values((9,), 5, 0.5)
    close(sparse.sparsify(fnp.convolve)(sparse.BCOO.fromdense(y), w[:, 0, 0]), np.convolve(y, w[:, 0, 0]))
    whole = sparse.BCOO.fromdense(np.array([[[1, 0, 2]]]))
    out = sparse.bcoo_conv_general_dilated(
        whole, whole, window_strides=(1,), padding="VALID", preferred_element_type="float32"
    )
    assert out.dtype == np.float32 and out.todense().tolist() == [[[5.0]]]


def test_derivatives_of_gathers_and_convolutions():
    mat, kernel = sparse.BCOO.fromdense(X[:2].astype("float64")), values((2, 6, 3), 6, 0.7).astype("float64")
    starts = np.array([[1], [0], [1]])
    w = sparse.BCOO.fromdense(kernel)
    f = lambda d, e: (
        sparse.bcoo_gather(mat._with(d), starts, *ROWS).todense() ** 2,
        sparse.bcoo_conv_general_dilated(mat._with(d), w._with(e), window_strides=(1,), padding="SAME").todense(),
    )
    ft.testing.check_grads(f, (mat.data, w.data), order=2, modes=("fwd", "rev"))


@pytest.mark.parametrize(
    ("error", "text", "options", "shapes"),
    [
        (errors.UnsupportedError, "batch_group_count=2", {"batch_group_count": 2}, ((2, 1, 4), (2, 1, 2))),
        (errors.ShapeError, "features", {}, ((1, 1, 4), (1, 2, 2))),
        (errors.ArgumentError, "strides", {"window_strides": (1, 1)}, ((1, 1, 4), (1, 1, 2))),
    ],
)
def test_bad_convolutions(error, text, options, shapes):
    with pytest.raises(error, match=text):
        sparse.bcoo_conv_general_dilated(
            *map(fnp.ones, shapes), **{"window_strides": (1,), "padding": "VALID", **options}
        )
    with pytest.raises(errors.DtypeError, match="astype"):
        sparse.bcoo_conv_general_dilated(
            np.ones((1, 1, 3), bool), np.ones((1, 1, 3), bool), window_strides=(1,), padding="VALID"
        )
