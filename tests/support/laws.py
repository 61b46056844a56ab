"""Laws between transformations, as functions of one program. `tests/laws/` draws the programs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager, nullcontext
from typing import Any

import hypothesis.strategies as st
import numpy as np
from hypothesis import given, settings

import functorch_like as ft
from functorch_like.testing.programs import N, Program, total
from functorch_like.testing.strategies import programs

SIZE = 4  # of mapped axes; it differs from N, so that a wrong axis raises instead of giving a wrong value
_RNG = np.random.default_rng(5)
POINTS = {rank: _RNG.uniform(-1, 1, (2, *(N,) * rank)) for rank in (0, 1)}
BATCHES = {rank: _RNG.uniform(-1, 1, (2, SIZE, *(N,) * rank)) for rank in (0, 1)}
DIRECTIONS = {rank: _RNG.normal(size=(2, *(N,) * rank)) for rank in (0, 1)}


def point(f: Program) -> tuple[Any, Any]:
    """Return arguments for a program; arrays of the package, because rank-0 NumPy values have a weak type."""
    return tuple(ft.device_put(np.asarray(POINTS[r][k])) for k, r in enumerate(f.ranks))  # type: ignore[return-value]


def direction(f: Program) -> tuple[Any, Any]:
    return tuple(ft.device_put(np.asarray(DIRECTIONS[r][k])) for k, r in enumerate(f.ranks))  # type: ignore[return-value]


def same(got: Any, want: Any, rtol: float = 1e-8) -> None:
    """Assert that values are equal up to rounding; the absolute tolerance grows with the largest element."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.dtype == want.dtype == np.float64, f"dtypes {got.dtype} and {want.dtype}"
    assert got.shape == want.shape, f"shapes {got.shape} and {want.shape}"
    scale = max(1.0, float(np.max(np.abs(want), initial=0.0)))
    np.testing.assert_allclose(got, want, rtol=rtol, atol=rtol * scale)


def difference(f: Callable[..., Any], point: Any, along: Any, step: float = 1e-3) -> Any:
    """Return the directional derivative, by central differences."""

    def at(h: float) -> Any:
        return np.asarray(f(*[a + h * d for a, d in zip(point, along, strict=True)]))

    near, far = (at(step), at(-step)), (at(2 * step), at(-2 * step))
    return (8 * (near[0] - near[1]) - (far[0] - far[1])) / (12 * step)


# ------------------------------------------------------------------------------------------------------------- laws
def jit_is_identity(f: Program) -> None:
    x, w = point(f)
    same(ft.jit(f)(x, w), f(x, w))


def disable_jit_is_jit(f: Program) -> None:
    x, w = point(f)
    with ft.disable_jit():
        plain = ft.jit(f)(x, w)
    same(ft.jit(f)(x, w), plain)


def _mapped(f: Program, axes: tuple[Any, Any]) -> tuple[Any, Any, list[Any]]:
    given: list[Any] = []
    elements: list[list[Any]] = []
    for k, (rank, axis) in enumerate(zip(f.ranks, axes, strict=True)):
        batch, single = BATCHES[rank][k], POINTS[rank][k]
        given.append(ft.device_put(np.asarray(single if axis is None else np.moveaxis(batch, 0, axis))))
        elements.append([ft.device_put(np.asarray(single if axis is None else b)) for b in batch])
    return given[0], given[1], list(zip(*elements, strict=True))


def vmap_is_stack(f: Program, axes: tuple[Any, Any], out: int) -> None:
    x, w, elements = _mapped(f, axes)
    want = np.stack([np.asarray(f(*e)) for e in elements], out)
    same(ft.vmap(f, in_axes=axes, out_axes=out)(x, w), want)


def vmap_of_jit_is_stack(f: Program, axes: tuple[Any, Any], out: int) -> None:
    x, w, elements = _mapped(f, axes)
    want = np.stack([np.asarray(f(*e)) for e in elements], out)
    same(ft.vmap(ft.jit(f), in_axes=axes, out_axes=out)(x, w), want)


def jit_of_vmap_is_stack(f: Program, axes: tuple[Any, Any], out: int) -> None:
    x, w, elements = _mapped(f, axes)
    want = np.stack([np.asarray(f(*e)) for e in elements], out)
    same(ft.jit(ft.vmap(f, in_axes=axes, out_axes=out))(x, w), want)


def vmap_of_grad_is_grads(f: Program, axes: tuple[Any, Any], out: int) -> None:
    x, w, elements = _mapped(f, axes)
    slope = ft.grad(lambda x, w: total(f(x, w)), argnums=(0, 1))
    for k, got in enumerate(ft.vmap(slope, in_axes=axes)(x, w)):
        same(got, np.stack([np.asarray(slope(*e)[k]) for e in elements]))


def grad_of_vmap_is_sum_of_grads(f: Program, axes: tuple[Any, Any], out: int) -> None:
    x, w, elements = _mapped(f, axes)
    slope = ft.grad(lambda x, w: total(f(x, w)), argnums=(0, 1))
    got = ft.grad(lambda x, w: ft.vmap(f, in_axes=axes)(x, w).sum(), argnums=(0, 1))(x, w)
    for k, (g, axis) in enumerate(zip(got, axes, strict=True)):
        each = [np.asarray(slope(*e)[k]) for e in elements]
        same(g, sum(each) if axis is None else np.stack(each, axis))


