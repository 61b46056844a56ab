"""Another library's functions on given arrays, in a process of its own: this package and jax do not share one.

The parent writes pickled jobs to this script's standard input: each names a module, a function and its keywords, and
holds NumPy operands. The script answers with the results in one pickle, an exception's text where there is none.
"""

from __future__ import annotations

import os
import pickle
import subprocess
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from functorch_like.errors import ArgumentError

# Everything the other side needs, as it may not have this package.
_SCRIPT = """
import importlib, pickle, sys
import numpy as np
results = []
for module, name, operands, params in pickle.load(sys.stdin.buffer):
    try:
        function = getattr(importlib.import_module(module), name)
        results.append(np.asarray(function(*operands, **params)))
    except Exception as error:
        results.append(f"{type(error).__name__}: {error}")
pickle.dump(results, sys.stdout.buffer)
"""


class Job(NamedTuple):
    """A call of `module.name(*operands, **params)`."""

    module: str
    name: str
    operands: Sequence[np.ndarray[Any, Any]]
    params: Mapping[str, Any]


def evaluate(python: str, jobs: Sequence[Job]) -> list[np.ndarray[Any, Any] | str]:
    """Results of another Python, in order; a text where it has none.

    Args:
        python: the interpreter of an environment that has the library.

    Raises:
        ArgumentError: if it cannot be run.

    >>> import sys
    >>> [out] = evaluate(sys.executable, [Job("numpy", "sqrt", [np.float64(4)], {})])
    >>> float(out)
    2.0
    """
    environment = {**os.environ, "JAX_ENABLE_X64": "1", "JAX_PLATFORMS": "cpu"}
    pickled = pickle.dumps([tuple(job) for job in jobs])
    try:
        done = subprocess.run([python, "-c", _SCRIPT], input=pickled, capture_output=True, env=environment, check=True)
    except (OSError, subprocess.CalledProcessError) as error:
        why = error.stderr.decode(errors="replace").strip() if isinstance(error, subprocess.CalledProcessError) else ""
        raise ArgumentError(
            f"{python} cannot be run: {why.splitlines()[-1] if why else error}", fix="name a Python"
        ) from error
    return pickle.loads(done.stdout)
