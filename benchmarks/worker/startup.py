"""What a new process waits for: the import, and the first result of a program that another process has run before."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from types import SimpleNamespace

from sides import IMPORTS

Sampler = Callable[[], float]

IMPORT = """
import time
begin = time.perf_counter()
{imports}
print(time.perf_counter() - begin)
"""

GRAD_STEP = """
import time
import numpy as np
{imports}

def loss(params, x):
    for w, b in params:
        x = fnp.tanh(x @ w + b)
    return fnp.sum(x)

params = [(np.full((64, 64), 0.01, np.float32), np.zeros(64, np.float32)) for _ in range(20)]
x = np.ones((8, 64), np.float32)
begin = time.perf_counter()
grads = ft.jit(ft.grad(loss))(params, x)
grads[0][0].block_until_ready()
print(time.perf_counter() - begin)
"""


def in_new_process(program: str, **environment: str) -> float:
    """The number that a program prints last, run by this side's interpreter."""
    # pip compiles what it installs; a checkout installed in place may only now get its bytecode, and must be let.
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | environment
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return float(done.stdout.split()[-1])


def import_(api: SimpleNamespace) -> Sampler:
    """The package and its `numpy`, in a process that has imported nothing."""
    program = IMPORT.format(imports=IMPORTS[api.side])
    return lambda: in_new_process(program)


def second_process(api: SimpleNamespace, **environment: str) -> Sampler:
    """From the first call to its result, the import not counted, each side as it comes out of the box."""
    program = GRAD_STEP.format(imports=IMPORTS[api.side])
    in_new_process(program, **environment)  # the first process: it fills a cache, if the side keeps one
    return lambda: in_new_process(program, **environment)


def second_process_both_cached(api: SimpleNamespace) -> Sampler:
    """The same with JAX's disk cache switched on, which it is not by default."""
    folder = tempfile.TemporaryDirectory()
    jax = {"JAX_COMPILATION_CACHE_DIR": folder.name, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    sample = second_process(api, **(jax if api.side == "jax" else {}))
    return lambda folder=folder: sample()  # which keeps the folder as long as itself


CASES = {
    "import": import_,
    "second_process": second_process,
    "second_process_both_cached": second_process_both_cached,
}
