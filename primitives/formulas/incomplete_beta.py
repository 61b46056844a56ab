"""The regularized incomplete beta function and its derivatives by a and b, computed in float64.

I = x**a (1 - x)**b / (a B(a, b)) times the continued fraction DLMF 8.17.22. The fraction converges slowly above
x = (a + 1) / (a + b + 2): there it is 1 - I with a and b, x and 1 - x exchanged. The derivatives by a and b are those
of the fraction's terms. The factor in front is written around the distribution's mean, so that nothing cancels in its
exponent. Where a and b are both large the fraction has too many terms: there I is the error function and the first
term of a series in 1 / (a + b), DLMF 8.18.9 to 8.18.11.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from functorch_like.primitives.formulas.gamma import digamma, log1p_less
from functorch_like.primitives.formulas.gamma_single import stirling
from functorch_like.primitives.formulas.special import erfc
from functorch_like.primitives.formulas.term import Term, choose, iterate, where, where_needed

#: End of the fraction: a factor that should be 1 is off by three roundings. In single precision it may be sooner.
DOUBLE, SINGLE = 2.0**-51, 1e-10
_MOST = 10000
#: The least a and b of the expansion, whose next term is a**-1.5.
_LARGE = 1e8


def _factor(a: Term, b: Term, x: Term, y: Term) -> Term:
    """x**a y**b / B(a, b), where y = 1 - x."""
    off = x * b - y * a  # of the mean a / (a + b), times a + b
    u, v = off / a, -(off / b)
    part = lambda n, r, z: where(abs(r) < 0.5, n * log1p_less(r), n * (z * (a + b) / n).log() - n * r)
    exponent = part(a, u, x) + part(b, v, y) + stirling(a + b) - stirling(a) - stirling(b)
    return exponent.exp() * (a / (a + b) * b / (2 * math.pi)).sqrt()


def _fraction_slope(a: Term, b: Term, x: Term, by_a: Term, active: Term) -> tuple[Term, Term]:
    """The fraction by Lentz's algorithm, and the derivative of its logarithm: by a where `by_a` is 1, by b where 0."""

    def one(top: Term, dtop: Term, c: Term, dc: Term, d: Term, dd: Term) -> Any:
        new_d = 1 / (top * d + 1)
        new_dd = -(new_d * new_d) * (dtop * d + top * dd)
        new_c = top / c + 1
        new_dc = (dtop - top * dc / c) / c
        return new_c, new_dc, new_d, new_dd

    def odd(k: Any, a: Term, b: Term, x: Term, by_a: Term) -> tuple[Term, Term]:
        twice = a + k + k
        ratio = x * (a + b + k) / twice * ((a + k) / (twice + 1))
        log_a = 1 / (a + k) - 1 / twice - 1 / (twice + 1)
        return -ratio, -ratio * (by_a * log_a + 1 / (a + b + k))

    def step(k: Term, operands: Any, h: Term, g: Term, c: Term, dc: Term, d: Term, dd: Term) -> Any:
        a, b, x, by_a = operands
        twice = a + k + k
        shared = k * x / ((twice - 1) * twice)
        top = shared * (b - k)
        dtop = where(by_a > 0.5, -(top * (1 / (twice - 1) + 1 / twice)), shared)
        c, dc, d, dd = one(top, dtop, c, dc, d, dd)
        h, g = h * (c * d), g + dc / c + dd / d
        c, dc, d, dd = one(*odd(k, a, b, x, by_a), c, dc, d, dd)
        factor, change = c * d, dc / c + dd / d
        done = (abs(factor - 1) <= DOUBLE) & (abs(change) <= (abs(g) + abs(dc / c)) * DOUBLE)
        return (h * factor, g + change, c, dc, d, dd), done

    first, dfirst = odd(0, a, b, x, by_a)
    d = 1 / (first + 1)
    dd = -(d * d * dfirst)
    start = [d, dd / d, a.like(1), a.like(0), d, dd]
    return tuple(iterate(start, [a, b, x, by_a], active, step, _MOST)[:2])  # type: ignore[return-value]


#: The cube of it is a number.
_HUGE = 1e90


