"""Transformations from functions of one number to functions of one number, which nest in any order."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import functorch_like as ft
import functorch_like.numpy as fnp

Fun = Callable[[ft.Array], ft.Array]


def _pushed(f: Fun) -> Fun:
    return lambda x: ft.jvp(f, (x,), (fnp.ones_like(x),))[1]


def _linearized(f: Fun) -> Fun:
    return lambda x: ft.linearize(f, x)[1](fnp.ones_like(x))


def _pulled(f: Fun) -> Fun:
    return lambda x: ft.vjp(f, x)[1](fnp.ones_like(x))[0]


def _mapped(f: Fun) -> Fun:
    return lambda x: ft.vmap(f)(fnp.stack([x, 0.5 * x])).sum()


def _same_for_all(f: Fun) -> Fun:
    return lambda x: ft.vmap(lambda y: y * f(x))(fnp.asarray([1.0, 2.0], x.dtype)).sum()


#: Transformations by name: REVERSE without forward mode, FORWARD with it.
REVERSE: dict[str, Callable[[Fun], Fun]] = {
    "jit": lambda f: ft.jit(f),
    "grad": lambda f: ft.grad(f),
    "vjp": _pulled,
    "vmap": _mapped,
    "shared": _same_for_all,
}
FORWARD = {"jvp": _pushed, "linearize": _linearized}
ALL = REVERSE | FORWARD
DERIVATIVES = {"grad", "vjp", "jvp", "linearize"}


def nestings(of: dict[str, Callable[[Fun], Fun]], depth: int) -> list[tuple[str, ...]]:
    """Return all sequences of names up to a depth, outermost transformation first."""
    return [names for k in range(1, depth + 1) for names in itertools.product(of, repeat=k)]


def nested(names: tuple[str, ...], f: Fun) -> Fun:
    """Apply the named transformations to a function."""
    for name in reversed(names):
        f = ALL[name](f)
    return f
