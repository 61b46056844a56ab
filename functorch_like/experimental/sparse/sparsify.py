"""`sparsify(f)`: an interpreter by which functions of dense arrays take sparse ones.

Each primitive that meets a sparse operand is applied by its rule in `sparsify_rules.py`; all others run as they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from functorch_like import core, tree
from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.core import Primitive, Trace, new_trace, state
from functorch_like.errors import FtError
from functorch_like.experimental.sparse.format import JAXSparse
from functorch_like.experimental.sparse.sparsify_rules import RULES, BroadcastTracer, SparseTracer, elementwise
from functorch_like.primitives.base.shapes import broadcast_in_dim


class SparseTrace(Trace):
    """Trace that applies the rule of each primitive that has a sparse operand."""

    __slots__ = ()

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        if prim.stage_params is not None:
            args, params = prim.stage_params(args, params)
        sparse = any(map(self.is_sparse, args))
        if prim is broadcast_in_dim and not sparse and not isinstance(args[0], BroadcastTracer):
            return BroadcastTracer(self, args[0], params)
        state.trace = self.parent
        try:
            if not sparse:
                return self.parent.process(prim, [self.lower(a) for a in args], params)
            out = self.apply(prim, [a.mat if self.is_sparse(a) else a for a in args], params)
        except FtError as e:
            raise core.add_error_context(e, prim, args, params, self, "sparse")  # noqa: B904  (the same error, completed)
        finally:
            state.trace = self
        return [self.lift(o) for o in out] if prim.multiple_results else self.lift(out)

    def apply(self, prim: Primitive, operands: list[Any], params: dict[str, Any]) -> Any:
        """Apply a rule under the parent trace."""
        rule = RULES.get(prim)
        if rule is not None:
            out = rule(run, operands, params)
            if out is not NotImplemented:
                return out
        return elementwise(prim, operands, params)

    def is_sparse(self, value: Any) -> bool:
        """Return True for a sparse array of this trace."""
        return type(value) is SparseTracer and value._trace is self

    def lift(self, value: Any) -> Any:
        """Return a sparse array as a tracer, and any other value as it is."""
        return SparseTracer(self, value) if isinstance(value, JAXSparse) else value

    def lower(self, value: Any) -> Any:
        """Return a broadcast value in full, and any other as it is."""
        return value.full() if type(value) is BroadcastTracer and value._trace is self else value

    def out(self, value: Any) -> Any:
        """Return a result of the function."""
        return value.mat if self.is_sparse(value) else self.lower(value)


def _is_sparse(x: Any) -> bool:
    return isinstance(x, JAXSparse)


def run(fun: Callable[..., Any], *args: Any) -> Any:
    """Return the results of a function of pytrees with sparse arrays, under a trace of its own."""
    trace = SparseTrace("sparsify", state.trace)
    with new_trace(trace):
        out = fun(*tree.map(trace.lift, args, is_leaf=_is_sparse))
    return tree.map(trace.out, out)


@transformation
def sparsify(f: Callable[..., Any], use_tracer: bool = False) -> Callable[..., Any]:
    """Return a function that takes sparse arrays, from one that is written for dense arrays.

    Products of sparse and dense arrays, sums, slices, transposes, concatenation and functions that map zero to zero
    keep to the stored elements. Control flow is entered; derivatives and vmap may be taken inside and outside of it.

    Args:
        f: takes and returns pytrees of arrays. Sparse arrays among its arguments act as arrays inside of it.
        use_tracer: has no effect; JAX's functions choose a method by it.

    Returns:
        The function. Its results are BCOO where only some elements differ from zero.

    Raises:
        UnsupportedError: for an operation whose result would be dense, by name.

    Example:
        >>> from functorch_like.experimental import sparse
        >>> m = sparse.BCOO.fromdense(fnp.asarray([[0.0, 2.0], [3.0, 0.0]]))
        >>> f = sparse.sparsify(lambda m, x: fnp.tanh(m) * 0.0 + m @ x[:, None] * m)
        >>> f(m, fnp.asarray([1.0, 10.0])).todense().tolist()
        [[0.0, 40.0], [9.0, 0.0]]
    """
    check_callable(f, "sparsify", "sparsify(f)(mat, x)")

    @wraps(f)
    def sparsified(*args: Any, **kwargs: Any) -> Any:
        return run(lambda given: f(*given[0], **given[1]), (args, kwargs))

    return sparsified
