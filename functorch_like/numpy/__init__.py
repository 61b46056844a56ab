"""NumPy's functions on arrays and tracers, under NumPy's names: `import functorch_like.numpy as fnp`.

They follow NumPy, and where that cannot be (arrays are immutable, shapes are static) `jax.numpy`. Operands broadcast
and are promoted; Python numbers and NumPy scalars take the dtype of the array they meet.
"""

# ruff: noqa: F401
from __future__ import annotations

import math as _math
from typing import TYPE_CHECKING as _TYPE_CHECKING

import numpy as _np

from functorch_like.calling import lazy_imports as _late
from functorch_like.core import Array as ndarray
from functorch_like.dtypes import iinfo
from functorch_like.numpy.binary import (
    add,
    arctan2,
    atan2,
    copysign,
    divide,
    divmod,
    float_power,
    floor_divide,
    fmax,
    fmin,
    fmod,
    hypot,
    logaddexp,
    logaddexp2,
    maximum,
    minimum,
    mod,
    multiply,
    nextafter,
    pow,
    power,
    remainder,
    subtract,
    true_divide,
)
from functorch_like.numpy.creation import (
    array,
    asarray,
    astype,
    copy,
    empty,
    empty_like,
    full,
    full_like,
    ones,
    ones_like,
    zeros,
    zeros_like,
)  # fmt: skip
from functorch_like.numpy.cumulative import (
    cumprod,
    cumsum,
    cumulative_prod,
    cumulative_sum,
    diff,
    ediff1d,
    trapezoid,
)  # fmt: skip
from functorch_like.numpy.diagonals import diag, diag_indices, diagonal, fill_diagonal, tril_indices, triu_indices
from functorch_like.numpy.dtype_functions import (
    can_cast,
    dtype,
    finfo,
    iscomplex,
    iscomplexobj,
    isdtype,
    isreal,
    isrealobj,
    isscalar,
    issubdtype,
    iterable,
    promote_types,
    result_type,
)  # fmt: skip
from functorch_like.numpy.indexing import take, take_along_axis
from functorch_like.numpy.joining import (
    append,
    array_split,
    column_stack,
    concatenate,
    dsplit,
    dstack,
    hsplit,
    hstack,
    split,
    stack,
    unstack,
    vsplit,
    vstack,
)  # fmt: skip
from functorch_like.numpy.logic import (
    allclose,
    array_equal,
    array_equiv,
    bitwise_and,
    bitwise_invert,
    bitwise_left_shift,
    bitwise_not,
    bitwise_or,
    bitwise_right_shift,
    bitwise_xor,
    equal,
    greater,
    greater_equal,
    invert,
    isclose,
    left_shift,
    less,
    less_equal,
    logical_and,
    logical_not,
    logical_or,
    logical_xor,
    not_equal,
    right_shift,
)  # fmt: skip
from functorch_like.numpy.matrix_products import dot, inner, kron, matmul, outer, tensordot, trace, vdot, vecdot
from functorch_like.numpy.promotion import broadcast_shapes
from functorch_like.numpy.ranges import arange, eye, identity, linspace, logspace, meshgrid, tri, tril, triu
from functorch_like.numpy.reductions import (
    all,
    amax,
    amin,
    any,
    argmax,
    argmin,
    count_nonzero,
    max,
    min,
    prod,
    ptp,
    sum,
)  # fmt: skip
from functorch_like.numpy.repeating import pad, repeat, roll, tile
from functorch_like.numpy.rounding import around, round
from functorch_like.numpy.scalar_types import (
    bfloat16,
    bool_,
    complex64,
    complex128,
    float4_e2m1fn,
    float8_e3m4,
    float8_e4m3,
    float8_e4m3b11fnuz,
    float8_e4m3fn,
    float8_e4m3fnuz,
    float8_e5m2,
    float8_e5m2fnuz,
    float8_e8m0fnu,
    float16,
    float32,
    float64,
    int4,
    int8,
    int16,
    int32,
    int64,
    uint4,
    uint8,
    uint16,
    uint32,
    uint64,
)  # fmt: skip
from functorch_like.numpy.selection import clip, nan_to_num, select, where
from functorch_like.numpy.shapes import (
    atleast_1d,
    atleast_2d,
    atleast_3d,
    broadcast_arrays,
    broadcast_to,
    expand_dims,
    flip,
    fliplr,
    flipud,
    matrix_transpose,
    moveaxis,
    ndim,
    permute_dims,
    ravel,
    reshape,
    rollaxis,
    rot90,
    shape,
    size,
    squeeze,
    swapaxes,
    transpose,
)  # fmt: skip
from functorch_like.numpy.sorting_searching import argsort, argwhere, flatnonzero, lexsort, nonzero, searchsorted, sort
from functorch_like.numpy.statistics import average, mean, std, var
from functorch_like.numpy.unary import (
    abs,
    absolute,
    acos,
    acosh,
    angle,
    arccos,
    arccosh,
    arcsin,
    arcsinh,
    arctan,
    arctanh,
    asin,
    asinh,
    atan,
    atanh,
    cbrt,
    ceil,
    conj,
    conjugate,
    cos,
    cosh,
    deg2rad,
    degrees,
    exp,
    exp2,
    expm1,
    fix,
    floor,
    imag,
    isfinite,
    isinf,
    isnan,
    isneginf,
    isposinf,
    log,
    log1p,
    log2,
    log10,
    negative,
    positive,
    rad2deg,
    radians,
    real,
    reciprocal,
    rint,
    sign,
    signbit,
    sin,
    sinc,
    sinh,
    sqrt,
    square,
    tan,
    tanh,
    trunc,
)

