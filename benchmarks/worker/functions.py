"""Functions of arrays and their gradients, one program each, for `benchmarks/functions.py`.

python benchmarks/worker/functions.py SIDE prints a JSON object of seconds.
"""

import importlib
import sys
from types import SimpleNamespace
from typing import Any

import numpy as np
from sides import load, measure

Cases = dict[str, tuple[Any, tuple[Any, ...]]]

ELEMENTWISE = (
    "abs sin cos tan arcsin arccos arctan sinh cosh tanh exp exp2 expm1 log log2 log1p sqrt cbrt square reciprocal "
    "sign floor round isfinite sinc i0 nan_to_num frexp modf"
)
PAIRS = "add multiply divide floor_divide power remainder arctan2 hypot logaddexp maximum fmin copysign nextafter equal"
WHOLE = "add floor_divide remainder bitwise_xor left_shift gcd power"
FOLDS = (
    "sum mean prod max min var std median argmax any all nanmean nanmedian ptp cumsum cumprod sort argsort diff "
    "gradient trapezoid flip"
)
SPECIAL = (
    "gammaln gamma digamma erf erfc erfinv expit logit ndtr ndtri log_ndtr entr i0e i1e spence factorial fresnel sici"
)
OF_NETS = "relu softplus silu gelu elu selu log_sigmoid mish softmax log_softmax standardize logsumexp glu"
MATRICES = "inv det slogdet cholesky qr svd eigh pinv"
DENSITIES = "norm cauchy laplace logistic expon"


