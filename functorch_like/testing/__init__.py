"""A kit for tests of functions of arrays, and tools that test the package itself.

- `check_grads`, `check_vmap`, `check_jit`, `check_dtypes`: a function keeps the laws of transformations.
- `assert_allclose`, `assert_trees_equal`: pytrees hold the same values; the message names where they differ.
- `assert_deterministic`: a function gives the same bits in each process.
- `count_compiles`, `count_traces`, `count_transfers`: tests of speed without a clock. `check_leaks`: of lifetimes.
- `strategies`: strategies for Hypothesis (`pip install hypothesis`).
- `python -m functorch_like.testing.accuracy`: the errors of elementwise primitives in ulp.

A plugin for pytest is installed, too: the markers `gpu` and `check_leaks`, the fixture `ft_counts` and the option
`--ft-check-leaks`.

>>> import functorch_like as ft, functorch_like.numpy as fnp
>>> ft.testing.check_grads(lambda x: fnp.tanh(x) @ x, (np.array([0.5, -1.0, 2.0]),))
>>> ft.testing.check_vmap(fnp.cumsum, (np.ones((3, 4)),), in_axes=1)
"""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports
from functorch_like.testing.compare import assert_allclose as assert_allclose
from functorch_like.testing.compare import assert_trees_equal as assert_trees_equal
from functorch_like.testing.compare import tolerance as tolerance
from functorch_like.testing.counters import Counted as Counted
from functorch_like.testing.counters import count_compiles as count_compiles
from functorch_like.testing.counters import count_traces as count_traces
from functorch_like.testing.counters import count_transfers as count_transfers
from functorch_like.testing.determinism import assert_deterministic as assert_deterministic
from functorch_like.testing.gradients import check_grads as check_grads
from functorch_like.testing.leaks import check_leaks as check_leaks
from functorch_like.testing.transforms import check_dtypes as check_dtypes
from functorch_like.testing.transforms import check_jit as check_jit
from functorch_like.testing.transforms import check_vmap as check_vmap

with _lazy_imports.block(__name__, wrap=False):
    from functorch_like.testing import strategies as strategies  # needs Hypothesis
