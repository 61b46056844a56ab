"""Wrong rules planted in primitives: each must make the tests of that primitive fail."""

import contextlib
import os

import numpy as np
import pytest
from support.faults import told_apart
from support.primitive_checks import (
    check_adjoint,
    check_batch,
    check_compiled,
    check_jvp,
    check_second,
    check_shape,
    check_transpose,
    results,
)
from support.primitive_samples import all_cases, differentiable

import functorch_like as ft
from functorch_like import core
from functorch_like.core import NotDefined, aval_of

NIGHTLY = os.environ.get("HYPOTHESIS_PROFILE") == "nightly"
EVERYDAY = [
    "add",
    "mul",
    "sub",
    "div",
    "sin",
    "tanh",
    "exp",
    "reduce_sum",
    "reduce_max",
    "cumsum",
    "dot_general",
    "transpose",
    "broadcast_in_dim",
    "reshape",
    "gather",
    "scatter_add",
    "dynamic_slice",
    "dynamic_update_slice",
    "select_n",
    "convert_element_type",
    "concatenate",
    "pad",
    "sort",
    "rev",
    "clamp",
    "pow",
    "reduce_prod",
    "conv_general_dilated",
    "real",
    "complex",
]


# -------------------------------------------------------------------------------------------------------- wrong rules
def each(change, out):
    """Change one result, or each of several; None stays."""
    if isinstance(out, (tuple, list)):
        return [None if o is None else change(o) for o in out]
    return None if out is None else change(out)


def scaled(rule):
    def jvp(primals, tangents, **params):
        out, tangent = rule(primals, tangents, **params)
        return out, each(lambda t: np.asarray(t * np.asarray(1.001, t.dtype)), tangent)

    return jvp


def negated(rule):
    return lambda ct, args, **params: each(lambda c: np.asarray(-c), rule(ct, args, **params))


def dropped(rule):
    return lambda ct, args, **params: [None for _ in rule(ct, args, **params)]


def rolled(rule):
    def batch(axis, args, dims, **params):
        out, dim = rule(axis, args, dims, **params)
        if isinstance(out, (tuple, list)):
            return [roll(o, d) for o, d in zip(out, dim, strict=True)], dim
        return roll(out, dim), dim

    return batch


def roll(x, dim):
    return x if dim is None else np.roll(x, 1, dim)


def misplaced(rule):
    def batch(axis, args, dims, **params):
        out, dim = rule(axis, args, dims, **params)
        one = lambda o, d: d if d is None else (d + 1) % np.ndim(o)
        if isinstance(out, (tuple, list)):
            return out, [one(o, d) for o, d in zip(out, dim, strict=True)]
        return out, one(out, dim)

    return batch


def longer(rule):
    return lambda *avals, **params: each(lambda a: a.update(shape=(*a.shape, 1)), rule(*avals, **params))


def other_dtype(rule):
    wrong = lambda a: a.update(dtype="int16" if a.dtype != np.int16 else "int32")
    return lambda *avals, **params: each(wrong, rule(*avals, **params))


def other_program(rule):
    """Return a lowering that applies one more operation to the primitive's first result."""

    def lower(e, *operands, **params):
        outs = e.outs
        made = rule(e, *operands, **params)
        values = list(made) if isinstance(made, (tuple, list)) else [made]
        op = "stablehlo.not" if outs[0].dtype.kind == "b" else "stablehlo.add"
        values[0] = e.op(op, [values[0]] * (1 if op.endswith("not") else 2), [outs[0]])
        return values if isinstance(made, (tuple, list)) else values[0]

    return lower


def biased(rule):
    one = lambda o: np.asarray(o * np.asarray(1.01, o.dtype) + o.dtype.type(1))
    change = lambda o: np.asarray(~o if o.dtype == bool else one(o))
    return lambda *args, **params: each(change, rule(*args, **params))


