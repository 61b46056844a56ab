"""`autocast`, an interpreter without tracers that converts operands and results of primitives."""

from __future__ import annotations

import inspect
import threading
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager, ExitStack, nullcontext
from typing import Any, TypeVar, overload

from functorch_like import dtypes
from functorch_like.amp.policy import NOTHING, Policy, make_policy
from functorch_like.avals import ShapedArray
from functorch_like.calling.pickling import transformation
from functorch_like.calling.traced_function import check_callable, wraps
from functorch_like.core import EVALUATE, Primitive, Trace, abstract_eval, aval_of, new_trace, set_current_trace, state
from functorch_like.errors import ArgumentError
from functorch_like.ir.jaxpr import Jaxpr, evaluate
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.primitives.elementwise.conversion import convert_element_type
from functorch_like.primitives.higher_order.custom.custom_jvp import custom_jvp_call
from functorch_like.primitives.higher_order.custom.custom_vjp import custom_lin, custom_vjp_call
from functorch_like.primitives.higher_order.custom.custom_vmap import custom_vmap_call
from functorch_like.primitives.higher_order.custom.linear_solve import linear_solve
from functorch_like.primitives.higher_order.shard_map.shard_map import axes_in_scope, shard_map
from functorch_like.primitives.higher_order.user_reductions.reduce import reduce
from functorch_like.primitives.higher_order.user_reductions.reduce_window import reduce_window
from functorch_like.primitives.higher_order.user_reductions.scatter_apply import scatter_apply
from functorch_like.source_info import name_of
from functorch_like.typing import DTypeLike

F = TypeVar("F", bound=Callable[..., Any])

#: Higher-order primitives whose functions are not cast: solvers iterate to the precision of their operands, and the
#: others hold scalar functions.
UNTOUCHED = frozenset((linear_solve, reduce, reduce_window, scatter_apply))
#: Names of the parameters that are a user's function or rule: a Python function, or a jaxpr.
FUNCTIONS: dict[Primitive, tuple[str, ...]] = {
    custom_jvp_call: ("fun", "rule"),
    custom_vjp_call: ("fun", "fwd"),
    custom_vmap_call: ("fun", "rule"),
    custom_lin: ("bwd",),
}


class AutocastTrace(Trace):
    """Trace that computes primitives in the dtypes of a policy. Results keep the dtypes that they have without it.

    Attributes:
        policy: the policy.
        changed: True once a primitive has been applied in another dtype, or with cast functions as parameters.
    """

    __slots__ = ("changed", "policy")

    def __init__(self, parent: Trace, policy: Policy) -> None:
        super().__init__("autocast", parent)
        self.broadcasts = parent.broadcasts
        self.policy, self.changed = policy, False
        self.staging = True  # C++ then does not run compiled functions: they are processed as primitives

    def process(self, prim: Primitive, args: Sequence[Any], params: dict[str, Any]) -> Any:
        parent = state.trace = self.parent
        try:
            if prim.evaluate is not None or prim.partial_eval is not None:
                return parent.process(prim, args, self.inner_params(prim, params))
            avals = [aval_of(a) for a in args]
            dtype = self.policy.dtype_for(prim, avals, params)
            if dtype is None:
                return parent.process(prim, args, params)
            self.changed = True
            return _apply_in(dtype, prim, args, avals, params)
        finally:
            state.trace = self

    def of_program(self, jaxpr: Jaxpr) -> Jaxpr:
        return cast_jaxpr(jaxpr, self.policy)

    def inner_params(self, prim: Primitive, params: dict[str, Any]) -> dict[str, Any]:
        """Return the parameters of a higher-order primitive, with the policy applied to the functions among them."""
        if prim in UNTOUCHED:
            return params
        names = FUNCTIONS.get(prim, ())
        scope = axes_in_scope(params["mesh"], params["axes"]) if prim is shard_map else nullcontext()
        with scope:
            cast = {k: self.function(v) if k in names else self.jaxprs(v) for k, v in params.items()}
        if any(cast[k] is not v for k, v in params.items()):
            self.changed = True
            return cast
        return params

    def jaxprs(self, value: Any) -> Any:
        """Return a parameter with its jaxprs cast, and other values as they are."""
        if isinstance(value, Jaxpr):
            return cast_jaxpr(value, self.policy)
        if isinstance(value, tuple) and any(isinstance(v, Jaxpr) for v in value):
            cast = tuple(self.jaxprs(v) for v in value)
            return value if all(c is v for c, v in zip(cast, value, strict=True)) else cast
        return value

    def function(self, fun: Any) -> Any:
        """Return a user's function or rule, cast; a function that it returns as the last result is cast, too."""
        if isinstance(fun, Jaxpr):
            return cast_jaxpr(fun, self.policy)

        def cast(*args: Any) -> Any:
            with casting(self.policy):
                out = fun(*args)
            if isinstance(out, tuple) and out and callable(out[-1]):
                return (*out[:-1], self.function(out[-1]))
            return out

        cast.__name__ = name_of(fun)
        return cast


