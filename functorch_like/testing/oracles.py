"""Inputs for the rows, and their exact results."""

from __future__ import annotations

import importlib
import math
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import Primitive

_ALL, _POSITIVE = (-300.0, 300.0), (1e-3, 300.0)
#: For each row the intervals its operands are drawn from, beside numbers of all magnitudes in them.
DOMAINS: dict[str, tuple[tuple[float, float], ...]] = {
    **dict.fromkeys(
        (
            "abs", "neg", "sign", "floor", "ceil", "square", "sqrt", "rsqrt", "cbrt", "exp", "exp2", "expm1", "log",
            "logistic", "sin", "cos", "tan", "sinh", "cosh", "tanh", "atan", "asinh", "erf", "bessel_i0e",
            "bessel_i1e",
        ),
        (_ALL,),
    ),
    "log1p": ((-1.0, 300.0),), "asin": ((-1.0, 1.0),), "acos": ((-1.0, 1.0),), "atanh": ((-1.0, 1.0),),
    "acosh": ((1.0, 300.0),),
    "erfc": ((-6.0, 30.0),), "erf_inv": ((-1.0, 1.0),), "lgamma": (_POSITIVE,), "digamma": (_POSITIVE,),
    "add": (_ALL, _ALL), "sub": (_ALL, _ALL), "mul": (_ALL, _ALL), "div": (_ALL, _ALL), "rem": (_ALL, _ALL),
    "pow": (_POSITIVE, (-20.0, 20.0)), "atan2": (_ALL, _ALL), "max": (_ALL, _ALL), "min": (_ALL, _ALL),
    "igamma": (_POSITIVE, _POSITIVE), "igammac": (_POSITIVE, _POSITIVE), "zeta": ((1.01, 30.0), _POSITIVE),
}  # fmt: skip
_SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, 1e-3, 1.5, math.inf, -math.inf, math.nan)
#: Rows whose special values are no standard's.
_PLAIN = frozenset({"igamma", "igammac", "zeta"})


def inputs(name: str, dtype: Any, count: int) -> list[np.ndarray[Any, Any]]:
    """Operands of a row: evenly spaced ones, of all magnitudes, close to the ends and to 1, and special ones."""
    rng = np.random.default_rng(7)
    info = dtypes.finfo(dtype)
    columns = []
    for low, high in DOMAINS[name]:
        span = rng.uniform(max(low, -float(info.max)), min(high, float(info.max)), count)
        least = math.log10(float(info.tiny)) + 1
        sizes = 10 ** rng.uniform(least, math.log10(max(abs(low), abs(high))), count)
        signed = np.where(rng.random(count) < 0.5, sizes, -sizes)
        ends = np.concatenate(
            [low + sizes[: count // 4], high - sizes[: count // 4], 1 + signed[: count // 4], 2 + signed]
        )
        columns.append(np.clip(np.concatenate([span, signed, ends]), low, high))
    if len(columns) == 2:
        columns[1] = np.concatenate([columns[1][: count // 2], rng.permutation(columns[1][count // 2 :])])
    if name in _PLAIN:  # mpmath takes milliseconds for one
        columns = [c[::20] for c in columns]
    special = [] if name in _PLAIN else np.array(np.meshgrid(*[_SPECIAL] * len(columns))).reshape(len(columns), -1)
    made = [np.concatenate([c, *([special[k]] if len(special) else [])]) for k, c in enumerate(columns)]
    with np.errstate(all="ignore"):
        made = [c.astype(dtype) for c in made]
    tiny = [(np.abs(c.astype(np.float64)) < float(info.tiny)) & (c != 0) for c in made]
    return [np.where(np.logical_or.reduce(tiny), np.ones((), dtype), c).astype(dtype) for c in made]


def exact(prim: Primitive, operands: list[np.ndarray[Any, Any]]) -> tuple[np.ndarray[Any, Any], str]:
    """The results as longdouble where mpmath knows the function (and the operands are finite), else by `ref`."""
    wide = [x.astype(np.float64) for x in operands]
    with np.errstate(all="ignore"):
        plain = np.asarray(prim.ref(*wide)).astype(np.longdouble)
    try:
        mp = importlib.import_module("mpmath")
    except ImportError:
        return plain, "ref"
    function = _functions(mp).get(prim.name)
    if function is None:
        return plain, "ref"
    finite = np.isfinite(plain) & np.logical_and.reduce([np.isfinite(x) & (x != 0) for x in wide])
    out = plain.copy()
    with mp.workdps(40):
        for k in np.flatnonzero(finite):
            value = function(*(mp.mpf(float(x[k])) for x in wide))
            high = float(value)
            out[k] = np.longdouble(high) + np.longdouble(float(value - high)) if math.isfinite(high) else high
    return out, "mpmath"


def _functions(mp: Any) -> dict[str, Any]:
    same = ("exp", "expm1", "log", "log1p", "sqrt", "cbrt", "sin", "cos", "tan", "asin", "acos", "atan", "sinh", "cosh")
    return {
        **{name: getattr(mp, name) for name in (*same, "tanh", "asinh", "acosh", "atanh", "erf", "erfc")},
        "rsqrt": lambda x: 1 / mp.sqrt(x), "exp2": lambda x: mp.power(2, x), "pow": mp.power, "div": lambda x, y: x / y,
        "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)), "add": lambda x, y: x + y, "sub": lambda x, y: x - y,
        "mul": lambda x, y: x * y, "square": lambda x: x * x, "logistic": lambda x: 1 / (1 + mp.exp(-x)),
        "atan2": mp.atan2, "erf_inv": _erfinv(mp), "lgamma": lambda x: mp.loggamma(x).real, "digamma": mp.digamma,
        "bessel_i0e": lambda x: mp.exp(-abs(x)) * mp.besseli(0, x),
        "bessel_i1e": lambda x: mp.exp(-abs(x)) * mp.besseli(1, x),
        "igamma": lambda a, x: mp.gammainc(a, 0, x, regularized=True),
        "igammac": lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
    }  # fmt: skip


def _erfinv(mp: Any) -> Any:
    def inverse(y: Any) -> Any:
        return mp.erfinv(y) if abs(y) < 1 else mp.inf * y

    return inverse
