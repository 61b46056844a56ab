"""NaN, infinities and signed zeros in reductions, extremes, sorts and scatters: as in NumPy, in either lowering."""

import numpy as np
import pytest
from support.primitive_checks import check_compiled
from support.primitive_samples import Case, results

import functorch_like as ft
from functorch_like import backends, dtypes
from functorch_like.core import TABLE, SampleInput
from functorch_like.primitives.base.window_geometry import window_params
from functorch_like.primitives.indexing.dimension_numbers import GatherDimensionNumbers, ScatterDimensionNumbers

X = np.array(
    [
        [1, np.nan, 3, -0.0, np.inf],
        [np.nan, np.nan, np.nan, -np.nan, np.nan],
        [-np.inf, -np.inf, np.inf, 2, 1],
        [0.0, -0.0, 0.0, -0.0, 0.0],
    ]
)
FOLDS = ("reduce_max", "reduce_min", "reduce_sum", "reduce_prod")
RUNNING = ("cummax", "cummin", "cumsum", "cumprod", "cumlogsumexp")
WINDOWS = ("reduce_window_max", "reduce_window_min", "reduce_window_sum")
SCATTERS = ("scatter", "scatter_max", "scatter_min", "scatter_mul", "scatter_add")
INDEX = {"index_dtype": np.dtype(np.int32)}
POINTS = {
    "dimension_numbers": ScatterDimensionNumbers((), (0,), (0,)),
    "indices_are_sorted": False,
    "unique_indices": False,
}
TAKEN = POINTS | {"dimension_numbers": GatherDimensionNumbers((), (0,), (0,)), "slice_sizes": (1,)}


def samples(name, dtype):
    """Return samples of one primitive with special values in the operands."""
    x = X.astype(dtype)
    if name in FOLDS:
        return [SampleInput((x,), {"axes": axes}) for axes in ((0,), (1,), (0, 1))]
    if name in RUNNING:
        long = np.tile(x, (1, 10))
        return [SampleInput((v,), {"axis": 1, "reverse": r}) for v in (x, long) for r in (False, True)]
    if name in WINDOWS:
        sizes = ((2, 1), (2, 2), (3, 2))
        return [SampleInput((x,), window_params((1, w), (1, s), ((0, 0), (0, p)))) for w, s in sizes for p in (0, 1)]
    if name in ("argmax", "argmin"):
        return [SampleInput((x,), {"axes": (1,)} | INDEX), SampleInput((x,), {"axes": (0,)} | INDEX)]
    if name == "sort":
        places = np.broadcast_to(np.arange(5, dtype=np.int32), x.shape)
        params = {"dimension": 1, "is_stable": True, "num_keys": 1}
        return [SampleInput((x,), params), SampleInput((x, places), params)]
    if name == "top_k":
        return [SampleInput((x,), {"k": k}) for k in (0, 1, 4, 5)]
    places = np.array([[0], [1], [2], [3], [4], [0], [9], [-1]], np.int32)
    row, into = np.array([np.nan, 1, np.inf, -0.0, np.nan, 3, 5, 6]).astype(dtype), x[0]
    if name == "gather":
        fills = [("clip", None), ("fill", None), ("fill", 2.5)]
        return [SampleInput((into, places), TAKEN | {"mode": mode, "fill_value": fill}) for mode, fill in fills]
    unique = places[[1, 4, 2, 6]] if name == "scatter" else places
    news = row[: len(unique)]
    return [SampleInput((into, unique, news), POINTS | {"mode": mode}) for mode in ("drop", "clip")]


@pytest.mark.parametrize("name", [*FOLDS, *RUNNING, *WINDOWS, *SCATTERS, "argmax", "argmin", "sort", "top_k", "gather"])
def test_special_values(name):
    prim = TABLE[name]
    kinds = ("float32", dtypes.bfloat16)
    cases = [Case(prim, k, s) for k, s in enumerate(s for dtype in kinds for s in samples(name, dtype))]
    run = lambda *args: [results(prim, prim(*xs, **c.sample.params)) for c, xs in zip(cases, args, strict=True)]
    drawn = [c.draw() for c in cases]
    for fast in (True, False):
        with backends.flags(cpu_fast_lowerings=fast), np.errstate(all="ignore"):
            for case, got in zip(cases, ft.jit(run, keep_unused=True)(*drawn), strict=True):
                check_compiled(case, got, case.draw())


def test_zeros_keep_their_sign_where_order_decides():
    """Zeros of both signs are equal under `==`, but ordered in top_k and in the sort of one array."""
    x = np.array([0.0, -0.0, 0.0, -0.0], np.float32)
    sign = lambda y: np.signbit(np.asarray(y)).tolist()
    for fast in (True, False):
        with backends.flags(cpu_fast_lowerings=fast):
            assert sign(ft.lax.sort(x)) == [True, True, False, False]
            assert sign(ft.lax.top_k(x, 4)[0]) == [False, False, True, True]
            _, places = ft.lax.sort((x, np.arange(4)))
            assert places.tolist() == [0, 1, 2, 3]
