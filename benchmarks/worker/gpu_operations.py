"""Operations at sizes that keep a GPU busy: `python -m benchmarks.worker.gpu_operations SIDE SCALE PATTERN`.

Prints one line of JSON: for each operation the seconds of the first call, which compiles, and the least seconds of
later ones. SCALE divides all sizes, to try the cases on a CPU; PATTERN selects operations by name.
"""

import json
import sys
import time
from collections.abc import Callable, Iterator
from fnmatch import fnmatch
from types import SimpleNamespace
from typing import Any

import numpy

from benchmarks.worker import sides
from benchmarks.worker.clock import repeated

ROUNDS = 5


def cases(api: SimpleNamespace, scale: int) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Yield name, function and arguments of each operation."""
    ft, np, lax, nn = api.ft, api.fnp, api.lax, api.nn
    draw = numpy.random.default_rng(0)
    size = lambda n: max(n // scale, 8)
    normal = lambda *shape, dtype="float32": ft.device_put(draw.standard_normal(shape).astype("float32")).astype(dtype)
    vector, matrix = normal(size(1 << 24)), normal(size(8192), size(4096))
    square, narrow = normal(size(4096), size(4096)), normal(size(8192), size(8192), dtype="bfloat16")
    places = ft.device_put(draw.integers(0, vector.size // 16, vector.size // 4).astype("int32"))
    image, kernel = normal(size(64), size(64), 56, 56), normal(size(64), size(64), 3, 3)
    q = normal(4, size(1024), size(16), 64, dtype="bfloat16")
    small = normal(size(1024), size(1024))
    definite = small @ small.T + len(small) * np.eye(len(small), dtype="float32")

    yield "product of float32", lambda x: x @ x, (square,)
    yield "product of bfloat16", lambda x: x @ x, (narrow,)
    yield "products in a batch", lambda x: x @ x, (normal(size(256), size(256), size(256)),)
    yield "elementwise", lambda x: np.sin(x) * np.exp(-x * x) + np.tanh(x), (vector,)
    yield "sum", lambda x: x.sum(), (matrix,)
    yield "sum of columns", lambda x: x.sum(0), (matrix,)
    yield "softmax", lambda x: nn.softmax(x, -1), (matrix,)
    centred = lambda x: (x - x.mean(-1, keepdims=True)) / np.sqrt(x.var(-1, keepdims=True) + 1e-5)
    yield "gradient of layer norm", ft.grad(lambda x: (centred(x) ** 3).sum()), (matrix,)
    yield "cumsum of rows", lambda x: np.cumsum(x, 1), (matrix,)
    yield "sort", np.sort, (vector,)
    yield "argsort", np.argsort, (vector,)
    yield "argsort of rows", lambda x: np.argsort(x, -1), (matrix,)
    yield "top 8 of rows", lambda x: lax.top_k(x, 8), (matrix,)
    yield "median of rows", lambda x: np.median(x, -1), (matrix,)
    yield "gather", lambda x, i: x[i], (vector, places)
    added = lambda i, x: np.zeros(vector.size // 16, "float32").at[i].add(x)
    yield "scatter-add", added, (places, vector[: places.size])
    yield "transpose", lambda x: np.transpose(x, (0, 2, 3, 1)) + 1, (image,)
    convolved = lambda x, k: lax.conv(x, k, (1, 1), "SAME")
    yield "convolution", convolved, (image, kernel)
    yield "gradients of it", ft.grad(lambda x, k: (convolved(x, k) ** 2).sum(), (0, 1)), (image, kernel)
    attention = nn.dot_product_attention
    yield "attention", attention, (q, q, q)
    yield "gradients of attention", ft.grad(lambda *a: attention(*a).astype("float32").sum(), (0, 1, 2)), (q, q, q)
    yield "fft", lambda x: np.fft.fft(x.reshape(-1, 64)), (vector[: vector.size // 64 * 64],)
    yield "cholesky", np.linalg.cholesky, (definite,)
    yield "solve", np.linalg.solve, (definite, small)
    yield "inverse", np.linalg.inv, (definite,)
    yield "eigh", np.linalg.eigh, (definite[:256, :256],)
    yield "svd", np.linalg.svd, (small[:256, :256],)
    yield "solve small systems", np.linalg.solve, (normal(size(4096), 8, 8), normal(size(4096), 8, 1))
    yield "normal numbers", lambda key: api.random.normal(key, vector.shape), (api.random.key(0),)
    yield "permutation", lambda key: api.random.permutation(key, vector.size // 16), (api.random.key(0),)
    step = lambda h, x, w: (lambda y: (y, y))(np.tanh(h @ w + x))
    rnn = lambda w, xs: lax.scan(lambda h, x: step(h, x, w), xs[0], xs)[1]
    states, weights = normal(size(256), size(64), size(256)) * 0.1, normal(size(256), size(256)) * 0.05
    yield "recurrent network", rnn, (weights, states)
    yield "gradient of it", ft.grad(lambda w, xs: rnn(w, xs).sum()), (weights, states)
    yield "loop", lambda x: lax.fori_loop(0, 500, lambda i, x: x * 0.99 + 0.01, x), (normal(1000),)


def main(side: str, scale: int, pattern: str) -> dict:
    """Measure, and return the seconds."""
    api = sides.load(side)
    wait = api.ft.block_until_ready
    seconds = {}
    for name, function, args in cases(api, scale):
        if not fnmatch(name, pattern):
            continue
        jitted = api.ft.jit(function)
        begun = time.perf_counter()
        wait(jitted(*args))
        first = time.perf_counter() - begun
        if hasattr(jitted, "optimised"):  # JAX's programs have one tier
            jitted.optimised()
        sample = repeated(lambda jitted=jitted, args=args: jitted(*args), wait)
        seconds[name] = {"first": first, "least": min(sample() for _ in range(ROUNDS))}
    device = api.ft.devices()[0]
    return {"device": f"{device.platform}: {device.device_kind}", "versions": api.about, "seconds": seconds}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]), sys.argv[3])))
