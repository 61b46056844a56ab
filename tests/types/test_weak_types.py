"""Weak types of results: those of JAX, recorded in weak_types.json, except for cases in docs/differences.md."""

import json
from pathlib import Path

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax
from functorch_like.primitives import structural

RECORDED = json.loads(Path(__file__).with_name("weak_types.json").read_text())


def operands():
    """Return the operands by their names in the expressions; w, i, c, W, C, N and W2 are weak."""
    weak = {"w": fnp.asarray(2.0), "i": fnp.asarray(3), "c": fnp.asarray(1 + 2j)}
    weak |= {name: fnp.broadcast_to(weak[name.lower()], (3,)) for name in "WC"}
    weak |= {"N": fnp.broadcast_to(weak["i"], (3,)), "W2": fnp.broadcast_to(weak["w"], (3, 3))}
    strong = {
        "s": fnp.float32(1.5),
        "S": fnp.ones(3),
        "I": fnp.arange(3),
        "k": fnp.int32(1),
        "h": fnp.ones(3, "bfloat16"),
    }
    return weak | strong | {"b": fnp.asarray(True), "B": fnp.asarray([True, False, True]), "S2": fnp.ones((3, 3))}


NAMES = {"jnp": fnp, "lax": lax, "jax": ft, "random": ft.random, "np": np}


def shown(x):
    """Return dtype, shape and weakness as text."""
    return f"{x.dtype}{list(x.shape)}{' weak' * x.weak_type}"


@pytest.mark.parametrize("group", sorted(RECORDED))
def test_results_are_weak_where_those_of_jax_are(group):
    given = operands()
    names, values = list(given), list(given.values())
    wrong = {}
    for expression, recorded in RECORDED[group].items():
        traced = lambda *values, e=expression: eval(e, NAMES | dict(zip(names, values, strict=True)))
        found = [shown(x) for x in ft.tree.leaves(ft.eval_shape(traced, *values))]
        if found != recorded:
            wrong[expression] = found, recorded
    assert not wrong


EAGER = {
    "jnp.zeros_like(2.0)": "float32[] weak", "jnp.full((2,), 3)": "int32[2] weak",
    "jnp.full_like(i, 1.5)": "int32[] weak",
    "lax.full((2,), 0.5)": "float32[2] weak", "lax.full_like(w, 1)": "float32[] weak", "jnp.sum(w)": "float32[]",
    "jnp.cumsum(N)": "int32[3]", "W.at[0].set(s)": "float32[3] weak", "lax.select(b, 1, 2)": "int32[] weak",
    "lax.add(w, 2.0)": "float32[] weak", "jax.vmap(lambda x: 2.0)(S)": "float32[3] weak", "I ** 2.0": "float32[3] weak",
    "jnp.full((2,), np.float64(1))": "float64[2]", "jnp.full((2,), [1, 2])": "int32[2]",
}  # fmt: skip


@pytest.mark.parametrize("expression", EAGER)
def test_what_is_computed_at_once_is_as_weak_as_what_is_traced(expression):
    assert shown(eval(expression, NAMES | operands())) == EAGER[expression]


def test_whole_numbers_made_weak_meet_floats_under_strict_promotion():
    with ft.numpy_dtype_promotion("strict"):
        assert fnp.array_equal(fnp.ones(3), fnp.full((3,), 1))
        assert (fnp.ones(2) * fnp.zeros_like(3)).tolist() == [0, 0]
        assert (lax.select(fnp.asarray(True), 1, -1) * fnp.ones(2)).tolist() == [1, 1]


@pytest.mark.parametrize("x", [3, np.arange(-2, 3), np.array([True, False])])
def test_rint_gives_floats_as_numpy_does(x):
    found = fnp.rint(fnp.asarray(x))
    assert found.dtype == "float32" and np.array_equal(found, np.rint(np.asarray(x, float)))


def test_scalars_and_arrays_of_rank_0_of_numpy_stay_apart():
    """C++ has one signature for both. Scalars are weak, arrays inside the package are not."""
    array, scalar = np.array(2.0, np.float32), np.float32(2.0)
    for many, other in ((array, scalar), (scalar, array)):
        ft.clear_caches()
        for _ in range(60):  # more than the first calls, which NumPy computes
            first = structural.broadcast_in_dim(many, shape=(3,), broadcast_dimensions=())
        then = structural.broadcast_in_dim(other, shape=(3,), broadcast_dimensions=())
        assert first.weak_type == (many is scalar) and then.weak_type == (other is scalar)
