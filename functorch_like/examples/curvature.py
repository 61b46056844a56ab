"""Second derivatives without a Hessian: forward mode over reverse mode, and power iteration on the product."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import random, tree
from functorch_like.examples.models import Params


def dot(a: Params, b: Params) -> Any:
    """The inner product of two pytrees."""
    return sum(fnp.vdot(x, y) for x, y in zip(tree.leaves(a), tree.leaves(b), strict=True))


def hessian_vector_product(loss: Callable[..., Any]) -> Callable[..., Params]:
    """The function `(params, direction, *args) -> H direction`, with H the Hessian of `loss(params, *args)`."""

    def product(params: Params, direction: Params, *args: Any) -> Params:
        gradient = lambda p: ft.grad(loss)(p, *args)
        return ft.jvp(gradient, (params,), (direction,))[1]

    return product


def power_step(loss: Callable[..., Any]) -> Callable[..., tuple[Any, Params]]:
    """The function `(params, direction, *args) -> (curvature along it, next direction)`; directions have norm 1."""
    product = hessian_vector_product(loss)

    def step(params: Params, direction: Params, *args: Any) -> tuple[Any, Params]:
        turned = product(params, direction, *args)
        norm = fnp.sqrt(dot(turned, turned))
        return dot(direction, turned), tree.map(lambda t: t / norm, turned)

    return step


def random_direction(params: Params, seed: Any) -> Params:
    """A direction of norm 1, with the structure of the parameters."""
    leaves = tree.leaves(params)
    keys = random.split(random.key(seed), len(leaves))
    drawn = [random.normal(key, leaf.shape, leaf.dtype) for key, leaf in zip(keys, leaves, strict=True)]
    norm = fnp.sqrt(sum(fnp.vdot(d, d) for d in drawn))
    return tree.unflatten(tree.structure(params), [d / norm for d in drawn])


def curvatures(step: Callable[..., Any], params: Params, *args: Any, steps: int = 20, seed: int = 0) -> Iterator[float]:
    """Estimates of the largest curvature, each better than the one before.

    Args:
        step: `power_step(loss)`, jitted or not.
        params: the parameters at which to estimate it.
        args: the other arguments of the loss.
        steps: how many estimates.
        seed: decides the first direction.
    """
    direction = ft.jit(random_direction)(params, seed)
    for _ in range(steps):
        value, direction = step(params, direction, *args)
        yield float(value)
