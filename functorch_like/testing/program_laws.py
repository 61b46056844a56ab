"""Laws that a random program keeps: compiled, run step by step, mapped over and differentiated."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import dtypes, tree
from functorch_like.errors import FtError
from functorch_like.ir.jaxpr import Jaxpr, inner_jaxprs
from functorch_like.testing import differential
from functorch_like.testing.differential import Staged
from functorch_like.testing.error_bars import Meaning, meaning
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

    Its gradient is compared with finite differences in float64, and its results under `vmap` with those of a loop, both
    by the meaning of the primitives in NumPy. Then it is compiled as users' programs are, with its gradient or mapped
    over, and its results are compared with the same meaning.

    Args:
        program: a function that does not depend on the order of results or on ties.
        eager: whether it is run primitive by primitive, too.
        mapped: whether it is compiled under `vmap`, rather than with its gradient.
        options: compile options.
    """
    laws = _Laws(program)
    if _has_one_way_rule(laws.wide.jaxpr):
        raise differential.Refused(
            "forward mode is applied to a custom_vjp function, whose derivative is known in reverse only"
        )
    messages = [f"vmap: {m}" for m in laws.mapping()] + [f"grad: {m}" for m in laws.slopes()]
    messages += [f"compiled: {m}" for m in laws.compiled(mapped, options)]
    messages += [f"eager: {m}" for m in laws.eager()] if eager else []
    return messages


def _has_one_way_rule(jaxpr: Jaxpr) -> bool:
    """Return True if forward mode reached a custom_vjp function, which is refused when the program is compiled."""
    return any(
        e.prim.name == "custom_lin" or any(map(_has_one_way_rule, inner_jaxprs(e.params))) for e in jaxpr.equations
    )


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


# ------------------------------------------------------------------------------------------------------------- laws
class _Laws:
    """The laws of one program; each form of it is traced and evaluated once.

    Args:
        program: that keeps them.
    """

    def __init__(self, program: Program) -> None:
        self.program, self.axes, self.argnums = program, _axes(program), _argnums(program)
        self.args = program.values()
        self.wide_args = differential.widened(self.args)
        self.function, self.wide_function = program.function(), program.function(wide=True)
        #: The program in float64.
        self.wide: Staged = differential.staged(self.wide_function, self.wide_args)

    def value(self, args: Sequence[Array]) -> list[Array]:
        """The exact results at other arguments."""
        consts = self.wide.args[: len(self.wide.args) - len(self.args)]
        return meaning(self.wide.jaxpr, [*consts, *args])

    @cached_property
    def once(self) -> Meaning:
        """The program's exact results."""
        return Meaning(self.wide.jaxpr, self.wide.args, 0.0)

    @cached_property
    def both(self) -> Meaning:
        """The exact results under `vmap`."""
        mapped = ft.vmap(self.wide_function, in_axes=self.axes)
        staged = differential.staged(mapped, _many(self.wide_args, self.axes))
        return Meaning(staged.jaxpr, staged.args, 0.0)

    @cached_property
    def with_gradient(self) -> Meaning | None:
        """The exact results with the gradient; None without one, as of loops that run until a condition fails."""
        if not self.argnums:
            return None
        try:
            staged = differential.staged(_with_gradient(self.program)(self.wide_function), self.wide_args)
        except FtError:
            return None
        return Meaning(staged.jaxpr, staged.args, 0.0)

    def mapping(self) -> Iterator[str]:
        """Compare the program under `vmap` with a loop."""
        many = _many(self.wide_args, self.axes)
        element = lambda k: [x if a is None else np.take(x, k, a) for x, a in zip(many, self.axes, strict=True)]
        loop = [self.value(element(k)) for k in range(_MAPPED)]
        yield from differential.differences([np.stack(outs) for outs in zip(*loop, strict=True)], self.both)

    def slopes(self) -> Iterator[str]:
        """Compare the gradient with finite differences."""
        if self.with_gradient is None:
            return
        slopes = self.with_gradient.exact[len(self.wide.jaxpr.outputs) :]
        rng = np.random.default_rng(1)
        along = [rng.standard_normal(x.shape) if k in self.argnums else 0 * x for k, x in enumerate(self.wide_args)]
        pairs = list(enumerate(zip(self.wide_args, along, strict=True)))
        moved = lambda h: [x + h * d if k in self.argnums else x for k, (x, d) in pairs]
        at = lambda h: sum(float(np.sum(np.sin(x))) for x in self.value(moved(h)) if dtypes.is_inexact(x.dtype))
        got = sum(float(np.sum(s * along[k])) for s, k in zip(slopes, self.argnums, strict=True))
        near = (at(_STEP) - at(-_STEP)) / (2 * _STEP)
        scale = 1.0 + abs(near)
        if abs(got - near) <= 1e-3 * scale:
            return
        far = (at(2 * _STEP) - at(-2 * _STEP)) / (4 * _STEP)
        ahead = (at(_STEP) - at(0.0)) / _STEP
        # Else a kink or a jump is near, or at this very point: for example, a maximum of two equal elements has a kink.
        smooth = abs(near - far) <= 1e-4 * scale and abs(near - ahead) <= 1e-2 * scale
        if np.isfinite([near, far, ahead]).all() and smooth:
            yield f"the derivative along a direction is {got}, by differences {near} and {far}"

    def compiled(self, mapped: bool, options: dict[str, Any] | None) -> Iterator[str]:
        """Compile the program under `vmap`, or with its gradient where it has one."""
        if mapped:
            wide, args = self.both, _many(self.args, self.axes)
            drawn = differential.narrow(ft.vmap(self.function, in_axes=self.axes), args)
        elif self.with_gradient is not None:
            wide = self.with_gradient
            drawn = differential.narrow(_with_gradient(self.program)(self.function), self.args)
        else:
            wide, drawn = self.once, differential.narrow(self.function, self.args)
        exact = differential.meaning_of(wide, drawn)
        for _, outs in differential.compiled_ways(drawn, [differential.DEFAULT], options):
            yield from differential.differences(outs, exact)

    def eager(self) -> Iterator[str]:
        """Run the program primitive by primitive."""
        exact = differential.meaning_of(self.once, differential.narrow(self.function, self.args))
        yield from differential.differences(tree.leaves(self.function(*map(ft.device_put, self.args))), exact)
