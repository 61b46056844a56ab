"""Importable functions and classes, for tests that pickle them or send them to other processes."""

from __future__ import annotations

import dataclasses
import functools
from typing import Any, NamedTuple

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import tree


def plain(x: Any, y: Any = 2.0) -> Any:
    """Not transformed."""
    return fnp.sum(fnp.sin(x) * y)


@ft.jit
def jitted(x: Any) -> Any:
    return fnp.cos(x) * 3


@functools.partial(ft.jit, static_argnums=1)
def powered(x: Any, n: int) -> Any:
    return x**n


@functools.partial(ft.jit, donate_argnums=0)
def donating(x: Any) -> Any:
    return x + 1


@ft.grad
def slope(x: Any) -> Any:
    return fnp.sum(x * x)


@functools.partial(ft.vmap, in_axes=(0, None))
def mapped(x: Any, y: Any) -> Any:
    return x * y


@ft.jit
@ft.vmap
@ft.grad
def both(x: Any) -> Any:
    return x**3


@ft.checkpoint
def saving(x: Any) -> Any:
    return fnp.exp(x)


@ft.custom_jvp
def ruled_forward(x: Any) -> Any:
    return 2 * x


ruled_forward.defjvp(lambda primals, tangents: (2 * primals[0], 3 * tangents[0]))


@ft.custom_vjp
def ruled_backward(x: Any) -> Any:
    return 2 * x


ruled_backward.defvjp(lambda x: (2 * x, None), lambda _, ct: (5 * ct,))


@tree.register_dataclass
@dataclasses.dataclass
class Model:
    weight: Any
    name: str = tree.static(default="linear")

    @ft.jit
    def apply(self, x: Any) -> Any:
        return self.weight * x

    @staticmethod
    @ft.jit
    def doubled(x: Any) -> Any:
        return x * 2


class Pair(NamedTuple):
    first: Any
    second: Any


def call(f: Any, x: Any) -> Any:
    """Call a function and return a float; worker processes run this."""
    return float(fnp.sum(f(x)))
