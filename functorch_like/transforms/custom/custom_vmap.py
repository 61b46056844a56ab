"""`custom_vmap`: functions with their own rule for vmap."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable
from functorch_like.calling.type_variables import P, R
from functorch_like.core import aval_of
from functorch_like.errors import ShapeError, TreeError
from functorch_like.primitives.higher_order.custom.custom_vmap import custom_vmap_call
from functorch_like.source_info import name_of
from functorch_like.transforms.custom.base import Called, CustomFunction
from functorch_like.transforms.custom.rule_checks import Column
from functorch_like.transforms.custom.symbolic_zeros import as_array

if TYPE_CHECKING:
    from functorch_like.calling.type_variables import F


class custom_vmap(CustomFunction[P, R]):
    """Define a function's rule for `vmap`.

    The rule is used by every map over an argument, inside of `jit` and forward mode too. Reverse mode differentiates
    the function itself, and maps the result as usual; wrap the function in a `custom_vjp` where that matters.

    Args:
        fun: takes and returns pytrees of arrays. All its arguments are arrays.

    Returns:
        The function, with `def_vmap`, which must be called before the function is.

    Raises:
        ArgumentError: at the call, where no rule is defined.
        TreeError, ShapeError, DtypeError: where the rule returns a wrong structure, shape or dtype.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> @ft.custom_batching.custom_vmap
    ... def times(matrix, vector):
    ...     return matrix @ vector
    >>> @times.def_vmap
    ... def times_vmap(axis_size, in_batched, matrix, vector):
    ...     if in_batched == (False, True):  # one product of matrices, not many with a vector
    ...         return vector @ matrix.T, True
    ...     return fnp.einsum("...ij,...j->...i", matrix, vector), True
    >>> ft.vmap(times, in_axes=(None, 0))(fnp.eye(2), fnp.ones((3, 2))).shape
    (3, 2)
    """

    kind = "custom_vmap"
    vmap_rule: Callable[..., Any] | None = None

    def __init__(self, fun: Callable[P, R]) -> None:
        super().__init__(fun)

    @api_boundary.public
    def def_vmap(self, vmap_rule: F) -> F:
        """Define the rule.

        Args:
            vmap_rule: `(axis_size, in_batched, *args) -> (results, out_batched)`. `in_batched` is a tuple with one
                entry for each argument, a pytree of its structure with a bool for each leaf: True if it is batched,
                and has a leading axis of `axis_size`. `out_batched` has a bool for each leaf of the results.

        Returns:
            The rule, so that this serves as a decorator.
        """
        check_callable(vmap_rule, "def_vmap")
        self.vmap_rule = vmap_rule
        return vmap_rule

    def _missing(self) -> str:
        name = self.name
        return "" if self.vmap_rule else f"@{name}.def_vmap above a function (axis_size, in_batched, *args)"

    def _not_an_array(self) -> str:
        return "close over it, or pass an array"

    def _called(self, nondiff: tuple[Any, ...], in_tree: Any) -> _Called:
        return _Called(self, nondiff, in_tree)

    def bind(self, called: Called, leaves: list[Any]) -> Sequence[Any]:
        return custom_vmap_call(*leaves, fun=called.function, rule=called, consts=0)


class _Called(Called):
    """One call; as a function it is the rule on flat leaves."""

    custom: custom_vmap

    @property
    def __name__(self) -> str:
        return name_of(self.custom.vmap_rule)

    def __call__(
        self, size: int, batched: Sequence[bool], args: Sequence[Any], expected: Sequence[ShapedArray] | None
    ) -> tuple[list[Any], list[bool]]:
        rule = self.custom.vmap_rule
        assert rule is not None
        self.in_avals = [aval_of(a) for a in args]
        args_tree = self.in_tree.unflatten([as_array(a) for a in args])
        with self.written_by_user("rule(axis_size, in_batched, *args) returns (results, out_batched)"):
            pair = rule(size, self.in_tree.unflatten(list(batched)), *args_tree)
        report = self.report(rule)
        out, out_batched = report.pair(pair, "(results, out_batched)")
        outs, out_tree = xla.flatten(out)
        report.check_values(outs, out_tree)
        flags, flag_tree = xla.flatten(out_batched)
        if flag_tree != out_tree or not all(isinstance(f, (bool, np.bool_)) for f in flags):
            raise report.error(
                TreeError,
                f"{report.name} returned results of structure {out_tree} and out_batched={out_batched!r:.60}",
                "out_batched has a bool for each leaf of the results",
            )
        avals = [aval_of(o).strong() for o in outs]
        if any(f and a.shape[:1] != (size,) for f, a in zip(flags, avals, strict=True)):
            raise report.error(
                ShapeError,
                f"{report.name} returned out_batched={flags} for {avals}, of which some have no leading axis of {size}",
                "move the axis to the front; or give False for results that are the same for all elements",
            )
        if expected is not None and self.out_tree == out_tree:
            wide = [
                a.with_dimension(0, size).strong() if f else a.strong() for a, f in zip(expected, flags, strict=True)
            ]
            needed, returned = Column("result needed", self.out_tree, wide), Column("result returned", out_tree, avals)
            report.check(needed, returned, "return for each element what the function returns")
        elif expected is not None:
            needed = Column(f"{self.custom.name} gives", self.out_tree, [a.strong() for a in expected])
            report.check(needed, Column("its rule gives", out_tree, avals), "return the structure the function returns")
        self.out_tree = out_tree
        return outs, [bool(f) for f in flags]
