"""The decorator `custom_partitioning`, and the function that XLA calls while it partitions a program."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import tree
from functorch_like.avals import ShapedArray, ShapeDtypeStruct
from functorch_like.backends import xla
from functorch_like.backends.xla.configuration import current_mesh
from functorch_like.backends.xla.custom_partitioner import Partitioner, Parts
from functorch_like.backends.xla.partitioned_emit import Manual
from functorch_like.caches import Cache
from functorch_like.calling import api_boundary, traced_function
from functorch_like.calling.call_signature import FlatCall, Static, resolve_argnums
from functorch_like.calling.traced_function import check_callable
from functorch_like.compiler.lower import emit
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.experimental.custom_partitioning.sharding_rule import SdyShardingRule, parsed
from functorch_like.ir import passes
from functorch_like.primitives.higher_order.custom_partitioning import custom_partitioning as primitive
from functorch_like.primitives.higher_order.shard_map.shard_map import axes_in_scope
from functorch_like.source_info import name_of


class custom_partitioning:
    """Function whose program on the parts of arrays is written by the user; XLA partitions what is around it.

    On one device, and in transformations, it is the function itself: a derivative or a batched form is partitioned by
    XLA. Meshes of several processes are refused.

    Args:
        fun: takes and returns pytrees of arrays, by position.
        static_argnums: positions of arguments that are not arrays; they are hashable.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> from functorch_like.experimental.custom_partitioning import custom_partitioning
    >>> @custom_partitioning
    ... def rows(x):
    ...     return fnp.cumsum(x, axis=1)
    >>> def partition(mesh, arg_shapes, result_shape):
    ...     here = result_shape.sharding
    ...     return mesh, lambda part: fnp.cumsum(part, axis=1), here, (here,)
    >>> rows.def_partition(partition, sharding_rule="i j -> i j", need_replication_factors=("j",))
    >>> rows(fnp.ones((1, 3))).tolist()
    [[1.0, 2.0, 3.0]]
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: int | Sequence[int] = ()) -> None:
        check_callable(fun, "custom_partitioning", "custom_partitioning(f)")
        functools.update_wrapper(self, fun)
        self.fun, self._name = fun, name_of(fun)
        self._static = resolve_argnums(fun, static_argnums, None).nums
        self._partition: Callable[..., Any] | None = None
        self._rule: Any = None
        self._calls: Cache[Any, Any] = Cache()

    def def_partition(
        self,
        partition: Callable[..., tuple[object, ...]],
        infer_sharding_from_operands: Callable[..., object] | None = None,
        propagate_user_sharding: Callable[..., object] | None = None,
        decode_shardings: bool = True,
        sharding_rule: str | SdyShardingRule | Callable[..., object] | None = None,
        *,
        reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (),
        **factor_sizes: int,
    ) -> None:
        """Give the program on parts, and the rule by which shardings propagate.

        Args:
            partition: `(*static, mesh, arg_shapes, result_shape) -> (mesh, fun, result_shardings, arg_shardings)`. The
                shapes are `ShapeDtypeStruct`s of whole arrays with the shardings that XLA proposes, in the structures
                of arguments and result; the shardings returned are those that it is to use. `fun` takes and returns
                parts, and may use collectives over the axes of the mesh.
            infer_sharding_from_operands: no effect: shardings propagate by the rule.
            propagate_user_sharding: no effect, likewise.
            decode_shardings: no effect: shardings are NamedShardings.
            sharding_rule: names of dimensions for operands and results, as in "b i, i j -> b j"; or a
                `SdyShardingRule`; or a function `(*static, mesh, operands, results)` of their avals that returns
                either. Without a rule, shardings do not propagate through the function.
            reduction_factors: dimensions over which the function sums, in a rule that is text.
            need_replication_factors: dimensions that must not be split, likewise.
            permutation_factors: dimensions along which parts are exchanged, likewise.
            **factor_sizes: sizes of factors that stand in parentheses only, likewise.

        Raises:
            ArgumentError: for a rule that cannot be read, or factors that it does not have.
        """
        check_callable(partition, "def_partition", "f.def_partition(partition, sharding_rule=...)")
        special = {
            "reduction_factors": reduction_factors,
            "need_replication_factors": need_replication_factors,
            "permutation_factors": permutation_factors,
        }
        if isinstance(sharding_rule, str):
            sharding_rule = parsed(sharding_rule, special, factor_sizes)
        elif any(special.values()) or factor_sizes:
            raise ArgumentError(
                "factors were given beside a sharding rule that is not text", fix="give them to SdyShardingRule"
            )
        self._partition, self._rule = partition, sharding_rule
        self._calls = Cache()

    @api_boundary.public
    def __call__(self, *args: Any) -> Any:
        if self._partition is None:
            raise ArgumentError(
                f"custom_partitioning({self._name}) has no program on parts", fix="call its def_partition first"
            )
        static = tuple(args[k] for k in self._static)
        fun = functools.partial(_with_static, self.fun, self._static, static) if static else self.fun
        call = traced_function.arguments([a for k, a in enumerate(args) if k not in self._static])
        body = traced_function.staged(fun, call, "custom_partitioning", self._cache(static))
        made = self._calls.get(body.jaxpr)
        if made is None:
            made = _Signature(
                self, static, call.tree, body.out_tree, body.jaxpr.in_avals[len(body.consts) :], body.jaxpr
            )
            self._calls.keep(body.jaxpr, made, 256)
        operands = [*body.consts, *traced_function.operands(call)]
        outs = primitive(
            *operands, jaxpr=body.jaxpr, num_consts=len(body.consts), partitioner=made.partitioner, rule=made.rule
        )
        return body.out_tree.unflatten(outs)

    def _cache(self, static: tuple[Any, ...]) -> Cache[Any, Any]:
        cache = self._calls.get(static)
        if cache is None:
            cache = Cache()
            self._calls.keep(static, cache, 256)
        return cache


