"""The welcome of `python -m functorch_like --help`: versions, devices, a self-check, and where to read on."""

from __future__ import annotations

import platform
import time

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like.backends.xla.guard import jaxlib_version

READ_ON = """\
read on:
  README.md                     a tour of two minutes, and a table of what is where
  notebooks/quickstart.ipynb    grad, vmap and jit from the beginning, with pictures
  notebooks/README.md           all notebooks, with the time that each takes
  docs/differences.md           for those who know JAX, PyTorch or NumPy
  python -m functorch_like.backends      settings, devices and versions, for a bug report
  python -m functorch_like.primitives    the table of all operations

Compiled programs are kept on disk, so a second run starts faster. The demo needs scikit-learn for its images:
pip install 'functorch_like[digits]', which brings rich, too, for bars and tables."""


def welcome() -> str:
    """Return the versions, the devices and the result of the self-check, as text."""
    return (
        f"functorch_like {ft.__version__}: grad, vmap and jit for functions written like NumPy's\n\n"
        f"  versions    Python {platform.python_version()}, NumPy {np.__version__}, jaxlib {jaxlib_version()}\n"
        f"  devices     {', '.join(map(str, ft.devices()))}\n"
        f"  self-check  {self_check()}\n"
    )


def self_check() -> str:
    """Compare a transformed function with its formula, and return the result as a line of text.

    >>> self_check()
    'passed: jit(vmap(grad(sin))) is cos, in ... s'
    """
    started = time.perf_counter()
    points = np.linspace(-3, 3, 7, dtype=np.float32)
    try:
        slopes = np.asarray(ft.jit(ft.vmap(ft.grad(fnp.sin)))(points))
    except Exception as e:  # of a broken installation, whatever it is: the welcome goes on and shows it
        return f"FAILED: {type(e).__name__}: {e}"
    error = float(np.max(np.abs(slopes - np.cos(points.astype(np.float64)))))
    if not error < 1e-5:
        return f"FAILED: jit(vmap(grad(sin))) differs from cos by {error:.2g}"
    return f"passed: jit(vmap(grad(sin))) is cos, in {time.perf_counter() - started:.1f} s"
