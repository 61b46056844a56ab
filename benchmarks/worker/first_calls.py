"""Processor time of first calls: `PYTHON first_calls.py SIDE` prints a JSON object of seconds."""

import importlib
import json
import sys
import time

import numpy as np
from sides import load

side = load(sys.argv[1])
api, xp, lax, nn, random = side.ft, side.fnp, side.lax, side.nn, side.random
special = importlib.import_module(f"{api.__name__}.scipy.special")
key = random.key(0)
rng = np.random.default_rng(0)
VECTOR = xp.asarray(rng.uniform(0.2, 2, 50).astype(np.float32))
MATRIX = xp.asarray((rng.standard_normal((6, 6)) + 6 * np.eye(6)).astype(np.float32))
IMAGES = xp.asarray(rng.standard_normal((4, 8, 8, 3)).astype(np.float32))


def dense(width, depth):
    """Return parameters of a multilayer perceptron."""
    return [xp.asarray(rng.standard_normal((width, width)).astype(np.float32) * 0.1) for _ in range(depth)]


def mlp(parameters, x):
    """A scalar of a multilayer perceptron."""
    for w in parameters:
        x = nn.gelu(x @ w)
    return (x**2).mean()


def recurrence(w, x):
    """A scalar of 30 steps of a recurrent network."""
    return lax.scan(lambda h, _: (xp.tanh(w @ h), h.sum()), x, None, length=30)[1].sum()


def newton(x):
    """The square root of 2 by Newton's iteration."""
    return lax.while_loop(lambda c: c[1] < 20, lambda c: (c[0] - (c[0] ** 2 - 2) / (2 * c[0]), c[1] + 1), (x, 0))[0]


def convolved(w, x):
    """A scalar of a convolution of images."""
    x = lax.conv_general_dilated(x, w, (1, 1), "SAME", dimension_numbers=("NHWC", "HWIO", "NHWC"))
    return nn.log_softmax(nn.relu(x).mean((1, 2))).sum()


KERNEL = xp.asarray(rng.standard_normal((3, 3, 3, 8)).astype(np.float32))
CASES = {
    "random.normal": lambda: random.normal(key, (50,)),
    "random.gamma": lambda: random.gamma(key, 2.0, (50,)),
    "random.poisson": lambda: random.poisson(key, 3.0, (50,)),
    "random.binomial": lambda: random.binomial(key, 10, 0.3, (50,)),
    "random.permutation": lambda: random.permutation(key, 50),
    "random.multivariate_normal": lambda: random.multivariate_normal(key, VECTOR[:6], MATRIX @ MATRIX.T),
    "special.gammainc": lambda: special.gammainc(VECTOR, VECTOR),
    "special.betainc": lambda: special.betainc(VECTOR, VECTOR, VECTOR / 3),
    "median": lambda: xp.median(VECTOR),
    "percentile": lambda: xp.percentile(VECTOR, 30),
    "std of columns": lambda: xp.std(MATRIX, axis=0),
    "cumsum, sort, argmax": lambda: (xp.cumsum(VECTOR), xp.sort(VECTOR), xp.argmax(VECTOR)),
    "arithmetic and indexing": lambda: xp.where(VECTOR[9:15] > 1, 2 * MATRIX[1:5] - 1, MATRIX[-1, 0]).reshape(6, 4),
    "softmax": lambda: nn.softmax(MATRIX),
    "fft": lambda: xp.fft.fft(VECTOR),
    "linalg.solve": lambda: xp.linalg.solve(MATRIX, VECTOR[:6]),
    "linalg.pinv": lambda: xp.linalg.pinv(MATRIX),
    "linalg.eigh": lambda: xp.linalg.eigh(MATRIX @ MATRIX.T),
    "eager gradient of an MLP": lambda: api.grad(mlp)(dense(16, 3), MATRIX[:, :1] * xp.ones((1, 16))),
    "vmap(jit(grad))": lambda: api.vmap(api.jit(api.grad(lambda x: xp.sin(x) * xp.exp(-x) + x**3)))(VECTOR),
    "jit(grad) of an MLP": lambda: api.jit(api.grad(mlp))(dense(16, 4), MATRIX[:, :1] * xp.ones((1, 16))),
    "jit(grad) of a recurrence": lambda: api.jit(api.grad(recurrence))(MATRIX * 0.1, VECTOR[:6]),
    "jit of a while loop": lambda: api.jit(newton)(np.float32(1.0)),
    "jit(grad) of a convolution": lambda: api.jit(api.grad(convolved))(KERNEL, IMAGES),
    "jit(hessian)": lambda: api.jit(api.hessian(lambda x: (xp.sin(x) ** 2).sum() * xp.exp(-x).sum()))(VECTOR),
}

api.jit(lambda x: x + 1)(VECTOR)  # pay the costs of the first program of a process
api.block_until_ready(MATRIX @ MATRIX)
found = {}
for name, call in CASES.items():
    started = time.process_time()
    api.block_until_ready(call())
    found[name] = time.process_time() - started
print(json.dumps(found))