def _with_static(fun: Callable[..., Any], positions: Sequence[int], static: Sequence[Any], *args: Any) -> Any:
    rest, known = iter(args), dict(zip(positions, static, strict=True))
    return fun(*(known[k] if k in known else next(rest) for k in range(len(args) + len(static))))


class _Signature:
    """The function with static arguments, for one signature."""

    def __init__(
        self,
        owner: Any,
        static: tuple[Any, ...],
        in_tree: Any,
        out_tree: Any,
        in_avals: Sequence[ShapedArray],
        jaxpr: Any,
    ) -> None:
        self._static, self._in_tree, self._out_tree = static, in_tree, out_tree
        self._in_avals, self._out_avals, self._name = in_avals, jaxpr.out_avals, owner._name
        self._user_partition, self._user_rule = owner._partition, owner._rule
        self.partitioner = Partitioner(self._parts, [aval.ndim for aval in self._out_avals])

    def rule(self, mesh: Any, ins: Sequence[ShapedArray], outs: Sequence[ShapedArray]) -> str | None:
        """Return the rule as an attribute of Shardy, or None."""
        rule: Any = self._user_rule
        if callable(rule):
            rule = rule(*self._static, mesh, list(ins), list(outs))
            rule = parsed(rule, {}, {}) if isinstance(rule, str) else rule
        return None if rule is None else rule.text([a.shape for a in ins], [a.shape for a in outs])

    def _parts(self, mesh: Any, shapes: Any, ins: Sequence[Any], outs: Sequence[Any]) -> Parts:
        structs, results = _structs(self._in_avals, ins), _structs(self._out_avals, outs)
        args, _ = self._in_tree.unflatten(structs)
        result = self._out_tree.unflatten(results)
        mesh, fun, out_split, in_split = self._user_partition(*self._static, mesh, args, result)
        in_each = tree.broadcast_prefix(in_split, args, f"arg_shardings of {self._name}")
        out_each = tree.broadcast_prefix(out_split, result, f"result_shardings of {self._name}")
        module = self._lowered(fun, mesh, _locals(self._in_avals, in_each), _locals(self._out_avals, out_each))
        return Parts(module, in_each, out_each)

    def _lowered(self, fun: Any, mesh: Any, local: Sequence[ShapedArray], wanted: Sequence[ShapedArray]) -> Any:
        """Return the module of the program on parts."""
        args, _ = self._in_tree.unflatten([ShapeDtypeStruct(a.shape, a.dtype, a.weak_type) for a in local])
        with axes_in_scope(mesh, mesh.axis_names), current_mesh.held(mesh):
            call = FlatCall(Static((), ()), args, {}, abstract=True)
            body = traced_function.staged(fun, call, "custom_partitioning", Cache())
        made = [a.strong() for a in body.jaxpr.out_avals]
        if made != [a.strong() for a in wanted]:
            raise ShapeError(
                f"the program on parts of {self._name} returns {made}, and the shardings give parts {list(wanted)}",
                fix="return parts of the shapes and dtypes that the result shardings give",
            )
        simple = passes.simplify(body.jaxpr)

        def emitted(e: Any, *values: Any) -> Any:
            e.manual = Manual(mesh, mesh.axis_names)
            consts = [e.constant(np.asarray(c)) for c in body.consts]
            return emit(e, simple, [*consts, *values], inlined=True)

        return xla.build(self._name, list(local), emitted, platform=mesh.platform)


def _structs(avals: Sequence[ShapedArray], each: Sequence[Any]) -> list[ShapeDtypeStruct]:
    return [ShapeDtypeStruct(a.shape, a.dtype, sharding=s) for a, s in zip(avals, each, strict=True)]


def _locals(avals: Sequence[ShapedArray], each: Sequence[Any]) -> list[ShapedArray]:
    """Return the avals of parts."""
    return [a.update(shape=s.shard_shape(a.shape)) for a, s in zip(avals, each, strict=True)]
