"""`VJPHiPrimitive`: operations with rules as methods, among them one for cotangents; and these operations, mapped."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import functorch_like as ft
from functorch_like import dtypes, tree
from functorch_like.avals import ShapeDtypeStruct
from functorch_like.core import is_value
from functorch_like.errors import UnsupportedError
from functorch_like.jax_alias.modules.hi_operations import (
    Accumulator,
    Operation,
    filled,
    moves,
    tangent_of,
    tangent_parts,
)
from functorch_like.jax_alias.modules.hi_tangents import Tangents
from functorch_like.jax_alias.modules.hi_types import HiType, Types
from functorch_like.jax_alias.modules.user_primitives import (
    AxisData,
    UndefinedPrimal,
    Zero,
)


class VJPHiPrimitive(Operation):
    """Base of operations with rules as methods.

    The constructor of a subclass sets `in_avals`, a tuple of pytrees of types; `out_aval`, a pytree of them; and
    `params`, a dictionary whose items become attributes; then it calls `super().__init__()`. Calling an instance
    applies the operation.

    Of the methods, `expand` computes the result. Reverse mode takes `vjp_fwd` and `vjp_bwd` or `vjp_bwd_retval`;
    forward mode takes `jvp`, or `lin` and `linearized`, or else the transpose of `vjp_bwd`. `vmap` takes `batch` or
    `batch_dim_rule`.
    """

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Any]

    def __init__(self) -> None:
        self.ins, self.out = Types(self.in_avals), Types(self.out_aval)
        self.in_avals_flat, self.in_tree = self.ins.leaves, self.ins.structure
        self.out_avals_flat, self.out_tree = self.out.leaves, self.out.structure
        self.__dict__.update(self.params)

    def __call__(self, *args: Any) -> Any:
        """Apply the operation."""
        return self.apply(args)

    def _key(self) -> tuple[Any, ...]:
        known = tuple(sorted(self.params.items()))
        return type(self), self.in_tree, tuple(self.in_avals_flat), self.out_tree, tuple(self.out_avals_flat), known

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VJPHiPrimitive) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    # ----------------------------------------------------------------------------------------- methods of subclasses
    def expand(self, *args: Any) -> Any:
        """Return the result."""
        raise self.lacks("its value", "`expand`")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> tuple[Any, Any]:
        """Return the result and residuals; `nzs_in` is a pytree of booleans: which arguments are differentiated."""
        raise self.lacks("reverse mode", "`vjp_fwd`")

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> None:
        """Add the cotangents of the arguments to accumulators; by default those that `vjp_bwd_retval` returns."""
        back = self.in_tree.flatten_up_to(tuple(self.vjp_bwd_retval(res, outgrad)))
        for accumulator, ct in zip(self.in_tree.flatten_up_to(arg_accums), back, strict=True):
            accumulator.accum(ct)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Sequence[Any]:
        """Return the cotangents of the arguments."""
        raise self.lacks("reverse mode", "`vjp_bwd` or `vjp_bwd_retval`")

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        """Return the result and its tangent."""
        raise self.lacks("forward mode", "`jvp`")

    def lin(self, nzs_in: Any, *primals: Any) -> tuple[Any, Any]:
        """Return the result and residuals for `linearized`."""
        raise self.lacks("forward mode", "`lin`")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        """Return the tangent of the result."""
        raise self.lacks("forward mode", "`linearized`")

    def transpose(self, out_ct: Any, *maybe_accums: Any) -> None:
        """Add cotangents to the accumulators among the arguments of a linear operation."""
        raise self.lacks("a transpose", "`transpose`")

    def batch(self, axis_data: Any, args: Any, dims: Any) -> tuple[Any, Any]:
        """Return the batched result and its mapped axes."""
        raise self.lacks("vmap", "`batch` or `batch_dim_rule`")

    def batch_dim_rule(self, axis_data: Any, dims: Any, /) -> Any:
        """Return the mapped axes of the result; it is computed by mapping `expand`."""
        raise self.lacks("vmap", "`batch` or `batch_dim_rule`")

    # ------------------------------------------------------------------------------------------------------ the rules
    def _defines(self, name: str) -> bool:
        return getattr(type(self), name) is not getattr(VJPHiPrimitive, name)

    def jvp_of_parts(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        """Derivative: a call that is linear in the tangents, whose transpose is `vjp_bwd`."""
        if not self._defines("vjp_fwd"):
            return self._forward_of_parts(primals, tangents)
        moving = list(map(moves, tangents))
        nonzero = self.ins.each(lambda ty, chunk: any(chunk), moving)
        out, residuals = self.vjp_fwd(nonzero, *self.ins.lift(primals))
        leaves, structure = tree.flatten(residuals)
        known = [None if is_value(leaf) else leaf for leaf in leaves]
        floats = [k for k, aval in enumerate(self.out.parts) if dtypes.is_inexact(aval.dtype)]

        def back(saved: Sequence[Any], cts: Sequence[Any]) -> list[Any]:
            rest = iter(saved)  # the primals come after the residuals
            res = structure.unflatten([next(rest) if k is None else k for k in known])
            given = dict(zip(floats, cts, strict=True))
            parts = [given[k] if k in given else Zero(aval) for k, aval in enumerate(self.out.parts)]
            accumulators = [Accumulator(ty) for ty in self.ins.leaves]
            self.vjp_bwd(res, self.out.each(tangent_of, parts), *tree.unflatten(self.in_tree, accumulators))
            sums = [part for a in accumulators for part in a.parts()]
            return [filled(part) for part, moved in zip(sums, moving, strict=True) if moved]

        def forth(saved: Sequence[Any], moved: Sequence[Any]) -> list[Any]:
            if not (self._defines("jvp") or self._defines("lin")):
                return ft.linear_transpose(lambda cts: back(saved, cts), structs)(list(moved))[0]
            rest = iter(moved)
            directions = [next(rest) if moves(t) else t for t in tangents]
            outs = self._forward_of_parts(saved[len(arrays) :], directions)[1]
            return [filled(outs[k]) for k in floats]

        arrays = [leaf for leaf in leaves if is_value(leaf)]
        saved = [*arrays, *primals]
        avals = tuple(self.out.parts[k] for k in floats)
        structs = [ShapeDtypeStruct(a.shape, a.dtype) for a in avals]
        moved = Tangents(forth, back, len(saved), avals).apply(saved, [t for t in tangents if moves(t)])
        result = [Zero(aval) for aval in self.out.parts]
        for k, tangent in zip(floats, moved, strict=True):
            result[k] = tangent
        return self.out.lower(out, f"the result of vjp_fwd of {self!r}"), result

    def _forward_of_parts(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        args, directions = self.ins.lift(primals), self.ins.each(tangent_of, tangents)
        if self._defines("jvp") or not self._defines("lin"):
            out, moved = self.jvp(args, directions)
        else:
            out, residuals = self.lin(self.ins.each(lambda ty, chunk: any(map(moves, chunk)), tangents), *args)
            moved = self.linearized(residuals, *directions)
        return self.out.lower(out, f"the result of {self!r}"), tangent_parts(self.out, moved)

    def transpose_of_parts(self, cts: Any, args: Any) -> list[Any]:
        """Transpose by the method `transpose`."""
        if not self._defines("transpose"):
            raise self.lacks("a transpose", "`transpose`")
        linear = lambda parts: any(isinstance(part, UndefinedPrimal) for part in parts)
        chunks = list(self.ins.chunks(args))
        given = [Accumulator(ty) if linear(chunk) else Types(ty).lift(chunk) for ty, chunk in chunks]
        self.transpose(self.out.each(tangent_of, cts), *tree.unflatten(self.in_tree, given))
        back = [
            g.parts() if linear(chunk) else [None] * len(chunk) for g, (_, chunk) in zip(given, chunks, strict=True)
        ]
        return [part for parts in back for part in parts]

    def batch_of_parts(self, axis: AxisData, args: Any, dims: Any) -> tuple[Any, Any]:
        """Batch by the method `batch`, or by mapping all methods along the axes of `batch_dim_rule`."""
        places = self.ins.each(_dim, dims)
        if self._defines("batch"):
            out, out_dims = self.batch(axis, self.ins.lift(args), places)
        elif self._defines("batch_dim_rule"):
            out_dims = self.batch_dim_rule(axis, places)
            out = Mapped(self, axis.size, places, out_dims)(*self.ins.lift(args))
        else:
            raise self.lacks("vmap", "`batch` or `batch_dim_rule`")
        each = self.out.structure.flatten_up_to(tree.broadcast(out_dims, self.out_aval, is_leaf=lambda d: d is None))
        spread = [d for ty, d in zip(self.out.leaves, each, strict=True) for _ in Types(ty).parts]
        return self.out.lower(out, f"the batched result of {self!r}"), spread


def _dim(ty: Any, dims: list[Any]) -> Any:
    """Return the mapped axis of an argument.

    Raises:
        UnsupportedError: for a mapped value of a hi type.
    """
    if isinstance(ty, HiType) and any(d is not None for d in dims):
        raise UnsupportedError(f"a value of the type {ty!r} is mapped", fix="map the arrays that it is made of")
    return dims[0] if dims else None


class Mapped(VJPHiPrimitive):
    """An operation over arrays mapped along axes: each of its rules is the operation's, mapped."""

    def __init__(self, inner: VJPHiPrimitive, size: int, dims: Any, out_dims: Any) -> None:
        widened = lambda aval, d: aval if d is None else aval.with_dimension(d, size)
        places = inner.in_tree.flatten_up_to(dims)
        spread = tree.broadcast(out_dims, inner.out_aval, is_leaf=lambda d: d is None)
        outs = inner.out_tree.flatten_up_to(spread)
        self.in_avals = tree.unflatten(inner.in_tree, list(map(widened, inner.in_avals_flat, places)))
        self.out_aval = tree.unflatten(inner.out_tree, list(map(widened, inner.out_avals_flat, outs)))
        self.params = {"dims": tuple(places), "inner": inner, "outs": tuple(outs), "size": size}
        super().__init__()

    def _mapped(self, fun: Any, in_axes: Any, out_axes: Any) -> Any:
        return ft.vmap(fun, in_axes, out_axes, axis_size=self.params["size"])

    def _in(self) -> Any:
        return tree.unflatten(self.in_tree, list(self.params["dims"]))

    def _out(self) -> Any:
        return tree.unflatten(self.out_tree, list(self.params["outs"]))

    def _defines(self, name: str) -> bool:
        return name == "batch_dim_rule" or (name != "batch" and self.params["inner"]._defines(name))

    def batch_dim_rule(self, axis_data: Any, dims: Any, /) -> Any:
        """Return the first axes."""
        return 0

    def expand(self, *args: Any) -> Any:
        """Map `expand`."""
        return self._mapped(self.params["inner"].expand, self._in(), self._out())(*args)

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> tuple[Any, Any]:
        """Map `vjp_fwd`; residuals are mapped along their first axes."""
        fun = lambda *args: self.params["inner"].vjp_fwd(nzs_in, *args)
        return self._mapped(fun, self._in(), (self._out(), 0))(*args)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        """Map `vjp_bwd`; cotangents of arguments that are not mapped are added."""
        inner: VJPHiPrimitive = self.params["inner"]

        def back(res: Any, outgrad: Any) -> list[Any]:
            accumulators = [Accumulator(ty) for ty in inner.in_avals_flat]
            inner.vjp_bwd(res, outgrad, *tree.unflatten(inner.in_tree, accumulators))
            return [filled(a.freeze()) for a in accumulators if dtypes.is_inexact(a.aval.dtype)]

        floats = [dtypes.is_inexact(ty.dtype) for ty in inner.in_avals_flat]
        axes = [0 if d is None else d for d, is_float in zip(self.params["dims"], floats, strict=True) if is_float]
        cts = iter(self._mapped(back, (0, self._out()), axes)(res, outgrad))
        back_at = [next(cts) if is_float else None for is_float in floats]
        summed = [
            ct if d is not None or ct is None else ct.sum(0) for ct, d in zip(back_at, self.params["dims"], strict=True)
        ]
        return tree.unflatten(self.in_tree, summed)

    def jvp(self, primals: Any, tangents: Any) -> tuple[Any, Any]:
        """Map `jvp`, or `lin` and `linearized`."""
        inner: VJPHiPrimitive = self.params["inner"]

        def fun(primals: Any, tangents: Any) -> Any:
            if inner._defines("jvp"):
                return inner.jvp(primals, tangents)
            out, residuals = inner.lin(tree.unflatten(self.in_tree, [True] * len(self.in_avals_flat)), *primals)
            return out, inner.linearized(residuals, *tangents)

        return self._mapped(fun, (self._in(), self._in()), (self._out(), self._out()))(primals, tangents)