FAULTS = {
    "jvp": {"scaled by 1.001": scaled},
    "transpose": {"negated": negated, "dropped": dropped},
    "batch": {"rolled": rolled, "misplaced": misplaced},
    "shape": {"longer": longer, "other dtype": other_dtype},
    "lower": {"other program": other_program},
    "ref": {"biased": biased},
}


# ---------------------------------------------------------------------------------------------- the primitive's tests
def lowered(case):
    prim, xs = case.prim, case.draw()
    run = lambda *xs: results(prim, prim(*xs, **case.sample.params))
    check_compiled(case, ft.jit(run, keep_unused=True)(*xs), xs)


#: The check that is likely to notice a wrong rule. It comes first, because the first failure is enough.
LIKELY = {
    "shape": check_shape, "batch": check_batch, "jvp": check_jvp, "transpose": check_transpose, "lower": lowered,
    "ref": check_jvp,
}  # fmt: skip


def suite(prim, column):
    """Return the checks of a primitive, each with its cases; compiled cases are checked for `lower` and `ref` only."""
    mine = [c for c in all_cases() if c.prim is prim]
    smooth = [c for c in differentiable(smooth=True) if c.prim is prim]
    derived = [c for c in differentiable() if c.prim is prim]
    tests = [(check_shape, mine)]
    if not isinstance(prim.batch, NotDefined):
        tests.append((check_batch, [c for c in mine if c.sample.operands]))
    tests += [(check_jvp, smooth), (check_adjoint, derived), (check_second, smooth)]
    if prim.partial_eval is None and not isinstance(prim.transpose, NotDefined):
        tests.append((check_transpose, derived))
    if column in ("lower", "ref"):
        tests.append((lowered, mine))
    return sorted(tests, key=lambda test: test[0] is not LIKELY[column])


@contextlib.contextmanager
def planted(prim, column, wrong):
    good = getattr(prim, column)
    object.__setattr__(prim, column, wrong(good))
    core._SIGNATURES.clear()
    honest = told_apart(f"{prim}, {column}: {wrong.__name__}")
    try:
        yield
    finally:
        honest()
        object.__setattr__(prim, column, good)
        core._SIGNATURES.clear()


def notices(prim, column):
    for check, cases in suite(prim, column):
        for case in cases:
            try:
                check(case)
            except Exception:
                return True
    return False


def visible(prim, column, name):
    """Return True if the fault can change a result: the rule exists, and its derivatives are neither empty nor zero."""
    cell = getattr(prim, column)
    if isinstance(cell, NotDefined) or prim.partial_eval is not None or not prim.samples():
        return False
    if column in ("jvp", "transpose"):
        return any(c.prim is prim and any(ref_size(c)) for c in differentiable(smooth=column == "jvp")) and (
            column == "transpose" or not constant(prim)
        )
    return True


def ref_size(case):
    return [aval_of(x).size for x in case.draw()]


def constant(prim):
    """Return True if the primitive's tangent is always zero."""
    case = next(c for c in differentiable() if c.prim is prim)
    from support.oracle import reference
    from support.primitive_samples import direction

    xs = case.draw()
    with reference():
        _, tangent = prim.jvp(xs, direction(case, xs, 1), **case.sample.params)
    return all(t is None for t in (tangent if prim.multiple_results else [tangent]))


PRIMS = [p for p in core.TABLE.values() if NIGHTLY or p.name in EVERYDAY]
PLANTED = [
    pytest.param(prim, column, name, id=f"{prim.name}-{column}-{name}".replace(" ", "_"))
    for prim in PRIMS
    for column, wrongs in FAULTS.items()
    for name in wrongs
    if visible(prim, column, name)
]


@pytest.mark.parametrize(("prim", "column", "name"), PLANTED)
def test_a_wrong_rule_is_noticed(prim, column, name):
    with planted(prim, column, FAULTS[column][name]):
        assert notices(prim, column)


@pytest.mark.parametrize("prim", [p for p in PRIMS if p.samples()], ids=str)
def test_the_right_rules_are_not(prim):
    assert not notices(prim, "shape")