def jvp_is_difference(f: Program) -> None:
    at, along = point(f), direction(f)
    out, tangent = ft.jvp(f, at, along)
    same(out, f(*at))
    same(tangent, difference(f, at, along), rtol=1e-5)


def grad_agrees_with_jvp(f: Program) -> None:
    at, along = point(f), direction(f)
    slopes = ft.grad(lambda x, w: total(f(x, w)), argnums=(0, 1))(*at)
    tangent = ft.jvp(lambda x, w: total(f(x, w)), at, along)[1]
    same(sum(np.sum(np.asarray(s) * np.asarray(d)) for s, d in zip(slopes, along, strict=True)), tangent)


def grad_of_jit_is_grad(f: Program) -> None:
    at = point(f)
    slope = lambda g: ft.grad(lambda x, w: total(g(x, w)), argnums=(0, 1))
    want = slope(f)(*at)
    for found in (slope(ft.jit(f)), ft.jit(slope(f))):
        for a, b in zip(found(*at), want, strict=True):
            same(a, b)


def linearize_is_jvp(f: Program) -> None:
    at, along = point(f), direction(f)
    out, push = ft.linearize(f, *at)
    want = ft.jvp(f, at, along)
    same(out, want[0])
    same(push(*along), want[1])
    same(ft.linearize(ft.jit(f), *at)[1](*along), want[1])
    same(ft.jvp(ft.jit(f), at, along)[1], want[1])


def vjp_is_adjoint(f: Program) -> None:
    at, along = point(f), direction(f)
    out, tangent = ft.jvp(f, at, along)
    ct = np.linspace(0.5, 1.5, out.size).reshape(out.shape)
    left = np.sum(ct * np.asarray(tangent))
    for g in (f, ft.jit(f)):
        _, pull = ft.vjp(g, *at)
        back = pull(ft.device_put(ct))
        same(sum(np.sum(np.asarray(b) * np.asarray(d)) for b, d in zip(back, along, strict=True)), left)


def third_derivative_is_difference(f: Program) -> None:
    at, along = point(f), direction(f)
    once = lambda g: lambda x, w: ft.jvp(g, (x, w), along)[1]
    twice = once(once(f))
    third = once(twice)(*at)
    want = np.asarray(difference(twice, at, along))
    same(third, want, rtol=1e-4)
    second = ft.jit(once(lambda x, w: _pushed(f, x, w, along)))
    same(second(*at), twice(*at), rtol=1e-6)


def _pushed(f: Program, x: Any, w: Any, along: Any) -> Any:
    """Return the derivative along `along`, computed by reverse mode alone."""
    out, pull = ft.vjp(f, x, w)
    _, pullpull = ft.vjp(pull, out)  # the pullback is linear, so its own pullback is the pushforward
    return pullpull((along[0], along[1]))[0]


# ------------------------------------------------------------------------------------------------------ as Hypothesis
AXES = {0: [None, 0, -1], 1: [None, 0, 1, -1, -2]}


@st.composite
def mappings(draw: Any, depth: int = 2, smooth: bool = False) -> tuple[Program, tuple[Any, Any], int]:
    """Draw a program, in_axes and out_axes."""
    f = draw(programs(depth, smooth=smooth))
    axes = (draw(st.sampled_from(AXES[f.ranks[0]])), draw(st.sampled_from(AXES[f.ranks[1]])))
    if axes == (None, None):
        axes = (0, None)
    return f, axes, draw(st.sampled_from([0, -1]))


OF_PROGRAMS: dict[str, tuple[Callable[..., None], int, bool]] = {
    # law: (function, depth of nesting, whether programs must be smooth)
    "jit_is_identity": (jit_is_identity, 2, False),
    "disable_jit_is_jit": (disable_jit_is_jit, 2, False),
    "jvp_is_difference": (jvp_is_difference, 2, True),
    "grad_agrees_with_jvp": (grad_agrees_with_jvp, 2, False),
    "grad_of_jit_is_grad": (grad_of_jit_is_grad, 2, False),
    "linearize_is_jvp": (linearize_is_jvp, 2, False),
    "vjp_is_adjoint": (vjp_is_adjoint, 2, False),
    "third_derivative_is_difference": (third_derivative_is_difference, 1, True),
}
OF_MAPPINGS: dict[str, tuple[Callable[..., None], int]] = {
    "vmap_is_stack": (vmap_is_stack, 2),
    "vmap_of_jit_is_stack": (vmap_of_jit_is_stack, 2),
    "jit_of_vmap_is_stack": (jit_of_vmap_is_stack, 2),
    "vmap_of_grad_is_grads": (vmap_of_grad_is_grads, 1),
    "grad_of_vmap_is_sum_of_grads": (grad_of_vmap_is_sum_of_grads, 1),
}


def law(
    name: str, examples: int, around: Callable[[], AbstractContextManager[Any]] = nullcontext
) -> Callable[[], None]:
    """Return a law as a Hypothesis test: it draws programs and checks each inside `around()`."""
    if name in OF_PROGRAMS:
        fun, depth, smooth = OF_PROGRAMS[name]

        @settings(max_examples=examples)
        @given(programs(depth, smooth=smooth))
        def check(f: Program) -> None:
            with around():
                fun(f)
    else:
        mapped, depth = OF_MAPPINGS[name]

        @settings(max_examples=examples)
        @given(mappings(depth))
        def check(drawn: Any) -> None:
            with around():
                mapped(*drawn)

    return check