def cases(side: SimpleNamespace) -> Cases:
    """Return functions and their arguments, by name."""
    module = lambda name: importlib.import_module(f"{side.ft.__name__}.{name}")
    fnp, lax, nn, special, linalg = side.fnp, side.lax, side.nn, module("scipy.special"), module("scipy.linalg")
    rng = np.random.default_rng(0)
    normal = lambda *shape: fnp.asarray(rng.standard_normal(shape).astype("float32"))
    uniform = lambda *shape: fnp.asarray(rng.uniform(0.05, 0.95, shape).astype("float32"))
    whole = lambda high, *shape: fnp.asarray(rng.integers(0, high, shape).astype("int32"))
    size, n = 65536, 256
    v, w, p, q, k = normal(size), normal(size), uniform(size), uniform(size), whole(1000, size)
    a, b, small, many = normal(n, n), normal(n, n), normal(96, 96), normal(64, 8, 8)
    positive = small @ small.T / 96 + fnp.eye(96)
    flags = k > 500

    made: Cases = {name: (getattr(fnp, name), (p,)) for name in ELEMENTWISE.split()}
    made |= {name: (getattr(fnp, name), (p, q)) for name in PAIRS.split()}
    made |= {f"{name} of int32": (getattr(fnp, name), (k + 1, k % 7 + 1)) for name in WHOLE.split()}
    made |= {name: (getattr(fnp, name), (v,)) for name in FOLDS.split()}
    for axis in (0, 1):
        folds = {name: getattr(fnp, name) for name in FOLDS.split()}
        folds |= {name: getattr(nn, name) for name in ("softmax", "standardize", "logsumexp")}
        folds["norm"] = fnp.linalg.norm
        along = lambda fold, axis=axis: lambda x: fold(x, axis=axis)
        made |= {f"{name}, axis {axis}": (along(fold), (a,)) for name, fold in folds.items()}
    made |= {f"special.{name}": (getattr(special, name), (p,)) for name in SPECIAL.split()}
    made |= {f"nn.{name}": (getattr(nn, name), (a,)) for name in OF_NETS.split()}
    made |= {f"linalg.{name}": (getattr(fnp.linalg, name), (positive,)) for name in MATRICES.split()}
    made |= {
        f"linalg.{name}, 64 of 8 x 8": (getattr(fnp.linalg, name), (many,)) for name in ("inv", "det", "qr", "svd")
    }
    for name in DENSITIES.split():
        made[f"{name}.logpdf"] = (module(f"scipy.stats.{name}").logpdf, (v,))
        made[f"{name}.cdf"] = (module(f"scipy.stats.{name}").cdf, (v,))
    return made | {
        "special.gammainc": (special.gammainc, (5 * p, 5 * q)),
        "special.gammaincc": (special.gammaincc, (5 * p, 5 * q)),
        "special.betainc": (special.betainc, (3 * p, 3 * q, uniform(size))),
        "special.beta": (special.beta, (p, q)),
        "special.betaln": (special.betaln, (p, q)),
        "special.poch": (special.poch, (p, q)),
        "special.xlogy": (special.xlogy, (p, q)),
        "special.xlog1py": (special.xlog1py, (p, q)),
        "special.zeta": (lambda x: special.zeta(x + 1.5, 1.5), (p,)),
        "special.polygamma": (lambda x: special.polygamma(2, x + 1), (p,)),
        "norm.ppf": (module("scipy.stats.norm").ppf, (p,)),
        "gamma.cdf": (lambda x: module("scipy.stats.gamma").cdf(x, 2.0), (p,)),
        "multivariate_normal.logpdf": (
            lambda x, c: module("scipy.stats.multivariate_normal").logpdf(x, fnp.zeros(96), c),
            (normal(200, 96), positive),
        ),
        "solve, one matrix": (lambda a, b: fnp.linalg.solve(a, b[..., None]), (positive, normal(200, 96))),
        "solve_triangular, one matrix": (
            lambda a, b: linalg.solve_triangular(a, b[..., None], lower=True), (positive, normal(200, 96)),
        ),
        "where": (fnp.where, (flags, v, w)),
        "nonzero": (lambda x: fnp.nonzero(x, size=size), (flags,)),
        "compress": (lambda c, x: fnp.compress(c, x, size=size // 2), (flags, v)),
        "unique": (lambda x: fnp.unique(x, size=1000), (k,)),
        "argmax of int32": (fnp.argmax, (k,)),
        "nanmax, holes": (fnp.nanmax, (fnp.where(flags, fnp.nan, v),)),
        "count": (lambda x: fnp.sum(x > 0), (v,)),
        "sum of squares of int32": (lambda x: fnp.sum(x * x), (k,)),
        "power, one exponent": (lambda x: x**1.7, (p,)),
        "tile, row": (lambda x: fnp.tile(x, 4), (v,)),
        "delete": (lambda x: fnp.delete(x, 5), (v,)),
        "trace": (fnp.trace, (a,)),
        "bincount": (lambda x: fnp.bincount(x, length=1000), (k,)),
        "bincount, weights": (lambda x, y: fnp.bincount(x, y, length=1000), (k, v)),
        "histogram": (lambda x: fnp.histogram(x, 50), (v,)),
        "digitize": (lambda x: fnp.digitize(x, fnp.linspace(-2, 2, 30)), (v,)),
        "searchsorted": (fnp.searchsorted, (fnp.sort(v), w)),
        "interp": (lambda x, y: fnp.interp(x, fnp.linspace(-3, 3, 100), y), (v, w[:100])),
        "take": (fnp.take, (v, k)),
        "take_along_axis": (lambda x, i: fnp.take_along_axis(x, i, axis=1), (a, whole(n, n, n))),
        "at add": (lambda x, i, y: x.at[i].add(y), (v, k, w)),
        "at set, rows": (lambda x, i, y: x.at[i].set(y), (a, whole(n, n), b)),
        "repeat, traced": (lambda x, r: fnp.repeat(x, r, total_repeat_length=2 * size), (v, k % 4)),
        "top_k": (lambda x: lax.top_k(x, 10), (a,)),
        "transpose": (lambda x: fnp.transpose(x, (2, 0, 1)) * 2, (normal(16, 64, 64),)),
        "rot90": (fnp.rot90, (a,)),
        "roll": (lambda x: fnp.roll(x, 7), (v,)),
        "tile": (lambda x: fnp.tile(x, (2, 2)), (a,)),
        "pad": (lambda x: fnp.pad(x, 3), (a,)),
        "pad, wrap": (lambda x: fnp.pad(x, 3, mode="wrap"), (a,)),
        "pad, edge": (lambda x: fnp.pad(x, 3, mode="edge"), (a,)),
        "pad, reflect": (lambda x: fnp.pad(x, 3, mode="reflect"), (a,)),
        "concatenate": (lambda x, y: fnp.concatenate([x, y]), (v, w)),
        "cross": (fnp.cross, (normal(size, 3), normal(size, 3))),
        "unpackbits": (fnp.unpackbits, (k.astype("uint8"),)),
        "packbits": (fnp.packbits, (flags,)),
        "matmul": (fnp.matmul, (a, b)),
        "matmul, bfloat16": (fnp.matmul, (a.astype("bfloat16"), b.astype("bfloat16"))),
        "matmul, 64 of 8 x 8": (fnp.matmul, (many, many)),
        "ragged_dot": (lax.ragged_dot, (normal(1024, 128), normal(16, 128, 128), fnp.full(16, 64, "int32"))),
        "convolve": (fnp.convolve, (v[:4096], w[:64])),
        "convolve, long": (fnp.convolve, (v[:2000], w[:2000])),
        "depthwise 7 x 7": (_depthwise(lax), (normal(2, 28, 28, 32), normal(7, 7, 1, 32))),
        "correlate": (lambda x, y: fnp.correlate(x, y, "same"), (v[:4096], w[:64])),
        "cumlogsumexp": (lambda x: lax.cumlogsumexp(x), (v,)),
        "cummax": (lambda x: lax.cummax(x, axis=1), (a,)),
        "fft": (fnp.fft.fft, (v,)),
        "rfft2": (fnp.fft.rfft2, (a,)),
        "dct": (module("scipy.fft").dct, (v,)),
    }  # fmt: skip


def _depthwise(lax: Any) -> Any:
    layout = ("NHWC", "HWIO", "NHWC")
    return lambda x, w: lax.conv_general_dilated(
        x, w, (1, 1), "SAME", dimension_numbers=layout, feature_group_count=x.shape[3]
    )


def gradient(side: SimpleNamespace, function: Any, arguments: tuple[Any, ...]) -> Any:
    """Return the gradient by all floating-point arguments of the sum of squares of a function's results, if any."""
    ft, fnp = side.ft, side.fnp
    real = lambda x: fnp.issubdtype(x.dtype, fnp.floating)
    by = tuple(i for i, x in enumerate(arguments) if real(x))
    if not by or not any(real(x) for x in ft.tree.leaves(ft.eval_shape(function, *arguments))):
        return None
    loss = lambda *xs: sum(fnp.sum(fnp.square(x.astype("float32"))) for x in ft.tree.leaves(function(*xs)) if real(x))
    return ft.grad(loss, by)


def with_gradients(side: SimpleNamespace, functions: Cases) -> Cases:
    """Add the gradient of each function that has one on both sides."""
    missing = ("nextafter", "special.betainc")  # JAX has none
    made = dict(functions)
    for name, (function, arguments) in functions.items():
        if name not in missing and (slope := gradient(side, function, arguments)) is not None:
            made[f"gradient of {name}"] = (slope, arguments)
    return made


if __name__ == "__main__":
    this = load(sys.argv[1])
    measure(this, with_gradients(this, cases(this)), tiers=True)
