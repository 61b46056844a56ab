"""Checks that hold for every primitive: one function for each law, applied to one case."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import core, dtypes
from functorch_like.core import BatchAxis, UndefinedPrimal, aval_of
from functorch_like.interpreters import forward, reverse
from support.oracle import agree, reference
from support.primitive_samples import (
    Case,
    along,
    close,
    differentiable,
    direction,
    in_axes,
    pair,
    random_like,
    ref,
    results,
)

Fun = Callable[..., list[Any]]


def reversible(case: Case) -> bool:
    """Return True if the primitive has reverse mode; a higher-order primitive may have forward mode alone."""
    return case.prim.partial_eval is None or not isinstance(case.prim.transpose, core.NotDefined)


def applied(case: Case) -> Fun:
    """Return the primitive as a function from its operands to a list of results."""
    return lambda *xs: results(case.prim, case.prim(*xs, **case.sample.params))


def check_shape(case: Case) -> None:
    """Check that the shape rule agrees with the result of `ref`."""
    xs = case.draw()
    out = case.prim.ref(*xs, **case.sample.params)
    avals = [aval_of(x).strong() for x in xs]
    agree(
        case.prim,
        tuple(out) if case.prim.multiple_results else np.asarray(out),
        case.prim.shape(*avals, **case.sample.params),
    )


def check_jvp(case: Case) -> None:
    """Check the jvp rule against finite differences of `ref`, for all tangents together and for each alone."""
    xs = case.draw()
    whole = direction(case, xs, 1)
    alone = [[v if i == k else None for i, v in enumerate(whole)] for k in case.floats]
    for vs in [whole, *(alone if len(case.floats) > 1 else [])]:
        with reference():
            out, tangent = case.prim.jvp(xs, vs, **case.sample.params)
        outs, tangents = results(case.prim, out), results(case.prim, tangent)
        numeric = along(lambda ys: ref(case, ys), xs, vs)
        for o, want in zip(outs, ref(case, xs), strict=True):
            close(o, want, what="primal")
        for o, t, want in zip(outs, tangents, numeric, strict=True):
            if want is None:
                assert t is None, f"a result {aval_of(o)!r} has no tangent, got {t!r}"
            else:
                close(np.zeros_like(o) if t is None else t, want, *_numeric(o), what="tangent")


def _numeric(x: Any) -> tuple[float, float]:
    # Finite differences in single precision detect a wrong factor, but no small error.
    return (2e-6, 1e-7) if x.dtype.itemsize // (2 if x.dtype.kind == "c" else 1) == 8 else (5e-2, 5e-2)


def check_adjoint(case: Case) -> None:
    """Check that <ct, jvp v> = <vjp ct, v>, and that linearize equals jvp."""
    xs = case.draw()
    vs = direction(case, xs, 1)
    wanted = [v is not None for v in vs]
    fun = applied(case)
    with reference():
        _, pushed = forward.jvp(fun, xs, vs)
        outs, linear = reverse.linearize(fun, xs, wanted)
        tangents = linear.apply([v for v in vs if v is not None])
        cts = [random_like(o, case.seed(2)) for o in outs]
        back = linear.transpose([None if t is None else c for c, t in zip(cts, tangents, strict=True)])
        scaled = linear.apply([0.7 * v for v in vs if v is not None])
    # A primitive that rounds (reduce_precision) rounds tangents too, so it is linear only up to rounding.
    rounds = not all(t is None or np.allclose(s, 0.7 * t, *_exact(t)) for s, t in zip(scaled, tangents, strict=True))
    for o, a, b in zip(outs, tangents, pushed, strict=True):
        assert (a is None) == (b is None)
        if a is not None:
            close(a, b, *_exact(o), what="linearize")
    inputs = [v for v in vs if v is not None]
    for ct, v in zip(back, inputs, strict=True):
        assert ct is None or aval_of(ct).strong() is aval_of(v).strong(), f"cotangent {aval_of(ct)!r} of {aval_of(v)!r}"
    exact = (5e-2, 5e-2) if rounds else _exact(xs[case.floats[0]])
    np.testing.assert_allclose(pair(back, inputs), pair(cts, pushed), *exact)


def _exact(x: Any) -> tuple[float, float]:
    return (1e-9, 1e-10) if _numeric(x)[0] < 1e-3 else (1e-3, 1e-4)


def check_second(case: Case) -> None:
    """Check the jvp of the vjp against finite differences of the vjp."""
    xs = case.draw()
    vs = direction(case, xs, 1)
    fun = applied(case)
    cts = [random_like(o, case.seed(2)) for o in ref(case, xs)]

    def pull(*ys: Any) -> list[Any]:
        wanted = [v is not None for v in vs]
        _, linear = reverse.linearize(fun, ys, wanted)
        live = linear.outputs
        back = linear.transpose([None if v is None else c for c, v in zip(cts, live, strict=True)])
        return [b for b in back if b is not None]

    def numeric(ys: list[Any]) -> list[Any]:
        with reference():
            return [np.asarray(b) for b in pull(*ys)]

    with reference():
        outs, tangents = forward.jvp(pull, xs, vs)
    for o, t, want in zip(outs, tangents, along(numeric, xs, vs), strict=True):
        close(np.zeros_like(o) if t is None else t, want, *_numeric(np.asarray(o)), what="second derivative")


def linear_sets(case: Case) -> list[tuple[tuple[int, ...], list[Any]]]:
    """Return the sets of operands in which `ref` is linear, each with values for all operands.

    The other operands are zero where `ref` is linear only then (a sum, a scatter-add).
    """
    if not any(o.size for o in ref(case, case.draw())):  # empty results are always linear: take another sample
        if not all(dtypes.is_inexact(o.dtype) for o in ref(case, case.draw())):
            return []
        others = [c for c in differentiable() if c.prim is case.prim and len(c.sample.operands) == len(case.draw())]
        full = next((c for c in others if any(o.size for o in ref(c, c.draw()))), None)
        return [] if full is None else [(chosen, case.draw()) for chosen, _ in linear_sets(full)]
    found: list[tuple[tuple[int, ...], list[Any]]] = []
    for count in range(1, len(case.floats) + 1):
        for chosen in itertools.combinations(case.floats, count):
            xs = case.draw()
            rest = [k for k in case.floats if k not in chosen]
            zeroed = [np.zeros_like(x) if k in rest else x for k, x in enumerate(xs)]
            within = 1e-9 if case.sample.smooth else 2e-2  # primitives that round
            if _linear(case, chosen, xs, within):
                found.append((chosen, xs))
            elif rest and _linear(case, chosen, zeroed, within):
                found.append((chosen, zeroed))
    return found


def _linear(case: Case, chosen: Sequence[int], xs: Sequence[Any], within: float = 1e-9) -> bool:
    at = lambda vs: ref(case, [vs[k] if k in chosen else x for k, x in enumerate(xs)])
    u, v = direction(case, xs, 3), direction(case, xs, 4)
    mixed = [None if a is None else np.asarray(0.3 * a - 2.0 * b, a.dtype) for a, b in zip(u, v, strict=True)]
    if not all(
        dtypes.is_inexact(m.dtype) and np.allclose(m, 0.3 * a - 2.0 * b, rtol=within, atol=within)
        for m, a, b in zip(at(mixed), at(u), at(v), strict=True)
    ):
        return False
    # A result that an operand does not influence (a product with zero) is linear in it, but tests nothing.
    alone = [at([v[k] if i == k else w for i, w in enumerate(u)]) for k in chosen]
    return all(any(not np.array_equal(a, b) for a, b in zip(at(u), other, strict=True)) for other in alone)


def check_transpose(case: Case) -> int:
    """Check that the transpose rule is the adjoint of `ref`, for each set of linear operands; return their number."""
    sets = linear_sets(case)
    for chosen, xs in sets:
        vs = direction(case, xs, 5)
        outs = ref(case, [vs[k] if k in chosen else x for k, x in enumerate(xs)])
        cts = [random_like(o, case.seed(6)) for o in outs]
        args = [UndefinedPrimal(aval_of(x).strong()) if k in chosen else x for k, x in enumerate(xs)]
        with reference():
            back = case.prim.transpose(cts if case.prim.multiple_results else cts[0], args, **case.sample.params)
        assert len(back) == len(xs), f"{len(back)} cotangents for {len(xs)} operands"
        for k, (b, x) in enumerate(zip(back, xs, strict=True)):
            assert b is None or k in chosen, f"operand {k} is not linear, yet has a cotangent"
            assert b is None or aval_of(b).strong() is aval_of(x).strong(), (
                f"cotangent {aval_of(b)!r} of {aval_of(x)!r}"
            )
        some = [v if k in chosen else None for k, v in enumerate(vs)]
        exact = (1e-9, 1e-10) if case.sample.smooth or _linear(case, chosen, xs) else (5e-2, 5e-2)
        np.testing.assert_allclose(pair(back, some), pair(cts, outs), *exact, err_msg=f"of {chosen}")
    return len(sets)


def check_batch(case: Case) -> None:
    """Check the batch rule against a loop over `ref`, for every choice of mapped axes."""
    for dims in in_axes(case):
        _check_dims(case, dims, 3)
    first = tuple(0 for _ in case.sample.operands)
    if first:
        _check_dims(case, first, 1)


def check_batch_of_nothing(case: Case) -> None:
    """Check that mapping over an axis of size 0 gives empty results of the right shape."""
    plain = case.draw()
    wanted = [np.asarray(o) for o in results(case.prim, case.prim.ref(*plain, **case.sample.params))]
    positions = range(len(plain))
    for mapped in [set(positions), *([{k} for k in positions] if len(plain) > 1 else [])]:
        args = [np.empty((0, *x.shape), x.dtype) if k in mapped else x for k, x in enumerate(plain)]
        with reference():
            out, dim = case.prim.batch(
                BatchAxis(0), args, [0 if k in mapped else None for k in positions], **case.sample.params
            )
        pairs = zip(out, dim, strict=True) if case.prim.multiple_results else [(out, dim)]
        for (o, d), want in zip(pairs, wanted, strict=True):
            shape = want.shape if d is None else (*want.shape[:d], 0, *want.shape[d:])
            assert np.shape(o) == shape and np.asarray(o).dtype == want.dtype, (
                f"mapped {mapped}: {np.shape(o)}, wanted {shape}"
            )


def _check_dims(case: Case, dims: Sequence[int | None], size: int) -> None:
    plain = case.draw()
    elements = [
        [x] * size if d is None else case.variants(k, size) for k, (x, d) in enumerate(zip(plain, dims, strict=True))
    ]
    args = [x if d is None else np.stack(e, d) for x, e, d in zip(plain, elements, dims, strict=True)]
    loop = [ref(case, [e[k] for e in elements]) for k in range(size)]
    with reference():
        out, dim = case.prim.batch(BatchAxis(size), args, dims, **case.sample.params)
    pairs = zip(out, dim, strict=True) if case.prim.multiple_results else [(out, dim)]
    for n, (o, d) in enumerate(pairs):
        o = np.asarray(o)
        for k in range(size):
            close(o if d is None else np.take(o, k, d), loop[k][n], what=f"in_axes={tuple(dims)}, element {k}")


def check_compiled(case: Case, got: Sequence[Any], xs: Sequence[Any]) -> None:
    """Check that a compiled primitive agrees with `ref`."""
    for g, want in zip(got, ref(case, xs), strict=True):
        close(np.asarray(g), want, what="compiled")


def check_rules_compiled(case: Case) -> None:
    """Check that jvp, vjp and batch rules give the same results through XLA as through `ref`."""
    import functorch_like as ft

    xs = case.draw()
    fun = applied(case)
    vs = direction(case, xs, 1) if not isinstance(case.prim.jvp, core.NotDefined) else [None] * len(xs)
    wanted = [v is not None for v in vs]
    dims = [0] * len(xs)
    stacked = [np.stack(case.variants(k, 2)) for k in range(len(xs))]
    outs = ref(case, xs)
    cts = [random_like(o, case.seed(2)) for o in outs]

    def everything(ys: Any, batch: Any) -> Any:
        found = []
        if any(wanted):
            _, linear = reverse.linearize(fun, ys, wanted)
            if all(e.prim.name != "custom_lin" for e in linear.equations):  # the forward mode of custom_vjp is refused
                found += [t for t in linear.apply([v for v in vs if v is not None]) if t is not None]
            if reversible(case):
                live = [None if v is None else c for c, v in zip(cts, linear.outputs, strict=True)]
                found += [b for b in linear.transpose(live) if b is not None]
        out, dim = case.prim.batch(BatchAxis(2), batch, dims, **case.sample.params) if dims else ([], [])
        return found, results(case.prim, out) if dims else [], len(results(case.prim, dim)) if dims else 0

    with reference():
        want = everything(xs, stacked)
    got = ft.jit(lambda ys, batch: everything(ys, batch)[:2])(xs, stacked)
    for g, w in zip([*got[0], *got[1]], [*want[0], *want[1]], strict=True):
        close(np.asarray(g), w, *_rounded(w), what="compiled rule")


def _rounded(x: Any) -> tuple[float, float]:
    # NumPy rounds after each primitive of a rule, XLA may round once.
    within = 5e-2 if np.asarray(x).dtype.itemsize == 2 else 1e-4
    return within, within
