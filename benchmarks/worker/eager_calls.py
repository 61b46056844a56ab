"""Times of calls on small arrays outside of jit: `PYTHON eager_calls.py SIDE` prints a JSON object of seconds."""

import json
import statistics
import sys

import numpy as np
from clock import repeated
from sides import load

side = load(sys.argv[1])
xp, lax, jit = side.fnp, side.lax, side.ft.jit
linalg = xp.linalg
host, row = np.ones((4, 8), np.float32), np.arange(64, dtype=np.float32)
x, v, square = xp.asarray(host), xp.asarray(row), xp.asarray(2 * np.eye(4, dtype=np.float32))
places, mask = xp.asarray(np.array([0, 1], np.int32)), v > 3
compiled = jit(lambda a: a + 1)
ahead = compiled.lower(x).compile()

CALLS = {
    "x + x": lambda: x + x,
    "x + 1": lambda: x + 1,
    "x > 0": lambda: x > 0,
    "x @ x.T": lambda: x @ x.T,
    "x[0]": lambda: x[0],
    "x[:, 1]": lambda: x[:, 1],
    "x[places]": lambda: x[places],
    "x.at[0].set(1)": lambda: x.at[0].set(1.0),
    "exp": lambda: xp.exp(x),
    "mod by 2": lambda: xp.mod(x, 2),
    "maximum with 0": lambda: xp.maximum(x, 0.0),
    "where": lambda: xp.where(mask, v, v),
    "clip to 0, 1": lambda: xp.clip(x, 0, 1),
    "allclose": lambda: xp.allclose(x, x),
    "sum": lambda: xp.sum(x),
    "mean over axis 0": lambda: xp.mean(x, axis=0),
    "std": lambda: xp.std(x),
    "median": lambda: xp.median(v),
    "percentile 50": lambda: xp.percentile(v, 50.0),
    "cumsum": lambda: xp.cumsum(v),
    "sort": lambda: xp.sort(v),
    "argmax": lambda: xp.argmax(v),
    "diff": lambda: xp.diff(v),
    "take": lambda: xp.take(v, places),
    "interp": lambda: xp.interp(v, v, v),
    "dot": lambda: xp.dot(x, x.T),
    "einsum": lambda: xp.einsum("ij,kj->ik", x, x),
    "norm": lambda: linalg.norm(v),
    "inv": lambda: linalg.inv(square),
    "solve": lambda: linalg.solve(square, x),
    "svd": lambda: linalg.svd(x),
    "eigh": lambda: linalg.eigh(square),
    "ravel": lambda: xp.ravel(x),
    "transpose": lambda: xp.transpose(x),
    "swapaxes": lambda: xp.swapaxes(x, 0, 1),
    "squeeze": lambda: xp.squeeze(x),
    "flip": lambda: xp.flip(v),
    "roll by 1": lambda: xp.roll(v, 1),
    "tile by 2": lambda: xp.tile(x, 2),
    "concatenate": lambda: xp.concatenate((x, x)),
    "stack": lambda: xp.stack((x, x)),
    "pad": lambda: xp.pad(v, 2),
    "tril": lambda: xp.tril(x),
    "zeros": lambda: xp.zeros((3, 4)),
    "arange": lambda: xp.arange(10),
    "linspace": lambda: xp.linspace(0, 1, 10),
    "asarray of NumPy's": lambda: xp.asarray(host),
    "exp of NumPy's": lambda: xp.exp(host),
    "add of NumPy's": lambda: xp.add(host, host),
    "sum of NumPy's": lambda: xp.sum(host),
    "dot of NumPy's": lambda: xp.dot(host, host.T),
    "jit": lambda: compiled(x),
    "jit of NumPy's": lambda: compiled(host),
    "ahead of time": lambda: ahead(x),
    "top_k": lambda: lax.top_k(v, 3),
    "dynamic_slice": lambda: lax.dynamic_slice(v, (3,), (2,)),
}
for call in CALLS.values():
    for _ in range(200):  # until programs are in place
        call()
seconds = {}
for name, call in CALLS.items():
    sample = repeated(call)
    seconds[name] = statistics.median(sample() for _ in range(5))
print(json.dumps(seconds))
