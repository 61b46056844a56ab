"""LAPACK's routines are found without importing scipy.linalg, which users may import before or after."""

import os
import subprocess
import sys

import pytest

START = """
import sys
import numpy as np
import functorch_like as ft
import functorch_like.numpy as fnp

a = np.array([[4.0, 2.0], [2.0, 5.0]])
def factor():
    np.testing.assert_allclose(ft.jit(fnp.linalg.cholesky)(a), [[2, 0], [1, 2]], rtol=1e-15)
"""
WAYS = {
    "alone": "factor(); assert 'scipy.linalg' not in sys.modules",
    "SciPy afterwards": """
factor()
import scipy.linalg.cython_blas
from scipy.linalg import cython_lapack
assert "dgemm" in scipy.linalg.cython_blas.__pyx_capi__ and "dpotrf" in cython_lapack.__pyx_capi__
np.testing.assert_allclose(scipy.linalg.cholesky(a, lower=True), [[2, 0], [1, 2]], rtol=1e-15)
np.testing.assert_allclose(ft.jit(fnp.linalg.eigvalsh)(a), scipy.linalg.eigvalsh(a), rtol=1e-14)
""",
    "SciPy before": """
import scipy.linalg, scipy.linalg.cython_blas
before = scipy.linalg.cython_blas
factor()
assert sys.modules["scipy.linalg.cython_blas"] is before is scipy.linalg.cython_blas
""",
    "not to be had": """
from functorch_like.backends.xla import lapack
lapack._BINDINGS = ("scipy.linalg.no_such_module",)
factor()
assert "scipy.linalg" in sys.modules  # jaxlib has imported what it needs
""",
}


@pytest.mark.parametrize("way", WAYS)
def test_routines_are_found(way):
    env = {**os.environ, "FT_CACHE": "0", "FT_PLATFORM": "cpu"}
    done = subprocess.run([sys.executable, "-P", "-c", START + WAYS[way]], capture_output=True, text=True, env=env)
    assert done.returncode == 0, done.stderr
