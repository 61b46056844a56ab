"""`custom_vjp`: a function whose derivative is written by the user, as a rule for cotangents."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.calling import api_boundary
from functorch_like.calling.traced_function import check_callable
from functorch_like.calling.type_variables import P, R
from functorch_like.core import ArrayImpl, Tracer, aval_of, state
from functorch_like.errors import DtypeError, TreeError
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.higher_order.control_flow.cond_branches import united
from functorch_like.primitives.higher_order.custom.custom_fwd import custom_fwd
from functorch_like.primitives.higher_order.custom.custom_vjp import Bwd, custom_vjp_call
from functorch_like.source_info import name_of
from functorch_like.transforms.custom.base import Called, CustomFunction
from functorch_like.transforms.custom.rule_checks import Column, summary
from functorch_like.transforms.custom.symbolic_zeros import as_array, instantiate, strong, tangent_aval

if TYPE_CHECKING:
    from functorch_like.typing import PyTree


@dataclasses.dataclass(frozen=True)
class CustomVJPPrimal:
    """An argument's leaf as `fwd` gets it with `symbolic_zeros=True`.

    Attributes:
        value: the array.
        perturbed: whether a derivative is taken by it. If not, its cotangent is not used.
    """

    value: Any
    perturbed: bool


def custom_vjp_primal_tree_values(tree: Any) -> Any:
    """Arguments of `fwd` with `symbolic_zeros=True` as plain values, without the flags `perturbed`.

    Args:
        tree: pytree with `CustomVJPPrimal` leaves.

    Returns:
        The pytree with each of these leaves replaced by its `value`.

    >>> from functorch_like.custom_derivatives import CustomVJPPrimal, custom_vjp_primal_tree_values
    >>> custom_vjp_primal_tree_values({"w": CustomVJPPrimal(2.0, True)})
    {'w': 2.0}
    """
    leaves, structure = xla.flatten(tree)
    return structure.unflatten([x.value if isinstance(x, CustomVJPPrimal) else x for x in leaves])


class custom_vjp(CustomFunction[P, R]):
    """Define a function's derivative in reverse mode by a pair of rules.

    `fwd` computes the result and keeps what `bwd` needs (the residuals); `bwd` makes cotangents of the arguments from
    the cotangent of the result. Both are used by `grad`, `vjp`, `jacrev` and the like, inside of `jit`, `vmap` and
    control flow, and are differentiated themselves for higher orders. Forward mode cannot use them: where `jvp`,
    `jacfwd` or `hvp` must be able to, give the function a `custom_jvp` rule.

    Args:
        fun: takes and returns pytrees of arrays. Left out, `custom_vjp` gives a decorator.
        nondiff_argnums: positions of arguments that are not arrays, such as functions or sizes, or that have no
            derivative. `fwd` is given them in their places, `bwd` is given them first.
        nondiff_argnames: the same by name.

    Returns:
        The function, with `defvjp`, which must be called before the function is.

    Raises:
        ArgumentError: at the call, where no rules are defined.
        TreeError, ShapeError, DtypeError: where a rule returns a wrong structure, shape or dtype.
        DifferentiationError: in forward mode.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> @ft.custom_vjp(nondiff_argnums=(0,))
    ... def limit_gradient(most, x):
    ...     return x
    >>> limit_gradient.defvjp(
    ...     lambda most, x: (x, None), lambda most, _, g: (fnp.clip(g, -most, most),))
    >>> float(ft.grad(lambda x: limit_gradient(0.5, x) ** 2)(3.0))
    0.5
    """

    kind = "custom_vjp"
    fwd: Callable[..., Any] | None = None
    bwd: Callable[..., Any] | None = None
    symbolic_zeros: bool = False
    optimize_remat: bool = False

    @api_boundary.public
    def defvjp(
        self,
        fwd: Callable[..., tuple[PyTree, PyTree]],
        bwd: Callable[..., PyTree],
        symbolic_zeros: bool = False,
        optimize_remat: bool = False,
    ) -> None:
        """Define the rules.

        Args:
            fwd: takes the arguments of the function, gives `(result, residuals)`: a pytree of anything.
            bwd: `(*nondiff, residuals, cotangent) -> cotangents`. The cotangent has the structure, shapes and dtypes
                of the result (float0 zeros for integers). It gives a tuple with one entry for each argument that is
                not nondiff, of its structure, shapes and dtypes; None for zero, at any level. For a Python number any
                float dtype is converted. What belongs to an integer is ignored.
            symbolic_zeros: `fwd` is given a `CustomVJPPrimal` for each leaf of the arguments, and `bwd` a
                `SymbolicZero` for each cotangent that is zero.
            optimize_remat: where a staged program turns out not to need the residuals, as the first pass of
                `checkpoint` does, compute `fun` instead of `fwd`.
        """
        check_callable(fwd, "defvjp")
        check_callable(bwd, "defvjp")
        self.fwd, self.bwd, self.symbolic_zeros, self.optimize_remat = fwd, bwd, symbolic_zeros, optimize_remat

    def _missing(self) -> str:
        return "" if self.fwd else f"{self.name}.defvjp(fwd, bwd)"

    def _called(self, nondiff: tuple[Any, ...], in_tree: Any) -> _Called:
        return _Called(self, nondiff, in_tree)

    def _with_refs(self, failed: DtypeError, values: tuple[Any, ...]) -> Any:
        from functorch_like.transforms.custom.refs import call_with_refs  # few functions have them

        def closed(fun: Any, fwd: Any, bwd: Any) -> Any:
            made: Any = custom_vjp(fun)
            made.defvjp(fwd, bwd, self.symbolic_zeros, self.optimize_remat)
            return made

        return call_with_refs(self, failed, values, closed, _spread)

    def bind(self, called: Called, leaves: list[Any]) -> Sequence[Any]:
        return custom_vjp_call(*leaves, fun=called.function, fwd=called, consts=0)


class _Called(Called):
    """One call; as a function it is `fwd` on flat leaves."""

    custom: custom_vjp

    @property
    def __name__(self) -> str:
        return name_of(self.custom.fwd)

    def __call__(
        self, primals: Sequence[Any], perturbed: Sequence[bool], expected: Sequence[ShapedArray] | None
    ) -> tuple[list[Any], list[Any], Bwd]:
        leaves = [as_array(p) for p in primals]
        self.in_avals = avals = [aval_of(x) for x in leaves]
        if not (self.custom.optimize_remat and state.trace.staging):
            return self.forward(leaves, perturbed, expected)
        # The function with its rules: where it takes the place of fwd, it may be differentiated again.
        fun, fun_consts = stage(lambda *xs: self.custom.bind(self, xs), avals, name=self.custom.name)
        backward: list[Any] = []

        def flat(*xs: Any) -> list[Any]:
            outs, residuals, bwd = self.forward(xs, perturbed, fun.out_avals)
            backward[:] = [bwd]
            return [*outs, *residuals]

        fwd, fwd_consts = stage(flat, avals, name=self.__name__)
        consts, (fwd, fun) = united([(fwd, fwd_consts), (fun, fun_consts)])
        results = custom_fwd(*consts, *leaves, fwd=fwd, fun=fun)
        count = len(fun.outputs)
        return results[:count], results[count:], backward[0]

    def forward(
        self, leaves: Sequence[Any], perturbed: Sequence[bool], expected: Sequence[ShapedArray] | None
    ) -> tuple[list[Any], list[Any], _Backward]:
        """Results, residuals that are arrays, and a function from these to cotangents."""
        fwd = self.custom.fwd
        assert fwd is not None
        args: Sequence[Any] = leaves
        if self.custom.symbolic_zeros:
            args = [CustomVJPPrimal(x, p) for x, p in zip(leaves, perturbed, strict=True)]
        with self.written_by_user("fwd takes the function's arguments, no ctx, and returns (result, residuals)"):
            pair = fwd(*self.with_nondiff(self.in_tree.unflatten(args)))
        out, residuals = self.report(fwd).pair(pair, "(result, residuals); residuals may be None")
        outs = self.results(fwd, out, expected)
        leaves_of_residuals, treedef = xla.flatten(residuals)
        arrays = [isinstance(r, (ArrayImpl, Tracer, np.ndarray, np.generic)) for r in leaves_of_residuals]
        others = [None if a else r for r, a in zip(leaves_of_residuals, arrays, strict=True)]
        avals = [aval_of(o) for o in outs], [aval_of(x) for x in leaves]
        bwd = _Backward(self, self.out_tree, *avals, treedef, arrays, others)
        return outs, [r for r, a in zip(leaves_of_residuals, arrays, strict=True) if a], bwd


@dataclasses.dataclass(eq=False, repr=False)
class _Backward:
    """`bwd` on flat leaves.

    Residuals that are not arrays (numbers, names, functions) stay here; arrays are operands of the primitive.
    """

    called: _Called
    out_tree: Any
    out_avals: list[ShapedArray]
    in_avals: list[ShapedArray]
    residual_tree: Any
    arrays: list[bool]
    others: list[Any]

    @property
    def __name__(self) -> str:
        return name_of(self.called.custom.bwd)

    def __call__(self, residuals: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
        custom = self.called.custom
        assert custom.bwd is not None
        rest = iter(residuals)
        every = [next(rest) if a else other for a, other in zip(self.arrays, self.others, strict=True)]
        filled = [instantiate(ct, a, custom.symbolic_zeros) for ct, a in zip(cts, self.out_avals, strict=True)]
        first = "*nondiff, " if self.called.nondiff else ""
        with self.called.written_by_user(f"bwd({first}residuals, ct) returns a tuple, with an entry for each argument"):
            back = custom.bwd(
                *self.called.nondiff, self.residual_tree.unflatten(every), self.out_tree.unflatten(filled)
            )
        return [strong(ct, a) for ct, a in zip(self.leaves(back), self.in_avals, strict=True)]

    def leaves(self, back: Any) -> list[Any]:
        """Leaves of the cotangents, one for each leaf of the arguments, checked."""
        bwd, in_tree = self.called.custom.bwd, self.called.in_tree
        count = len(in_tree.children())
        if isinstance(back, list):
            back = tuple(back)
        report = self.called.report(bwd)._replace(avals=self.in_avals)
        if not isinstance(back, tuple) or len(back) != count:
            raise report.error(
                TreeError,
                f"{report.name} returned {summary(back)} for the cotangents of {count} argument{'s' * (count != 1)}",
                "return a tuple with one entry for each argument, None for zero: (ct,) for a single one",
            )
        result = _spread(in_tree, back)
        leaves, treedef = xla.flatten(back) if result is None else (result, in_tree)
        if treedef == in_tree:  # whatever belongs to an integer is ignored, as in JAX
            leaves = [x if dtypes.is_inexact(a.dtype) else None for x, a in zip(leaves, self.in_avals, strict=True)]
        expected = Column("cotangent needed", in_tree, [tangent_aval(a) for a in self.in_avals])
        report.derivative("cotangent returned", treedef, leaves, expected, self.in_avals)
        return leaves


def _spread(treedef: Any, given: Any) -> list[Any] | None:
    """Return an entry for each leaf of a structure; None where the structures differ.

    A None among the entries stands for all leaves below it. A single entry may stand for a container of one leaf, and
    is ignored where there is none: for an argument that is None, as in JAX.
    """
    whole = treedef.unflatten([0] * treedef.num_leaves)
    entries, prefix = xla.flatten(given, lambda x: x is None)
    try:
        parts = prefix.flatten_up_to(whole)
    except (ValueError, TypeError):
        return None
    result: list[Any] = []
    for entry, part in zip(entries, parts, strict=True):
        leaves, _ = xla.flatten(part)
        if entry is not None and len(leaves) > 1:
            return None
        result += [entry] * len(leaves)
    return result
