"""Random programs with nested transformations; `strategies.programs` draws them.

A program is a function of two values of rank 0 or 1, built of steps; each step applies an operation to earlier values,
or a smaller program under a transformation, which closes over further values of the outer program. Programs print as
they compute, so that a failing example can be read.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax

N = 3  # elements of a vector
K = np.array([0.5, -0.8, 1.1])
M = np.array([[0.3, -0.4, 0.2], [0.1, 0.6, -0.5], [-0.7, 0.2, 0.4]])


def total(x: Any) -> Any:
    """The sum of a vector, a scalar itself."""
    return fnp.sum(x) if x.ndim else x


# ------------------------------------------------------------------------------------------------------- operations
# Ranks of the operands, rank of the result (None: the larger one), and whether derivatives exist everywhere.
class Op(NamedTuple):
    """A function of earlier values."""

    name: str
    fun: Callable[..., Any]
    takes: tuple[int | None, ...]
    gives: int | None = None
    smooth: bool = True


def _set(x: Any, y: Any) -> Any:
    return fnp.concatenate([x[:1], fnp.reshape(y, (1,)), x[2:]])


OPS = [
    Op("sin", lambda x: fnp.sin(x), (None,)),
    Op("cos", lambda x: fnp.cos(x), (None,)),
    Op("tanh", lambda x: fnp.tanh(x), (None,)),
    Op("neg", lambda x: -x, (None,)),
    Op("bell", lambda x: fnp.exp(-x * x), (None,)),
    Op("cube", lambda x: fnp.tanh(x) ** 3, (None,)),
    Op("add", lambda x, y: x + y, (None, None)),
    Op("sub", lambda x, y: x - y, (None, None)),
    Op("mul", lambda x, y: x * y, (None, None)),
    Op("skew", lambda x, y: (x - y) - y * (y - x), (None, None)),
    Op("div", lambda x, y: x / (2.0 + fnp.sin(y)), (None, None)),
    Op("norm", lambda x, y: fnp.sqrt(x * x + y * y + 1.0), (None, None)),
    Op("where", lambda x, y: fnp.where(x > 0.1, y, x), (None, None), smooth=False),
    Op("maximum", lambda x, y: fnp.maximum(x, y), (None, None), smooth=False),
    Op("sum", lambda x: fnp.sum(x), (1,), 0),
    Op("mean", lambda x: fnp.mean(x), (1,), 0),
    Op("max", lambda x: fnp.max(x), (1,), 0, smooth=False),
    Op("first", lambda x: x[0], (1,), 0),
    Op("last", lambda x: x[-1], (1,), 0),
    Op("lse", lambda x: fnp.log(fnp.sum(fnp.exp(fnp.tanh(x)))), (1,), 0),
    Op("dot", lambda x, y: fnp.dot(x, y), (1, 1), 0),
    Op("flip", lambda x: x[::-1], (1,), 1),
    Op("roll", lambda x: fnp.concatenate([x[1:], x[:1]]), (1,), 1),
    Op("take", lambda x: x[np.array([2, 0, 0])], (1,), 1),
    Op("matvec", lambda x: M @ x, (1,), 1),
    Op("cumsum", lambda x: fnp.cumsum(x), (1,), 1),
    Op("set", _set, (1, 0), 1),
    Op("fill", lambda x: fnp.broadcast_to(x, (N,)), (0,), 1),
    Op("ramp", lambda x: x * K, (0,), 1),
    Op("stack", lambda x, y: fnp.stack([x, y, x * y]), (0, 0), 1),
]


# ---------------------------------------------------------------------------------------------------- transformations
def as_rank(x: Any, rank: int) -> Any:
    """A value of another rank, made of this one."""
    return x if x.ndim == rank else x * K if rank else total(x * K)


def rows_of(a: Any, rank: int) -> Any:
    """Something with N elements along each of rank + 1 axes."""
    return as_rank(a, 1) if rank == 0 else M * as_rank(a, 1)


def _vmap(g: Any, a: Any, b: Any, c: Any, p: int) -> Any:
    x, w = g.ranks
    xs, axis = rows_of(a, x), (0, -1, x)[p % 3]
    if p % 4 == 0:
        out = ft.vmap(lambda y: g(y, as_rank(b, w)), in_axes=axis)(xs)
    elif p % 4 == 1:
        out = ft.vmap(g, in_axes=(axis, None), out_axes=-1)(xs, as_rank(b, w))
    elif p % 4 == 2:
        out = ft.vmap(g, in_axes=(axis, w))(xs, rows_of(b, w))
    else:
        out = ft.vmap(lambda y: g(as_rank(b, x), y) * total(c), in_axes=0)(rows_of(c, w))
    return fnp.sum(out, axis=p % 2) if out.ndim == 2 else out


def _jit(g: Any, a: Any, b: Any, c: Any, p: int) -> Any:
    if p % 2:
        return ft.jit(lambda y: g(y, b) + total(c))(a)
    return ft.jit(g)(a, b)  # pyright: ignore[reportCallIssue]


def _grad(g: Any, a: Any, b: Any, c: Any, p: int) -> Any:
    if p % 2:
        return ft.grad(lambda y, z: total(g(y, z)) + total(y * z * total(c)), argnums=1)(a, b)
    return ft.grad(lambda y: total(g(y, b)) + total(y * b))(a)


def _both(g: Any, a: Any, b: Any, c: Any, p: int) -> Any:
    value, slopes = ft.value_and_grad(lambda y: total(g(y, b)) * total(c), argnums=(0,))(a)
    return value + slopes[0]


def _jvp(g: Any, a: Any, b: Any, c: Any, p: int) -> Any:
    if p % 3 == 2:  # a function that does not depend on its argument, but on values of the outer program
        out, zero = ft.jvp(lambda y: g(as_rank(b, g.ranks[0]), b), (a,), (as_rank(c, a.ndim),))
        return out + zero
    if p % 2:
        return ft.jvp(g, (a, b), (as_rank(c, a.ndim), as_rank(a, b.ndim)))[1]
    return ft.jvp(lambda y: g(y, b) * total(y), (a,), (as_rank(c, a.ndim),))[1]


def _linearize(g: Any, a: Any, b: Any, c: Any, p: int) -> Any:
    out, push = ft.linearize(lambda y: g(y, b), a)
    return push(as_rank(c, a.ndim)) + out * push(as_rank(b, a.ndim))


def _vjp(g: Any, a: Any, b: Any, c: Any, p: int) -> Any:
    out, pull = ft.vjp(g, a, b)
    one, other = pull(as_rank(c, out.ndim))
    return one + total(other)


def _scan(g: Any, a: Any, b: Any, c: Any, p: int) -> Any:
    def step(carry: Any, y: Any) -> tuple[Any, Any]:
        out = g(carry, y)
        return fnp.tanh(as_rank(out, a.ndim) + carry * (total(c) if p % 3 else 1.0)), out

    last, outs = lax.scan(step, a, rows_of(b, b.ndim), reverse=p % 2 == 1, unroll=(1, 2, True)[p % 3])
    return last + total(fnp.sum(outs, axis=-1)) if p % 4 else last


def _fori_loop(g: Any, a: Any, b: Any, c: Any, p: int) -> Any:
    return lax.fori_loop(1, 3 + p % 2, lambda i, y: fnp.tanh(as_rank(g(y, b), a.ndim) * i + total(c) * (p % 3)), a)


def _cond(g: Any, a: Any, b: Any, c: Any, p: int) -> Any:
    s = total(c) - 0.1  # at 0 the branches agree, with their first two derivatives
    positive, negative = lambda y, z: g(y, z) * s**3, lambda y, z: g(0.5 * y, z) * -(s**3)
    if p % 3 == 0:
        return lax.cond(s > 0, positive, negative, a, b)
    if p % 3 == 1:
        return lax.cond(s > 0, lambda: positive(a, b), lambda: negative(a, b))
    which = (s > 0).astype("int32") + p % 2
    return lax.switch(which, [negative, (positive, negative)[p % 2], positive], a, b)


def _checkpoint(g: Any, a: Any, b: Any, c: Any, p: int) -> Any:
    policies = ft.checkpoint_policies
    policy = (None, policies.within(0), policies.within(100), policies.dots_saveable)[p % 4]
    if p % 3:
        return ft.checkpoint(lambda y: g(y, b) * total(c), policy=policy, prevent_cse=p % 3 == 1)(a)
    return ft.checkpoint(g, policy=policy)(a, b)


# Each transformation, and whether the ranks of the inner program are those of its operands (else they are free).
NESTS: dict[str, tuple[Callable[..., Any], bool]] = {
    "jit": (_jit, True),
    "vmap": (_vmap, False),
    "grad": (_grad, True),
    "value_and_grad": (_both, True),
    "jvp": (_jvp, True),
    "linearize": (_linearize, True),
    "vjp": (_vjp, True),
    "scan": (_scan, True),
    "fori_loop": (_fori_loop, True),
    "cond": (_cond, True),
    "checkpoint": (_checkpoint, True),
}


# --------------------------------------------------------------------------------------------------------- programs
class Step(NamedTuple):
    """An operation, or a transformation with the program under it, and which earlier values it takes."""

    what: Op | str
    operands: tuple[int, ...]
    inner: Program | None = None
    variant: int = 0

    def apply(self, values: list[Any]) -> Any:
        chosen = [values[k] for k in self.operands]
        if isinstance(self.what, Op):
            return self.what.fun(*chosen)
        assert self.inner is not None
        a, b = chosen[0], chosen[1]
        if NESTS[self.what][1]:
            a, b = as_rank(a, self.inner.ranks[0]), as_rank(b, self.inner.ranks[1])
        return 0.5 * NESTS[self.what][0](self.inner, a, b, chosen[2], self.variant)


class Program:
    """A function of two values. It has a name and can be hashed, as functions can."""

    def __init__(self, ranks: tuple[int, int], steps: list[Step], rank: int) -> None:
        self.ranks, self.steps, self.rank = ranks, steps, rank
        self.__name__ = "program"

    def __call__(self, x: Any, w: Any) -> Any:
        values = [x, w]
        for step in self.steps:
            values.append(step.apply(values))
        return as_rank(values[-1] + 0.3 * values[-1] * total(w), self.rank) + total(x * w)  # every input is live

    def lines(self, name: str = "f") -> list[str]:
        before: list[str] = []
        body: list[str] = []
        for n, step in enumerate(self.steps, 2):
            operands = ", ".join(f"v{k}" for k in step.operands)
            if step.inner is None:
                body.append(f"    v{n} = {step.what.name}({operands})")  # type: ignore[union-attr]
            else:
                before += step.inner.lines(f"{name}{n}")
                body.append(f"    v{n} = {step.what}[{step.variant}]({name}{n})({operands})")
        return [*before, f"def {name}(v0: rank {self.ranks[0]}, v1: rank {self.ranks[1]}):", *body,
                f"    return rank {self.rank} of v{len(self.steps) + 1}"]  # fmt: skip

    def __repr__(self) -> str:
        return "\n" + "\n".join(self.lines()) + "\n"
