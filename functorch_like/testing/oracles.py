"""Exact results of elementwise primitives: by mpmath to 40 digits, or by their reference in NumPy, in float64."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from functorch_like.core import Primitive

Array = np.ndarray[Any, Any]


def exact(prim: Primitive, operands: list[Array], params: Mapping[str, Any]) -> tuple[Array, str]:
    """Exact results as longdouble (clongdouble for complex numbers), and the name of their source.

    The source is mpmath where it has the function, for finite values; else it is `ref` in double precision.
    """
    imaginary = operands[0].dtype.kind == "c"
    if prim.name == "nextafter":  # the step is that of the dtype
        return np.asarray(prim.ref(*operands)).astype(np.longdouble), "ref"
    wide = [x.astype(np.complex128 if imaginary else np.float64) for x in operands]
    with np.errstate(all="ignore"):
        out = np.asarray(prim.ref(*wide, **params))
    out = out.astype(np.clongdouble if out.dtype.kind == "c" else np.longdouble)
    try:
        mp = importlib.import_module("mpmath")
    except ImportError:
        return out, "ref"
    function = functions(mp, **params).get(prim.name)
    if function is None:
        return out, "ref"
    usual, edge = [np.logical_and.reduce([_finite(x, zero) for x in wide]) for zero in (False, True)]
    with mp.workdps(40):
        number = (lambda v: mp.mpc(v.real, v.imag)) if imaginary else lambda v: mp.mpf(float(v))
        for k in np.flatnonzero(edge & _finite(out, zero=True)):
            value = _long(function(*(number(x[k]) for x in wide)), out.dtype)
            # The sign of a part that is zero selects the side of a branch cut; mpmath has no such sign.
            if usual[k] or abs(value - out[k]) <= 1e-6 * abs(out[k]):
                out[k] = value
    return out, "mpmath"


def _finite(x: Array, zero: bool) -> Array:
    parts = (x.real, x.imag) if x.dtype.kind == "c" else (x,)
    return np.logical_and.reduce([np.isfinite(p) & (zero | (p != 0)) for p in parts])


def _long(value: Any, dtype: Any) -> Any:
    if dtype.kind == "c":
        return _long(value.real, np.dtype(np.longdouble)) + 1j * _long(value.imag, np.dtype(np.longdouble))
    high = float(value.real)
    return np.longdouble(high) + np.longdouble(float(value.real - high)) if math.isfinite(high) else np.longdouble(high)


def functions(mp: Any, y: int = 0, m: int = 0, wrt: int = 0, rounding_method: int = 0) -> dict[str, Callable[..., Any]]:
    """mpmath's function for each primitive, given the primitive's parameters."""
    same = ("exp", "expm1", "log", "sqrt", "sin", "cos", "tan", "asin", "acos", "sinh", "cosh")
    lower = lambda a, x: mp.gammainc(a, 0, x, regularized=True)
    beta = lambda a, b, x: mp.betainc(a, b, 0, x, regularized=True)
    by_a = lambda a, b, x: _slope(mp, lambda v: beta(v, b, x), a)
    by_b = lambda a, b, x: _slope(mp, lambda v: beta(a, v, x), b)

    def random(a: Any, x: Any) -> Any:
        return -_slope(mp, lambda v: lower(v, x), a) / mp.exp((a - 1) * mp.log(x) - x - mp.loggamma(a))

    return {
        **{name: getattr(mp, name) for name in (*same, "tanh", "asinh", "acosh", "erf", "erfc", "digamma")},
        **{name: _small(mp, getattr(mp, name)) for name in ("atan", "atanh")},
        "log1p": _log1p(mp),
        "add": lambda x, y: x + y, "sub": lambda x, y: x - y, "mul": lambda x, y: x * y, "div": lambda x, y: x / y,
        "square": lambda x: x * x, "integer_pow": lambda x: x**y, "half_integer_pow": lambda x: x**y,
        "pow": mp.power, "exp2": lambda x: mp.power(2, x),
        "rsqrt": lambda x: 1 / mp.sqrt(x), "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)), "abs": abs,
        "sign": mp.sign, "logistic": lambda x: 1 / (1 + mp.exp(-x)), "atan2": mp.atan2,
        "erf_inv": lambda x: mp.erfinv(x) if abs(x) < 1 else mp.inf * x,
        "lgamma": lambda x: mp.log(abs(mp.gamma(x))) if x < 0 else mp.loggamma(x),
        "polygamma": lambda x: mp.psi(m, x), "zeta": lambda s, q: _hurwitz(mp, s, q),
        "bessel_i0e": lambda x: mp.exp(-abs(x)) * mp.besseli(0, x),
        "bessel_i1e": lambda x: mp.exp(-abs(x)) * mp.besseli(1, x),
        "igamma": lower, "igammac": lambda a, x: mp.gammainc(a, x, mp.inf, regularized=True),
        "igamma_grad_a": lambda a, x: _slope(mp, lambda v: lower(v, x), a), "random_gamma_grad": random,
        "regularized_incomplete_beta": beta, "incomplete_beta_grad": by_b if wrt else by_a,
    }  # fmt: skip


def _small(mp: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function whose values are about as small as its operand, which mpmath computes with more digits accordingly."""

    def wide(x: Any) -> Any:
        size = float(mp.log10(abs(x))) if x else 0.0
        with mp.workdps(40 + max(0, -int(2 * size))):
            return f(x)

    return wide


def _log1p(mp: Any) -> Callable[[Any], Any]:
    def complex(z: Any) -> Any:
        x, y = z.real, z.imag
        return mp.mpc(mp.log1p(2 * x + x * x + y * y) / 2, mp.atan2(y, 1 + x))

    return lambda z: complex(z) if isinstance(z, mp.mpc) else mp.log1p(z)


def _slope(mp: Any, f: Callable[[Any], Any], at: Any) -> Any:
    """A derivative by central differences. It may be as small as 1e-100, where f itself is close to 1."""
    with mp.workdps(200):
        step = at * mp.mpf(10) ** -30
        return (f(at + step) - f(at - step)) / (2 * step)


def _hurwitz(mp: Any, s: Any, q: Any) -> Any:
    """The Hurwitz zeta function. mpmath's digits are those of a number near 1, and it may be as small as q**-s."""
    with mp.workdps(50 + int(max(0, s * mp.log10(q)))):
        return mp.zeta(s, q)
