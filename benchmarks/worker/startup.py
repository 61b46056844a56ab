"""Waiting times of a new process: the import, and the first result of a program that another process has run before."""

import os
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

from clock import now
from sides import IMPORTS

Sampler = Callable[[], float]

IMPORT = """
from time import {clock} as now
begin = now()
{imports}
print(now() - begin)
"""

GRAD_STEP = """
from time import {clock} as now
import numpy as np
{imports}

def loss(params, x):
    for w, b in params:
        x = fnp.tanh(x @ w + b)
    return fnp.sum(x)

params = [(np.full((64, 64), 0.01, np.float32), np.zeros(64, np.float32)) for _ in range(20)]
x = np.ones((8, 64), np.float32)
begin = now()
grads = ft.jit(ft.grad(loss))(params, x)
grads[0][0].block_until_ready()
print(now() - begin)
"""


DIGITS = Path(__file__).with_name("digits.py")
EXAMPLES = Path(__file__).parents[2] / "functorch_like" / "examples"


def in_new_process(*program: str, **environment: str) -> float:
    """Run a program by this side's interpreter, and return the last number that it prints."""
    # pip compiles packages at their installation; an editable install gets its bytecode in the first run, so writing it
    # must be allowed.
    variables = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"} | environment
    done = subprocess.run([sys.executable, *program], env=variables, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(done.stderr.strip().splitlines()[-1])
    return float(done.stdout.split()[-1])


def import_(api: SimpleNamespace) -> Sampler:
    """The import of the package and its `numpy`, in a new process."""
    program = IMPORT.format(imports=IMPORTS[api.side], clock=now.__name__)
    return lambda: in_new_process("-c", program)


def second(*program: str, both_cached: bool = False, side: str) -> Sampler:
    """The first result of a program that another process has run before, under each side's default settings.

    JAX's disk cache, which is off by default, is on if `both_cached`.
    """
    folder = tempfile.TemporaryDirectory() if both_cached and side == "jax" else None
    environment = {}
    if folder is not None:
        environment = {"JAX_COMPILATION_CACHE_DIR": folder.name, "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0"}
    in_new_process(*program, **environment)  # the first process: it fills a cache, if the side keeps one
    return lambda folder=folder: in_new_process(*program, **environment)  # keeps the folder alive


def second_process(api: SimpleNamespace, both_cached: bool = False) -> Sampler:
    """The first result of a jitted gradient in a second process, without the import."""
    program = GRAD_STEP.format(imports=IMPORTS[api.side], clock=now.__name__)
    return second("-c", program, both_cached=both_cached, side=api.side)


def digits(what: str, both_cached: bool = False) -> Callable[[SimpleNamespace], Sampler]:
    """The first training step of the digits example (see `digits.py`)."""
    return lambda api: second(str(DIGITS), api.side, str(EXAMPLES), what, both_cached=both_cached, side=api.side)


CASES = {
    "import": import_,
    "second_process": second_process,
    "second_process_both_cached": lambda api: second_process(api, both_cached=True),
    "digits_step": digits("step"),
    "digits_step_both_cached": digits("step", both_cached=True),
    "digits_start": digits("start"),
    "digits_process": digits("process"),
}