if _TYPE_CHECKING:
    from functorch_like.numpy import fft, linalg
    from functorch_like.numpy.apply_along_axis import apply_along_axis, apply_over_axes, block
    from functorch_like.numpy.array_api_info import __array_namespace_info__
    from functorch_like.numpy.bit_packing import packbits, unpackbits
    from functorch_like.numpy.buffers import from_dlpack, frombuffer, fromfile, fromfunction, fromiter, fromstring
    from functorch_like.numpy.conditional import (
        choose,
        compress,
        extract,
        piecewise,
        place,
        put,
        put_along_axis,
        putmask,
    )
    from functorch_like.numpy.convolving import convolve, correlate
    from functorch_like.numpy.covariance import corrcoef, cov
    from functorch_like.numpy.einsum import einsum, einsum_path
    from functorch_like.numpy.fitting import polyfit
    from functorch_like.numpy.floating_point import fabs, frexp, heaviside, i0, ldexp, modf, spacing
    from functorch_like.numpy.geometric_ranges import geomspace, unwrap, vander
    from functorch_like.numpy.gradients import gradient
    from functorch_like.numpy.grids import c_, mgrid, ogrid, r_
    from functorch_like.numpy.histograms import bincount, histogram, histogram2d, histogram_bin_edges, histogramdd
    from functorch_like.numpy.index_conversion import (
        diag_indices_from,
        diagflat,
        ix_,
        mask_indices,
        ravel_multi_index,
        tril_indices_from,
        triu_indices_from,
        unravel_index,
    )
    from functorch_like.numpy.insert_delete import delete, insert, resize, trim_zeros
    from functorch_like.numpy.integers import bitwise_count, gcd, lcm
    from functorch_like.numpy.interpolation import interp
    from functorch_like.numpy.nanfunctions import (
        nanargmax,
        nanargmin,
        nancumprod,
        nancumsum,
        nanmax,
        nanmean,
        nanmin,
        nanprod,
        nanstd,
        nansum,
        nanvar,
    )
    from functorch_like.numpy.partitions import argpartition, digitize, partition, sort_complex
    from functorch_like.numpy.polynomials import (
        poly,
        polyadd,
        polyder,
        polydiv,
        polyint,
        polymul,
        polysub,
        polyval,
        roots,
    )
    from functorch_like.numpy.printing import array_repr, array_str, get_printoptions, printoptions, set_printoptions
    from functorch_like.numpy.quantiles import median, nanmedian, nanpercentile, nanquantile, percentile, quantile
    from functorch_like.numpy.saving import load, save, savez
    from functorch_like.numpy.sets import intersect1d, isin, setdiff1d, setxor1d, union1d
    from functorch_like.numpy.ufuncs import frompyfunc, ufunc
    from functorch_like.numpy.unique import unique, unique_all, unique_counts, unique_inverse, unique_values
    from functorch_like.numpy.vectorizing import vectorize
    from functorch_like.numpy.vectors import cross, matvec, vecmat
    from functorch_like.numpy.windows import bartlett, blackman, hamming, hanning, kaiser

