"""Errors as values: a checked program returns its failures beside its results.

>>> import functorch_like as ft
>>> from functorch_like import checkify
>>> def f(x):
...     checkify.check(x > 0, "x must be positive, got {}", x)
...     return fnp.log(x)
>>> err, out = ft.jit(checkify.checkify(f))(-1.0)
>>> err.throw()
Traceback (most recent call last):
...
functorch_like.errors.CheckError: x must be positive, got -1.0
  at: ... in f

Checks work under jit, vmap, grad, scan, while loops and cond. (Design and names are those of
jax.experimental.checkify.)
"""

from __future__ import annotations

from functorch_like.checkify.api import check as check
from functorch_like.checkify.api import check_error as check_error
from functorch_like.checkify.api import checkify as checkify
from functorch_like.checkify.error import Error as Error
from functorch_like.checkify.error import init_error as init_error
from functorch_like.checkify.run import run as run
from functorch_like.checkify.state import all_checks as all_checks
from functorch_like.checkify.state import automatic_checks as automatic_checks
from functorch_like.checkify.state import div_checks as div_checks
from functorch_like.checkify.state import float_checks as float_checks
from functorch_like.checkify.state import index_checks as index_checks
from functorch_like.checkify.state import nan_checks as nan_checks
from functorch_like.checkify.state import user_checks as user_checks

__all__ = [
    "Error", "all_checks", "automatic_checks", "check", "check_error", "checkify", "div_checks", "float_checks",
    "index_checks", "init_error", "nan_checks", "user_checks",
]  # fmt: skip
