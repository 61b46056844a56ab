"""A check of everything in two seconds, for a commit hook and for an installed wheel."""

import importlib.util
import subprocess
import sys

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp


def loss(w, x):
    return fnp.sum(fnp.tanh(x @ w) ** 2)


W = np.linspace(-1, 1, 6, dtype=np.float32).reshape(3, 2)
X = np.linspace(0, 1, 12, dtype=np.float32).reshape(4, 3)


def expected_gradient():
    y = np.tanh(X @ W)
    return X.T @ (2 * y * (1 - y**2))


def test_gradient_is_the_textbook_one():
    np.testing.assert_allclose(ft.grad(loss)(W, X), expected_gradient(), rtol=1e-5)


def test_jit_changes_nothing():
    np.testing.assert_allclose(ft.jit(ft.grad(loss))(W, X), expected_gradient(), rtol=1e-5)


def test_vmap_is_a_loop():
    per_row = ft.vmap(ft.grad(loss), in_axes=(None, 0))(W, X)
    np.testing.assert_allclose(per_row, np.stack([ft.grad(loss)(W, x) for x in X]), rtol=1e-5)
    np.testing.assert_allclose(per_row.sum(0), expected_gradient(), rtol=1e-5)


def test_import_leaves_jax_alone():
    code = "import sys, functorch_like; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


def test_import_brings_what_a_small_program_needs():
    """The rest is imported on first use (`calling/lazy_imports.py`): import it in the function that uses it."""
    code = "import sys, functorch_like.numpy; print(*(n for n in sys.modules if n.startswith('functorch_like.')))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    late = ("lax", "nn", "random", "scipy", "numpy.linalg", "numpy.fft", "testing")
    late += ("transforms.custom", "transforms.checkpoint", "transforms.jacobians", "primitives.higher_order")
    late += ("primitives.contractions.convolution", "primitives.linalg", "primitives.elementwise.erf_and_gamma")
    assert all(importlib.util.find_spec(f"functorch_like.{name}") for name in late)
    assert {f"functorch_like.{name}" for name in late}.isdisjoint(found)


def test_everything_is_offered_whether_or_not_it_has_come():
    assert {"grad", "jit", "lax", "nn", "random", "checkpoint", "custom_vjp", "hessian"} <= {*ft.__all__} & {*dir(ft)}
    assert all(hasattr(ft, name) for name in ft.__all__)
