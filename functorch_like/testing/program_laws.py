"""Laws that a random program keeps: compiled, run step by step, mapped over and differentiated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import dtypes, tree
from functorch_like.errors import FtError
from functorch_like.ir.jaxpr import Jaxpr, inner_jaxprs
from functorch_like.testing import differential
from functorch_like.testing.error_bars import meaning, with_bars
from functorch_like.testing.source_programs import MAIN, NARROW, Program

Array = np.ndarray[Any, Any]
#: Elements along a mapped axis.
_MAPPED = 2
#: Steps of differences in float64.
_STEP = 2e-5


def check(
    program: Program, *, eager: bool = True, mapped: bool = False, options: dict[str, Any] | None = None
) -> list[str]:
    """Return what is wrong with a program.

    Its gradient is held against finite differences in float64, and what it is under `vmap` against a loop, both by the
    meaning of the primitives in NumPy. Then it is compiled as users' programs are, with its gradient or mapped over,
    and its results are held against the same meaning.

    Args:
        program: a function that no results' order or tie matters to.
        eager: whether it is run primitive by primitive, too.
        mapped: whether it is compiled under `vmap`, rather than with its gradient.
        options: compile options.
    """
    args = program.values()
    if _has_one_way_rule(differential.staged(program.function(wide=True), differential.widened(args)).jaxpr):
        raise differential.Refused(
            "forward mode meets a custom_vjp function, whose derivative is known in reverse only"
        )
    messages = [f"vmap: {m}" for m in _mapping(program, args)] + [f"grad: {m}" for m in _slopes(program, args)]
    messages += [f"compiled: {m}" for m in _compiled(program, args, mapped, options)]
    if eager:
        exact = differential.meaning_of(program, args)
        outs = tree.leaves(program.function()(*map(ft.device_put, args)))
        messages += [f"eager: {m}" for m in _differences(outs, exact)]
    return messages


def _has_one_way_rule(jaxpr: Jaxpr) -> bool:
    """Return True if forward mode met a custom_vjp function, which is refused when the program is compiled."""
    return any(
        e.prim.name == "custom_lin" or any(map(_has_one_way_rule, inner_jaxprs(e.params))) for e in jaxpr.equations
    )


def _differences(outs: Sequence[Any], exact: Sequence[Any]) -> Iterator[str]:
    for k, (out, (value, bars)) in enumerate(zip(outs, exact, strict=True)):
        message = differential.disagreement(out, value, bars)
        if message:
            yield f"result {k}: {message}"


# ---------------------------------------------------------------------------------------------------------- mapping
def _axes(program: Program) -> tuple[int | None, ...]:
    """The axes to map over, which the program decides: not all arguments have one."""
    some = [len(a.shape) % 3 != 2 for a in program.arguments]
    last = [k % 2 * max(0, len(a.shape) - 1) for k, a in enumerate(program.arguments)]
    return tuple(axis if one or not any(some) else None for axis, one in zip(last, some, strict=True))


def _many(args: Sequence[Array], axes: Sequence[int | None]) -> list[Array]:
    """Arguments with elements along the mapped axes, each the same numbers in another order."""
    turned = lambda x, k: np.roll(x.reshape(-1), k).reshape(x.shape)
    return [
        x if axis is None else np.stack([turned(x, k) for k in range(_MAPPED)], axis)
        for x, axis in zip(args, axes, strict=True)
    ]


def _mapping(program: Program, args: Sequence[Array]) -> Iterator[str]:
    axes, wide = _axes(program), differential.widened(args)
    one = differential.staged(program.function(wide=True), wide)
    consts = one.args[: len(one.args) - len(args)]
    many = _many(wide, axes)
    both = differential.staged(ft.vmap(program.function(wide=True), in_axes=axes), many)
    element = lambda k: [x if a is None else np.take(x, k, a) for x, a in zip(many, axes, strict=True)]
    loop = [meaning(one.jaxpr, [*consts, *element(k)]) for k in range(_MAPPED)]
    stacked = [np.stack(outs) for outs in zip(*loop, strict=True)]
    yield from _differences(stacked, with_bars(both.jaxpr, both.args, float(np.finfo(np.float64).eps)))


# ------------------------------------------------------------------------------------------------------ derivatives
def _summed(f: Callable[..., Any]) -> Callable[..., Any]:
    """A scalar that depends on each result."""

    def total(*args: Any) -> Any:
        floats = [x for x in tree.leaves(f(*args)) if dtypes.is_inexact(x.dtype)]
        return sum(fnp.sum(fnp.sin(x)) for x in floats)

    return total


def _argnums(program: Program) -> tuple[int, ...]:
    return tuple(k for k, a in enumerate(program.arguments) if a.dtype in (MAIN, NARROW))


def _with_gradient(program: Program) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Return a transformation to a function of the results and the gradient of their sum."""
    argnums = _argnums(program)
    return lambda f: lambda *args: (f(*args), ft.grad(_summed(f), argnums=argnums)(*args))


def _has_gradient(program: Program, args: Sequence[Array]) -> bool:
    """Return True if reverse mode takes it: not where a loop runs until a condition fails."""
    try:
        differential.staged(_with_gradient(program)(program.function(wide=True)), differential.widened(args))
    except FtError:
        return False
    return bool(_argnums(program))


def _slopes(program: Program, args: Sequence[Array]) -> Iterator[str]:
    if not _has_gradient(program, args):
        return
    wide, argnums = differential.widened(args), _argnums(program)
    f = program.function(wide=True)
    slope = differential.staged(ft.grad(_summed(f), argnums=argnums), wide)
    total = differential.staged(_summed(f), wide)
    consts = total.args[: len(total.args) - len(args)]
    rng = np.random.default_rng(1)
    along = [rng.standard_normal(x.shape) if k in argnums else 0 * x for k, x in enumerate(wide)]
    moved = lambda h: [x + h * d if k in argnums else x for k, (x, d) in enumerate(zip(wide, along, strict=True))]
    at = lambda h: float(meaning(total.jaxpr, [*consts, *moved(h)])[0])
    slopes = meaning(slope.jaxpr, slope.args)
    got = sum(float(np.sum(s * along[k])) for s, k in zip(slopes, argnums, strict=True))
    near, far = (at(_STEP) - at(-_STEP)) / (2 * _STEP), (at(2 * _STEP) - at(-2 * _STEP)) / (4 * _STEP)
    scale = 1.0 + abs(near)
    if not np.isfinite([near, far]).all() or abs(near - far) > 1e-4 * scale:
        return  # a kink is near, or a jump
    if not abs(got - near) <= 1e-3 * scale:
        yield f"the derivative along a direction is {got}, by differences {near} and {far}"


def _compiled(program: Program, args: Sequence[Array], mapped: bool, options: Any) -> Iterator[str]:
    if mapped:
        axes = _axes(program)
        args, wrap = _many(args, axes), lambda f: ft.vmap(f, in_axes=axes)
    elif _has_gradient(program, args):
        wrap = _with_gradient(program)
    else:
        wrap = lambda f: f
    exact = differential.meaning_of(program, args, wrap)
    for _, outs in differential.compiled_ways(wrap(program.function()), args, [differential.DEFAULT], options):
        yield from _differences(outs, exact)
