"""vmap: values may have a batch axis, which each primitive's `batch` rule carries to the result."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like import core, dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import BatchAxis, Primitive, Trace, Tracer, aval_of, in_width, named_axis, new_trace, state
from functorch_like.errors import FtError, TracerBoolConversionError
from functorch_like.ir.jaxpr import evaluate
from functorch_like.ir.trace_to_jaxpr import Undecided, follower, staging_trace
from functorch_like.primitives.base.shapes import zeros
from functorch_like.primitives.elementwise.comparison import ne
from functorch_like.primitives.reductions.reductions import reduce_and, reduce_or


class BatchTracer(Tracer):
    """Tracer of a value with a batch axis at position `dim`, which its shape does not show."""

    __slots__ = ("dim", "value")

    def __init__(self, trace: Trace, value: Any, dim: int) -> None:
        self._trace, self.value, self.dim = trace, in_width(value), dim
        self._aval = None

    @property
    def aval(self) -> ShapedArray:
        result = self._aval
        if result is None:
            whole = aval_of(self.value)
            shape = whole.shape
            if whole.explicit is None:
                result = ShapedArray(shape[: self.dim] + shape[self.dim + 1 :], whole.dtype, whole.weak_type)
            else:
                result = whole.without_dimension(self.dim)
            self._aval = result
        return result

    def creation_site(self) -> Any:
        value = self.value
        return value.creation_site() if isinstance(value, Tracer) else getattr(value, "traceback", None)

    def guarded(self, what: str) -> Any:
        """Return the truth value of all elements if they agree, with guards on "all" and "any"; else None.

        Raises:
            Undecided: if Python control flow is followed, so that elements may take different paths.
        """
        if what != "bool" or not isinstance(self.value, Tracer) or self.aval.shape:
            return None
        trace: Any = self._trace
        if trace.again:
            following = follower(trace)
            if following is not None:
                trace.undecided = Undecided(trace, following)
                raise trace.undecided
        previous, state.trace = state.trace, self._trace.parent
        try:
            truth = ne(self.value, zeros(self.value.aval)) if self.aval.dtype != dtypes.bool_ else self.value
            both = [reduce(truth, axes=(0,)) for reduce in (reduce_and, reduce_or)]
            every, some = (x.guarded(what) if isinstance(x, Tracer) else x for x in both)
        finally:
            state.trace = previous
        return every if every is not None and bool(every) == bool(some) else None

    def beneath(self) -> Any:
        return self.value


class BatchTrace(Trace):
    """Trace that applies `batch` rules: to operands with the batch axis, collectives over it, and random draws.

    Attributes:
        axis: the batch axis.
        again: True if the function may be staged again, along all its paths.
        undecided: the signal of a condition on which elements may disagree, once it was raised.
        unseen: True if the axis may matter to primitives without operands that have it.
    """

    __slots__ = ("again", "axis", "undecided", "unseen")

    def __init__(self, name: str, parent: Trace, axis: BatchAxis) -> None:
        super().__init__(name, parent)
        self.axis = axis
        self.broadcasts = parent.broadcasts
        self.again = False
        self.undecided: Undecided | None = None
        self.unseen = axis.name is not None or axis.randomness != "same"
        self.staging = parent.staging or self.unseen

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        values: list[Any] = []
        dims: list[int | None] = []
        mine = False
        for a in args:
            if type(a) is BatchTracer and a._trace is self:
                values.append(a.value)
                dims.append(a.dim)
                mine = True
            else:
                values.append(a)
                dims.append(None)
        parent = state.trace = self.parent
        try:
            # Python functions among a primitive's parameters may close over values of this trace, so the batch rules
            # of such primitives get the trace.
            functions = prim.stage_params is not None
            if not mine and not functions and not (self.unseen and self.matters(prim, params)):
                return parent.process(prim, values, params)
            out, dim = prim.batch(self if functions else self.axis, values, dims, **params)
        except FtError as e:
            raise core.add_error_context(e, prim, args, params, self, "batch")  # noqa: B904  (the same error, completed)
        finally:
            state.trace = self
        if prim.multiple_results:
            return [o if d is None else BatchTracer(self, o, d) for o, d in zip(out, dim, strict=True)]
        return out if dim is None else BatchTracer(self, out, dim)

    def matters(self, prim: Primitive, params: dict[str, Any]) -> bool:
        """Return True if the axis matters to a primitive, or a jaxpr in it, without operands that have the axis."""
        axis = self.axis
        if prim.partial_eval is not None:
            return True
        if prim.kind == "random":
            return axis.randomness != "same"
        return axis.name is not None and params.get("axis_name") == axis.name


def batch(
    fun: Callable[..., Sequence[Any]],
    axis: BatchAxis,
    args: Sequence[Any],
    dims: Sequence[int | None],
    name: str = "vmap",
) -> tuple[list[Any], list[int | None]]:
    """Map a function over one axis of each argument.

    If Python control flow is followed and `fun` has `traced_aux` (see `stage`), each element takes its own path. If
    such a function cannot be staged along all its paths, all elements must agree on each condition.

    Args:
        fun: function of flat arguments that returns a sequence.
        axis: the batch axis.
        args: arguments.
        dims: position of the batch axis in each argument; None for arguments that are not mapped.
        name: name of the transformation in errors.

    Returns:
        The results, and the position of the batch axis in each; None for results without it.
    """
    trace = BatchTrace(name, state.trace, axis)
    trace.again = hasattr(fun, "traced_aux")
    around = staging_trace() if trace.again else None
    start = 0 if around is None else len(around.equations)
    outs: Sequence[Any] = ()
    try:
        with new_trace(trace), named_axis(axis.name, axis.size):
            outs = fun(*[a if d is None else BatchTracer(trace, a, d) for a, d in zip(args, dims, strict=True)])
    except (Undecided, Exception):
        if trace.undecided is None:
            raise
    if trace.undecided is None:
        return _parts(trace, outs)
    if around is not None:
        around.forget(start)
    fun = _of_all_paths(trace.undecided.following, fun, axis, args, dims, name)
    return batch(fun, axis, args, dims, name)


def _parts(trace: BatchTrace, outs: Sequence[Any]) -> tuple[list[Any], list[int | None]]:
    mine = [type(o) is BatchTracer and o._trace is trace for o in outs]
    return (
        [o.value if m else o for o, m in zip(outs, mine, strict=True)],
        [o.dim if m else None for o, m in zip(outs, mine, strict=True)],
    )


def _of_one_path(fun: Any, why: FtError) -> Callable[..., Sequence[Any]]:
    """Return a function of which all elements must take the same path; `why` says what prevents others."""

    def run(*leaves: Any) -> Sequence[Any]:
        try:
            return fun(*leaves)
        except TracerBoolConversionError:  # elements disagree
            raise why from None

    return run


def _of_all_paths(
    following: Any, fun: Any, axis: BatchAxis, args: Sequence[Any], dims: Sequence[int | None], name: str
) -> Callable[..., Sequence[Any]]:
    """Return a function without conditions, staged along all paths; if that is impossible, one without `traced_aux`."""
    values = [k for k, a in enumerate(args) if core.is_value(a)]  # other arguments, of any type, are not mapped

    def flat(*leaves: Any) -> Sequence[Any]:
        whole = list(args)
        for k, leaf in zip(values, leaves, strict=True):
            whole[k] = leaf
        return fun(*whole)

    flat.traced_aux = fun.traced_aux  # type: ignore[attr-defined]
    avals = [aval_of(args[k]) for k in values]
    avals = [a if (d := dims[k]) is None else a.without_dimension(d) for k, a in zip(values, avals, strict=True)]
    try:
        with named_axis(axis.name, axis.size):
            jaxpr, consts = following.body(
                flat, avals, name=name, origin=f"traced by {name}", chain=name, parent=state.trace
            )
    except FtError as e:
        return _of_one_path(fun, e)
    return lambda *leaves: evaluate(jaxpr, [*consts, *(leaves[k] for k in values)])
