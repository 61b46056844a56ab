"""Random functions of arrays with a varying number of rows, and padding that makes any read of it visible."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax

#: Functions of two arrays of shape (rows, 3), with a result of that shape.
PAIRS: dict[str, Callable[[Any, Any], Any]] = {
    "add": lambda a, b: a + b,
    "ratio": lambda a, b: a / (1 + fnp.abs(b)),
    "where": lambda a, b: fnp.where(a > b, a, -b),
    "attend": lambda a, b: ft.nn.softmax(a @ b.T) @ a,
    "gather": lambda a, b: a[fnp.argsort(b[:, 0])],
    "both": lambda a, b: fnp.concatenate([a, b])[: a.shape[0]],
    "behind": lambda a, b: fnp.concatenate([b, a])[1 : 1 + a.shape[0]],
    "mixed": lambda a, b: (a.T @ b / a.shape[0])[0] + a,
    "scatter": lambda a, b: a.at[fnp.argsort(b[:, 1])[:2]].add(b[:2]),
}
#: Functions of one array of shape (rows, 3), with a result of that shape.
SINGLE: dict[str, Callable[[Any], Any]] = {
    "centred": lambda a: a - fnp.mean(a, axis=0),
    "scaled": lambda a: a / (1 + fnp.std(a, axis=0)),
    "softmax": lambda a: ft.nn.softmax(a, axis=0),
    "sorted": lambda a: fnp.sort(a, axis=0),
    "reversed": lambda a: a[::-1],
    "running": lambda a: fnp.cumsum(a, axis=0) / (1 + fnp.arange(a.shape[0], dtype="float32")[:, None]),
    "backwards": lambda a: lax.cummax(a, axis=0, reverse=True),
    "rolled": lambda a: fnp.roll(a, 1, axis=0),
    "by_last": lambda a: fnp.tanh(a - a[-1]),
    "by_largest": lambda a: a - a[fnp.argmax(a[:, 0])],
    "flat": lambda a: fnp.ravel(a).reshape(a.shape),
    "logs": lambda a: fnp.log(fnp.abs(a) + 0.1),
    "padded": lambda a: fnp.pad(a, ((1, 2), (0, 0)))[2:-1],
    "turned": lambda a: a.T[::-1].T,
    "mapped": ft.vmap(lambda r: lax.while_loop(lambda c: fnp.sum(c) < 4, lambda c: c + 1, fnp.abs(r))),
    "scanned": lambda a: lax.scan(lambda c, r: (0.5 * c + r, c), fnp.zeros(3, "float32"), a)[1],
    "branched": lambda a: lax.cond(fnp.sum(a) > 0, lambda v: v - fnp.max(v), lambda v: v * 2, a),
    "normal": lambda a: a / fnp.sqrt(a.shape[0]),
    "differences": lambda a: fnp.concatenate([fnp.diff(a, axis=0), a[:1]]),
}  # fmt: skip
#: Functions of one array of shape (rows, 3), with a result that has no axis of rows.
REDUCED: dict[str, Callable[[Any], Any]] = {
    "sum": lambda a: fnp.sum(a, axis=0),
    "mean": fnp.mean,
    "max": lambda a: fnp.max(a, axis=0),
    "min": fnp.min,
    "prod": lambda a: fnp.prod(fnp.tanh(a), axis=0),
    "any": lambda a: fnp.any(a > 1, axis=0),
    "all": lambda a: fnp.all(a > -1),
    "argmin": lambda a: fnp.argmin(a, axis=0),
    "median": lambda a: fnp.median(a, axis=0),
    "gram": lambda a: a.T @ a,
    "logsumexp": lambda a: ft.scipy.special.logsumexp(a),
    "variance": lambda a: fnp.var(a, axis=0),
    "norm": fnp.linalg.norm,
    "segments": lambda a: ft.ops.segment_sum(a, fnp.argmax(a, axis=1), num_segments=3),
    "folded": lambda a: lax.scan(lambda c, r: (0.5 * c + r, None), fnp.zeros(3, "float32"), a, reverse=True)[0],
    "gradient": lambda a: ft.grad(lambda w: fnp.mean(fnp.log(1 + (a @ w) ** 2)))(fnp.ones(3, "float32")),
}


def program(rng: np.random.Generator) -> tuple[Callable[[Any], list[Any]], list[str]]:
    """Return a random function of an array of shape (rows, 3), and the names of its operations."""
    chosen: list[tuple[str, int, int]] = []
    for k in range(int(rng.integers(2, 6))):
        table = PAIRS if rng.random() < 0.3 else SINGLE
        chosen.append((str(rng.choice(sorted(table))), int(rng.integers(k + 1)), int(rng.integers(k + 1))))
    ends = [(str(rng.choice(sorted(REDUCED))), int(rng.integers(len(chosen) + 1))) for _ in range(2)]

    def made(x: Any) -> list[Any]:
        values = [x]
        for name, i, j in chosen:
            values.append(PAIRS[name](values[i], values[j]) if name in PAIRS else SINGLE[name](values[i]))
        return [values[-1], *(REDUCED[name](values[i]) for name, i in ends)]

    return made, [name for name, *_ in chosen] + [name for name, _ in ends]


def poisoned(x: Any, shape: Sequence[int]) -> Any:
    """Pad an array to a shape: with NaN, with integers that are out of bounds as indices, or with True."""
    host = np.asarray(x)
    if host.shape == tuple(shape):
        return x
    fill = np.nan if host.dtype.kind == "f" else np.iinfo(host.dtype).max // 3 if host.dtype.kind in "iu" else True
    out = np.full(shape, fill, host.dtype)
    out[tuple(map(slice, host.shape))] = host
    return out
