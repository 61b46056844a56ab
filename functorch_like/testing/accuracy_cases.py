"""Cases of the accuracy report: each elementwise primitive with its parameters and inputs.

Primitives that are exact by nature (comparisons, bits, choices) are not here.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes

Array = np.ndarray[Any, Any]


class Case(NamedTuple):
    """A primitive with parameters.

    Args:
        primitive: its name in the table of primitives.
        params: its parameters.
        domains: an interval for each operand, beside numbers of all magnitudes in it.
        complex: whether complex numbers are measured too.
        costly: whether the exact results take milliseconds each: then there are fewer inputs, and no special ones.
    """

    primitive: str
    params: Mapping[str, Any]
    domains: tuple[tuple[float, float], ...]
    complex: bool = False
    costly: bool = False


_ALL, _POSITIVE, _UNIT = (-300.0, 300.0), (1e-3, 300.0), (-1.0, 1.0)
_GAMMA, _BETA = (0.01, 100.0), (0.1, 30.0)


def _cases() -> list[Case]:
    real = [
        *[(primitive, _ALL) for primitive in ("floor", "ceil", "cbrt", "erf", "bessel_i0e", "bessel_i1e")],
        ("erfc", (-6.0, 30.0)), ("erf_inv", _UNIT), ("lgamma", (-30.0, 300.0)), ("digamma", (-30.0, 300.0)),
    ]  # fmt: skip
    both = [
        *[(primitive, _ALL) for primitive in ("abs", "neg", "sign", "square", "sqrt", "rsqrt", "exp", "exp2", "expm1")],
        *[(primitive, _ALL) for primitive in ("log", "logistic")],
        *[(primitive, _ALL) for primitive in ("sinh", "cosh", "tanh", "atan", "asinh")],
        *[(primitive, (-1e5, 1e5)) for primitive in ("sin", "cos", "tan")],
        ("log1p", (-1.0, 300.0)), ("asin", _UNIT), ("acos", _UNIT), ("atanh", _UNIT), ("acosh", (1.0, 300.0)),
    ]  # fmt: skip
    pairs = [
        *[(primitive, _ALL, _ALL) for primitive in ("rem", "atan2", "max", "min", "nextafter")],
    ]  # fmt: skip
    return [
        *[Case(primitive, {}, (domain,)) for primitive, domain in real],
        *[Case(primitive, {}, (domain,), complex=True) for primitive, domain in both],
        *[Case("round", {"rounding_method": method}, (_ALL,)) for method in (0, 1)],
        *[Case("integer_pow", {"y": y}, ((-30.0, 30.0),), complex=True) for y in (2, 3, 7, 16, -1, -3)],
        *[Case("half_integer_pow", {"y": y}, (_POSITIVE,)) for y in (-2.5, -1.5, -0.5, 1.5, 2.5)],
        *[Case("polygamma", {"m": m}, (_POSITIVE,), costly=True) for m in (0, 1, 2, 5)],
        *[Case(primitive, {}, (left, right)) for primitive, left, right in pairs],
        *[Case(primitive, {}, (_ALL, _ALL), complex=True) for primitive in ("add", "sub", "mul", "div")],
        Case("pow", {}, (_POSITIVE, (-20.0, 20.0)), complex=True),
        Case("zeta", {}, ((1.01, 30.0), _POSITIVE), costly=True),
        *[Case(primitive, {}, (_POSITIVE, _POSITIVE), costly=True) for primitive in ("igamma", "igammac")],
        *[Case(primitive, {}, (_GAMMA, _GAMMA), costly=True) for primitive in ("igamma_grad_a", "random_gamma_grad")],
        Case("regularized_incomplete_beta", {}, (_BETA, _BETA, (0.001, 0.999)), costly=True),
        *[Case("incomplete_beta_grad", {"wrt": k}, (_BETA, _BETA, (0.001, 0.999)), costly=True) for k in (0, 1)],
    ]


def label(case: Case) -> str:
    """Name of a line of the report."""
    return case.primitive + "".join(f" {k}={v}" for k, v in case.params.items())


CASES: dict[str, Case] = {label(case): case for case in _cases()}

_SPECIAL = (0.0, -0.0, 1.0, -1.0, 2.0, -2.0, 0.5, -0.5, 3.0, 1e-3, 1.5, math.inf, -math.inf, math.nan)


def inputs(case: Case, dtype: Any, count: int) -> list[Array]:
    """Operands: evenly spaced ones, of all magnitudes, close to the ends and to 1 and 2, and special ones."""
    rng = np.random.default_rng(7)
    if not dtypes.is_complex(dtype):
        return _normal(_columns(case, dtype, count, rng), dtype)
    part = dtypes.real_part(dtype)
    most = 3.0 if case.primitive == "pow" else 30.0  # exponentials of more are infinite or zero
    plane = case._replace(domains=((-most, most),) * 2)
    made: list[Array] = []
    for _ in case.domains:
        re, im = _normal(_columns(plane, part, count, rng), part)
        made.append(joined(re, im, dtype))
    return made


def joined(re: Array, im: Array, dtype: Any) -> Array:
    """A complex array of its parts: `re + 1j * im` would spoil infinities and signs of zero."""
    out = np.empty(re.shape, dtype)
    out.real, out.imag = re, im
    return out


def _columns(case: Case, dtype: Any, count: int, rng: np.random.Generator) -> list[Array]:
    info = dtypes.finfo(dtype)
    count = max(8, count // 20) if case.costly else count
    columns = []
    for low, high in case.domains:
        low, high = max(low, -float(info.max)), min(high, float(info.max))
        span = rng.uniform(low, high, count)
        sizes = 10 ** rng.uniform(math.log10(float(info.tiny)) + 1, math.log10(max(abs(low), abs(high))), count)
        signed = np.where(rng.random(count) < 0.5, sizes, -sizes)
        near = count // 4
        ends = [low + sizes[:near], high - sizes[:near], 1 + signed[:near], 2 + signed[:near]]
        columns.append(np.clip(np.concatenate([span, signed, *ends]), low, high))
    for k in range(1, len(columns)):  # half of the pairs are of like kind, half of unlike
        half = len(columns[k]) // 2
        columns[k] = np.concatenate([columns[k][:half], rng.permutation(columns[k][half:])])
    special = () if case.costly else tuple(itertools.product(_SPECIAL, repeat=len(columns)))
    return [np.concatenate([c, [row[k] for row in special]]) for k, c in enumerate(columns)]


def _normal(columns: list[Array], dtype: Any) -> list[Array]:
    """Convert to a dtype, with 1 where an operand would be subnormal."""
    info = dtypes.finfo(dtype)
    with np.errstate(all="ignore"):
        made = [c.astype(dtype) for c in columns]
    tiny = [(np.abs(c.astype(np.float64)) < float(info.tiny)) & (c != 0) for c in made]
    return [np.where(np.logical_or.reduce(tiny), np.ones((), dtype), c).astype(dtype) for c in made]