def _apply_in(
    dtype: dtypes.DType, prim: Primitive, args: Sequence[Any], avals: Sequence[ShapedArray], params: dict[str, Any]
) -> Any:
    """Apply a primitive under the current trace to floats of a dtype, and convert the results to their own dtypes."""
    expected = abstract_eval(prim, avals, params)
    operands = [_convert(a, dtype, aval.weak_type) if dtypes.is_float(aval.dtype) else a
                for a, aval in zip(args, avals, strict=True)]  # fmt: skip
    if params.get("preferred_element_type") is not None:
        # A wider result has wider cotangents, whose products in reverse mode would be wide, too.
        params = {**params, "preferred_element_type": None}
    out = state.trace.process(prim, operands, params)
    if prim.multiple_results:
        return [_convert(o, w.dtype, w.weak_type) for o, w in zip(out, expected, strict=True)]
    return _convert(out, expected.dtype, expected.weak_type)


def _convert(x: Any, dtype: dtypes.DType, weak_type: bool) -> Any:
    aval = aval_of(x)
    if aval.dtype == dtype and aval.weak_type == weak_type:
        return x
    return convert_element_type(x, new_dtype=dtype, weak_type=weak_type)


def cast_jaxpr(jaxpr: Jaxpr, policy: Policy) -> Jaxpr:
    """Return a jaxpr of equal avals with a policy applied; the same jaxpr if nothing changes."""

    def make() -> Jaxpr:
        changed: list[bool] = []

        def cast(*args: Any) -> list[Any]:
            trace = AutocastTrace(state.trace, policy)
            with new_trace(trace):
                outs = evaluate(jaxpr, args)
            changed[:] = [trace.changed]
            # Literals among the outputs may have become strongly typed.
            return [_convert(o, aval.dtype, aval.weak_type) for o, aval in zip(outs, jaxpr.out_avals, strict=True)]

        origin = f"autocast of {jaxpr.name}"
        made, consts = stage(cast, jaxpr.in_avals, name=jaxpr.name, origin=origin, parent=EVALUATE, chain="")
        assert not consts  # `cast` closes over no arrays
        return made if changed[0] else jaxpr

    return jaxpr.memo(("autocast", policy), make)


def casting(policy: Policy) -> AbstractContextManager[Any]:
    """Return a block under which primitives are cast by a policy.

    It replaces the block directly around it. Where nothing is cast, compiled functions run as outside of all blocks.
    """
    parent = state.trace.parent if isinstance(state.trace, AutocastTrace) else state.trace
    return set_current_trace(parent) if policy is NOTHING else new_trace(AutocastTrace(parent, policy))


class AutocastBlock:
    """Context manager or decorator under which operations of its thread are autocast. It can be used many times."""

    __slots__ = ("_entered", "_policy")

    def __init__(self, policy: Policy) -> None:
        self._policy, self._entered = policy, threading.local()

    def __enter__(self) -> None:
        stack = ExitStack()
        stack.enter_context(casting(self._policy))
        self._entered.stacks = [*getattr(self._entered, "stacks", ()), stack]

    def __exit__(self, *error: object) -> None:
        self._entered.stacks.pop().close()

    def __call__(self, fun: F) -> F:
        return _cast_function(fun, self._policy)