def _fraction(a: Term, b: Term, x: Term, active: Term, eps: float) -> Term:
    """The fraction as a quotient of two recurrences (DLMF 3.10.5), whose denominator is made 1 after each two steps.

    XLA computes each part of the state by itself, so there are few of them, and a pass has one pair of steps.
    """

    def step(k: Term, operands: Any, value: Term, n: Term, d: Term) -> Any:
        a, b, x = operands
        twice = a + k + k
        inverse = 1 / (twice * (twice * twice - 1))  # one division for both coefficients
        even = k * (twice + 1) * inverse * ((b - k) * x)
        odd = -(a + k) * (twice - 1) * inverse * ((a + b + k) * x)
        n, d = value + even * n, 1 + even * d
        inverse = 1 / (d + odd)
        new = (n + odd * value) * inverse
        return (new, n * inverse, d * inverse), abs(new - value) <= abs(new) * eps

    huge = a > _HUGE  # there only b / a counts
    a, b = where(huge, _HUGE, a), where(huge, b / a * _HUGE, b)
    first = 1 / (1 - x * (a + b) / (a + 1))
    return iterate([first, first, first], [a, b, x], active, step, _MOST)[0]


def _uniform(a: Term, b: Term, x: Term, y: Term) -> tuple[Term, Term, Term]:
    """I for large a and b, and its derivatives by them. With E = (a + b) eta**2 / 2 its root's sign is that of eta."""
    n = a + b
    mean, rest = a / n, b / n
    spread = (mean * rest).sqrt()
    off = x * rest - y * mean  # of the mean
    u, v, w = off / mean, -(off / rest), off / spread
    size = -(a * log1p_less(u) + b * log1p_less(v))
    root = where(off < 0, -size.sqrt(), size.sqrt())
    # 1 / eta - 1 / w, which cancels in the middle; there the two terms of its series that matter.
    skew, square = (rest - mean) / spread, spread * spread
    distance = abs(u) + abs(v)
    middle = distance < 1e-4
    series = skew * (1 / 3) + w * (skew * skew * (1 / 6) + 0.75 - 0.25 / square)
    first = where(middle, series, (n * 0.5).sqrt() / root - 1 / where(middle, 1, w))
    density = (-size).exp() / (n * (2 * math.pi)).sqrt()
    value = erfc(-root) * 0.5 + density * first
    # Each use of `off` may be rounded in another way, and to another sign: close to the mean, the limit.
    centre = distance < 1e-8
    over_root = (n * 0.5).sqrt() / where(centre, 1, root)

    def slope(log_ratio: Term, limit: Term) -> Term:
        # E has the derivative -log_ratio; that of the first coefficient is smaller than the next.
        return density * (log_ratio * first - where(centre, limit, log_ratio * over_root))

    return value, slope(u.log1p(), spread / mean), slope(v.log1p(), -(spread / rest))


def formula(wrt: int | None = None, eps: float = DOUBLE) -> Callable[[Term, Term, Term], Term]:
    """I, or its derivative by operand `wrt`, 0 or 1. The fraction ends at changes of less than `eps`."""

    def made(a: Term, b: Term, x: Term) -> Term:
        inside = (a > 0) & (b > 0) & (x > 0) & (x < 1) & (a < math.inf) & (b < math.inf)
        p, q, z = where(inside, a, 1), where(inside, b, 1), where(inside, x, 0.5)
        swap = z > (p + 1) / (p + q + 2)
        p, q, z, y = where(swap, q, p), where(swap, p, q), where(swap, 1 - z, z), where(swap, z, 1 - z)
        large = (p > _LARGE) & (q > _LARGE)
        far = where_needed(large, _uniform, where(large, p, 1), where(large, q, 1), z, y, count=3)
        active, front, edge = inside & ~large, _factor(p, q, z, y) / p, 0.0
        if wrt is None:
            value, edge = where(large, far[0], front * _fraction(p, q, z, active, eps)), 1.0
            value = where(swap, 1 - value, value)
        else:
            by_first = where(swap, z.like(wrt), z.like(1 - wrt))
            h, g = _fraction_slope(p, q, z, by_first, active)
            total, first = digamma(p + q), by_first > 0.5
            slope = where(first, z.log() + total - digamma(p) - 1 / p, y.log() + total - digamma(q))
            value = where(large, where(first, far[1], far[2]), front * h * (slope + g))
            value = where(swap, -value, value)
        valid = (a >= 0) & (b >= 0) & (x >= 0) & (x <= 1)
        empty = (a.equals(0) & b.equals(0)) | (a.equals(math.inf) & b.equals(math.inf))
        high = (valid & ~empty) & (x.equals(1) | ((a.equals(0) | b.equals(math.inf)) & (x > 0)))
        return choose(x.like(math.nan), (inside, value), (high, x.like(edge)), (valid & ~empty, x.like(0)))

    return made
