"""Algebra of unit quaternions x, y, z, w, along the last dimension; derivatives stay finite at the identity."""

from __future__ import annotations

import math
from typing import Any

from functorch_like import numpy as fnp
from functorch_like.core import aval_of
from functorch_like.transforms.eager_jit import eager_jit


def _parts(x: Any) -> list[Any]:
    return [x[..., i] for i in range(aval_of(x).shape[-1])]


def _joined(*parts: Any) -> Any:
    return fnp.stack(fnp.broadcast_arrays(*parts), axis=-1)


def _square(x: Any) -> Any:
    return (x * x).sum(-1, keepdims=True)


@eager_jit
def normalized(q: Any) -> Any:
    """Return quaternions scaled to norm 1."""
    return q / fnp.sqrt(_square(q))


@eager_jit
def canonical(q: Any) -> Any:
    """Return, of the two quaternions of a rotation, the one with w >= 0."""
    return fnp.where(q[..., 3:] < 0, -q, q)


@eager_jit
def conjugate(q: Any) -> Any:
    """Return the inverse rotation."""
    return fnp.concatenate([-q[..., :3], q[..., 3:]], -1)


@eager_jit
def product(p: Any, q: Any) -> Any:
    """Return the rotation by q, then by p."""
    (x, y, z, w), (a, b, c, d) = _parts(p), _parts(q)
    return _joined(
        w * a + x * d + y * c - z * b,
        w * b - x * c + y * d + z * a,
        w * c + x * b - y * a + z * d,
        w * d - x * a - y * b - z * c,
    )


# ------------------------------------------------------------------------------------------------------------- vectors
@eager_jit
def from_rotvec(r: Any) -> Any:
    """Return sin(a / 2) times the axis, and cos(a / 2), with series for small angles a."""
    square = _square(r)
    small = square < 1e-6
    angle = fnp.sqrt(fnp.where(small, 1, square))
    by = fnp.where(small, 0.5 - square / 48 + square**2 / 3840, fnp.sin(angle / 2) / angle)
    last = fnp.where(small, 1 - square / 8 + square**2 / 384, fnp.cos(angle / 2))
    return fnp.concatenate([by * r, last], -1)


@eager_jit
def as_rotvec(q: Any) -> Any:
    """Return the axis times the angle, the inverse of `from_rotvec`."""
    q = canonical.inline(q)
    square = _square(q[..., :3])
    small = square < 1e-6
    size = fnp.sqrt(fnp.where(small, 1, square))
    # 2 asin(s) / s = 2 + s**2 / 3 + 3 s**4 / 20 + ...
    by = fnp.where(small, 2 + square / 3 + 3 * square**2 / 20, 2 * fnp.arctan2(size, q[..., 3:]) / size)
    return by * q[..., :3]


@eager_jit
def from_mrp(m: Any) -> Any:
    """Return quaternions from tan(a / 4) times the axis."""
    square = _square(m)
    return fnp.concatenate([2 * m, 1 - square], -1) / (1 + square)


@eager_jit
def as_mrp(q: Any) -> Any:
    """Return tan(a / 4) times the axis, the inverse of `from_mrp`."""
    q = canonical.inline(q)
    return q[..., :3] / (1 + q[..., 3:])


# ------------------------------------------------------------------------------------------------------------ matrices
@eager_jit
def as_matrix(q: Any) -> Any:
    """Return the matrix of a rotation."""
    x, y, z, w = _parts(q)
    rows = (
        (w * w + x * x - y * y - z * z, 2 * (x * y - z * w), 2 * (x * z + y * w)),
        (2 * (x * y + z * w), w * w - x * x + y * y - z * z, 2 * (y * z - x * w)),
        (2 * (x * z - y * w), 2 * (y * z + x * w), w * w - x * x - y * y + z * z),
    )
    return fnp.stack([fnp.stack(row, -1) for row in rows], -2)


@eager_jit
def from_matrix(m: Any) -> Any:
    """Return quaternions, from the largest of x, y, z, w: S. W. Shepperd, "Quaternion from rotation matrix", 1978."""
    at = lambda i, j: m[..., i, j]
    trace = at(0, 0) + at(1, 1) + at(2, 2)
    both, apart = (lambda i, j: at(i, j) + at(j, i)), (lambda i, j: at(i, j) - at(j, i))
    # Each is the quaternion times four times one of its parts.
    candidates = fnp.stack([
        _joined(1 - trace + 2 * at(0, 0), both(0, 1), both(0, 2), apart(2, 1)),
        _joined(both(0, 1), 1 - trace + 2 * at(1, 1), both(1, 2), apart(0, 2)),
        _joined(both(0, 2), both(1, 2), 1 - trace + 2 * at(2, 2), apart(1, 0)),
        _joined(apart(2, 1), apart(0, 2), apart(1, 0), 1 + trace),
    ], -2)  # fmt: skip
    largest = fnp.argmax(_joined(at(0, 0), at(1, 1), at(2, 2), trace), -1)
    chosen = fnp.take_along_axis(candidates, largest[..., None, None], axis=-2)[..., 0, :]
    return normalized.inline(chosen)


# -------------------------------------------------------------------------------------------------------------- angles
@eager_jit(static=("axes", "turning"))
def from_euler(angles: Any, axes: tuple[int, ...], turning: bool) -> Any:
    """Return rotations about axes in turn, which are fixed or turn as well."""
    whole = None
    for i, axis in enumerate(axes):
        half = angles[..., i] / 2
        parts = [fnp.zeros_like(half)] * 3
        parts[axis] = fnp.sin(half)
        one = _joined(*parts, fnp.cos(half))
        whole = one if whole is None else product.inline(*((whole, one) if turning else (one, whole)))
    return whole


@eager_jit(static=("axes", "turning"))
def as_euler(q: Any, axes: tuple[int, int, int], turning: bool) -> Any:
    """Return the angles about three axes, the inverse of `from_euler`: E. Bernardes, S. Viollet, 2022."""
    i, j, k = axes[::-1] if turning else axes
    same = i == k
    k = 3 - i - j if same else k
    sign = (i - j) * (j - k) * (k - i) // 2
    parts = _parts(q)
    x, y, z, w = parts[i], parts[j], sign * parts[k], parts[3]
    a, b, c, d = (w, x, y, z) if same else (w - y, x + z, y + w, z - x)
    middle = 2 * fnp.arctan2(fnp.hypot(c, d), fnp.hypot(a, b))
    total, apart = fnp.arctan2(b, a), fnp.arctan2(d, c)
    first, last = total - apart, total + apart
    # Where only the sum or difference of two angles is determined, the first one takes all of it.
    close = 1e-7 if aval_of(q).dtype.itemsize >= 8 else 1e-3
    low, high = middle <= close, middle >= math.pi - close
    alone = fnp.where(low, 2 * total, 2 * apart * (1 if turning else -1))
    outer, inner = (last, first) if turning else (first, last)
    outer, inner = fnp.where(low | high, alone, outer), fnp.where(low | high, 0, inner)
    if not same:  # the last angle about fixed axes has the opposite sign
        outer, inner = (outer * sign, inner) if turning else (outer, inner * sign)
    middle = middle if same else middle - math.pi / 2
    wrapped = lambda angle: fnp.where(
        angle > math.pi, angle - 2 * math.pi, fnp.where(angle < -math.pi, angle + 2 * math.pi, angle)
    )
    return _joined(wrapped(outer), middle, wrapped(inner))