@overload
def autocast(
    fun: F,
    *,
    dtype: DTypeLike = "bfloat16",
    allow: Iterable[str] = (),
    deny: Iterable[str] = (),
    enabled: bool = True,
) -> F: ...
@overload
def autocast(
    fun: None = None,
    *,
    dtype: DTypeLike = "bfloat16",
    allow: Iterable[str] = (),
    deny: Iterable[str] = (),
    enabled: bool = True,
) -> AutocastBlock: ...
@transformation
def autocast(
    fun: Callable[..., Any] | None = None,
    *,
    dtype: DTypeLike = "bfloat16",
    allow: Iterable[str] = (),
    deny: Iterable[str] = (),
    enabled: bool = True,
) -> Any:
    """Compute products and convolutions in bfloat16 or float16.

    Their float32 operands are converted. Operations that overflow or accumulate (exp, log, pow, sums, ...) are computed
    in float32 if their operands are narrower. Every result keeps the dtype it has without autocast, so `grad`, `vmap`,
    `jit`, loops, branches, `checkpoint` and custom rules compose with it in any order. Products of the backward pass
    are narrow, too, with `grad` outside or inside.

    Operands that are not float32 stay as they are, and so does a product whose call names a precision other than
    "default". Linear solvers iterate in the precision of their operands.

    The cost is a conversion of each operand and result, which `jit` fuses. Residuals of products are narrow, half the
    bytes; other residuals stay float32. A value that is a residual of both kinds, such as the result of a tanh before a
    product, is kept twice. Processors without units for the narrow dtype gain no speed.

    Args:
        fun: the function. Without it, the result is a context manager or a decorator, for operations that are traced
            or computed in its block. The innermost of two blocks counts.
        dtype: "bfloat16", or "float16", whose gradients need `ft.amp.scaled_value_and_grad`.
        allow: names of further primitives to compute in this dtype.
        deny: names of primitives to compute in float32: `deny=["conv_general_dilated"]`.
        enabled: False to cast nothing: such a block turns off the one around it. This has no effect through a
            transformation: in `autocast(grad(f))`, operations of `f` are cast after `grad` has processed them, whatever
            blocks `f` has.

    Returns:
        The function, or the block.

    Raises:
        DtypeError: for other dtypes.
        ArgumentError: for names that are not primitives, and for generators and coroutines.

    >>> import functorch_like as ft, functorch_like.numpy as fnp
    >>> f = ft.autocast(lambda x: x @ x + 1)
    >>> f(fnp.full((2, 2), 1.0009765625)).tolist()  # bfloat16 rounds the operand to 1
    [[3.0, 3.0], [3.0, 3.0]]
    >>> with ft.autocast(dtype="float16"):
    ...     y = fnp.ones(3) @ fnp.ones(3)
    >>> y.dtype.name
    'float32'
    """
    policy = make_policy(dtype, allow, deny)
    policy = policy if enabled else NOTHING
    return AutocastBlock(policy) if fun is None else _cast_function(fun, policy)


def _cast_function(fun: Any, policy: Policy) -> Any:
    check_callable(fun, "autocast", 'ft.autocast(f)(x); a block is `with ft.autocast(dtype="bfloat16"):`')
    if inspect.iscoroutinefunction(fun) or inspect.isgeneratorfunction(fun) or inspect.isasyncgenfunction(fun):
        raise ArgumentError(
            f"{name_of(fun)} is a generator or coroutine, whose body runs after the call has returned",
            fix="write a `with ft.autocast():` block in its body, around parts without `yield` and `await`",
        )

    @wraps(fun)
    def cast(*args: Any, **kwargs: Any) -> Any:
        with casting(policy):
            return fun(*args, **kwargs)

    return cast
