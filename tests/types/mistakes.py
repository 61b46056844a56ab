"""Mistakes that type checkers find: a comment on each names the rule of pyright that reports it."""

from __future__ import annotations

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import Array, lax, random


def loss(w: Array, x: Array) -> Array:
    """Any function."""
    return fnp.sum((x @ w) ** 2)


step = ft.jit(loss)
x = fnp.ones((3, 4))
print(ft.hesian)  # wrong: reportAttributeAccessIssue
fnp.sinn(x)  # wrong: reportAttributeAccessIssue
random.PRGNKey(0)  # wrong: reportAttributeAccessIssue
lax.scann(loss, x)  # wrong: reportAttributeAccessIssue
print(ft.backends.cuba)  # wrong: reportAttributeAccessIssue
x.summ()  # wrong: reportAttributeAccessIssue
print(x.shpae)  # wrong: reportAttributeAccessIssue
x.at[0].sett(1.0)  # wrong: reportAttributeAccessIssue
step(x)  # wrong: reportCallIssue
step(x, y=x)  # wrong: reportCallIssue
ft.grad(loss)(x, x, 3)  # wrong: reportCallIssue
ft.vmap(loss)("a", x)  # wrong: reportArgumentType
ft.jit(3)  # wrong: reportCallIssue, reportArgumentType
ft.checkpoint(loss)(x, [1.0])  # wrong: reportArgumentType
fnp.sum(x, axes=0)  # wrong: reportCallIssue
fnp.sin([1.0, 2.0])  # wrong: reportArgumentType
fnp.zeros("3")  # wrong: reportArgumentType
print(x + "a")  # wrong: reportOperatorIssue
x.sum(axis="rows")  # wrong: reportArgumentType
step.lowr(x, x)  # wrong: reportAttributeAccessIssue
words: str = fnp.ones(3)  # wrong: reportAssignmentType