# Imported when they are asked for: what few programs use.
__getattr__, __dir__ = _late.attach(
    __name__,
    {
        "bit_packing": ("packbits", "unpackbits"),
        "convolving": ("convolve", "correlate"),
        "einsum": ("einsum", "einsum_path"),
        "covariance": ("corrcoef", "cov"),
        "insert_delete": ("delete", "insert", "resize", "trim_zeros"),
        "fitting": ("polyfit",),
        "gradients": ("gradient",),
        "grids": ("c_", "mgrid", "ogrid", "r_"),
        "ufuncs": ("frompyfunc", "ufunc"),
        "histograms": ("bincount", "histogram", "histogram2d", "histogram_bin_edges", "histogramdd"),
        "interpolation": ("interp",),
        "polynomials": ("poly", "polyadd", "polyder", "polydiv", "polyint", "polymul", "polysub", "polyval", "roots"),
        "printing": ("array_repr", "array_str", "get_printoptions", "printoptions", "set_printoptions"),
        "saving": ("load", "save", "savez"),
        "windows": ("bartlett", "blackman", "hamming", "hanning", "kaiser"),
        "apply_along_axis": ("apply_along_axis", "apply_over_axes", "block"),
        "buffers": ("from_dlpack", "frombuffer", "fromfile", "fromfunction", "fromiter", "fromstring"),
        "array_api_info": ("__array_namespace_info__",),
        "index_conversion": (
            "diag_indices_from",
            "diagflat",
            "ix_",
            "mask_indices",
            "ravel_multi_index",
            "tril_indices_from",
            "triu_indices_from",
            "unravel_index",
        ),
        "geometric_ranges": ("geomspace", "unwrap", "vander"),
        "vectors": ("cross", "matvec", "vecmat"),
        "conditional": ("choose", "compress", "extract", "piecewise", "place", "put", "put_along_axis", "putmask"),
        "floating_point": ("fabs", "frexp", "heaviside", "i0", "ldexp", "modf", "spacing"),
        "integers": ("bitwise_count", "gcd", "lcm"),
        "partitions": ("argpartition", "digitize", "partition", "sort_complex"),
        "unique": ("unique", "unique_all", "unique_counts", "unique_inverse", "unique_values"),
        "sets": ("intersect1d", "isin", "setdiff1d", "setxor1d", "union1d"),
        "quantiles": ("median", "nanmedian", "nanpercentile", "nanquantile", "percentile", "quantile"),
        "nanfunctions": (
            "nanargmax",
            "nanargmin",
            "nancumprod",
            "nancumsum",
            "nanmax",
            "nanmean",
            "nanmin",
            "nanprod",
            "nanstd",
            "nansum",
            "nanvar",
        ),
        "vectorizing": ("vectorize",),
    },
    modules=("fft", "linalg"),
)

bool = bool_
concat = concatenate
pi, e, euler_gamma = _math.pi, _math.e, _np.euler_gamma
inf, nan, newaxis = _math.inf, _math.nan, None
single, double, csingle, cdouble = float32, float64, complex64, complex128
float_, int_, uint, complex_ = float32, int32, uint32, complex64
index_exp, s_ = _np.index_exp, _np.s_
floating, integer, inexact, number = _np.floating, _np.integer, _np.inexact, _np.number
signedinteger, unsignedinteger, complexfloating, generic = (
    _np.signedinteger, _np.unsignedinteger, _np.complexfloating, _np.generic,
)  # fmt: skip
flexible, character, object_ = _np.flexible, _np.character, _np.object_
__array_api_version__ = "2024.12"

__all__ = [name for name in __dir__() if not name.startswith("_") and name != "annotations"]
