"""Requests for the cotangents of arguments in `vjp(...)[1].with_refs(...)`, beside Refs that they are added to.

>>> import functorch_like as ft, functorch_like.numpy as fnp
>>> y, pullback = ft.vjp(lambda w, x: w @ x, fnp.ones((2, 2)), fnp.ones(2))
>>> total = ft.new_ref(fnp.zeros((2, 2)))
>>> pullback.with_refs(total, ft.ad.DontWant())(fnp.ones(2))
(GradRef(), DidntWant())
>>> total[...].tolist()
[[1.0, 1.0], [1.0, 1.0]]
"""

from __future__ import annotations

from functorch_like import tree

__all__ = ["DidntWant", "DontWant", "GradRef", "GradValue"]


class _Mark:
    """An object that says nothing but its kind."""

    def __eq__(self, other: object) -> bool:
        return type(other) is type(self)

    def __hash__(self) -> int:
        return hash(type(self))

    def __repr__(self) -> str:
        return f"{type(self).__name__}()"


class GradValue(_Mark):
    """Request for a cotangent as a value."""


class DontWant(_Mark):
    """Request to leave a cotangent out; a jitted function does not compute it then."""


@tree.register_static
class DidntWant(_Mark):
    """Result in place of a cotangent that was to be left out."""


@tree.register_static
class GradRef(_Mark):
    """Result in place of a cotangent that was added to a Ref."""
