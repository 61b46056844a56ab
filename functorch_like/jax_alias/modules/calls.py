"""Parameters of primitives under JAX's names, and functions with rules as JAX's programs have them."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Sequence
from typing import Any

from functorch_like.core import Primitive as CorePrimitive
from functorch_like.core import aval_of
from functorch_like.errors import UnsupportedError
from functorch_like.jax_alias.modules.linear_util import WrappedFun
from functorch_like.primitives.higher_order.call import CallSpec, call
from functorch_like.primitives.higher_order.custom.base import run
from functorch_like.primitives.higher_order.custom.custom_jvp import custom_jvp_call
from functorch_like.transforms.custom.symbolic_zeros import SymbolicZero, instantiate

#: JAX's names of parameters, by the name of the primitive and the package's name.
_NAMES: dict[str, dict[str, str]] = {
    "custom_jvp_call": {"fun": "call_jaxpr", "rule": "jvp_jaxpr_fun", "consts": "num_consts"},
    "custom_vjp_call": {"fun": "call_jaxpr", "fwd": "fwd_jaxpr_thunk", "consts": "num_consts"},
    "reshape": {"shape": "new_sizes"},
}
#: Primitives, and parameters of JAX's that they do not have, with the value that programs show.
_MORE: tuple[tuple[str, dict[str, Any]], ...] = (
    ("broadcast_in_dim convert_element_type iota reshape", {"sharding": None}),
    ("conv_general_dilated dot_general reduce_sum", {"out_sharding": None}),
    ("cbrt cos exp exp2 expm1 log log1p logistic rsqrt sin sqrt tan tanh", {"accuracy": None}),
    ("custom_jvp_call custom_vjp_call", {"symbolic_zeros": False}),
    ("mul", {"out_dtype": None}),
    ("reshape", {"dimensions": None}),
)
_ADDED: dict[str, dict[str, Any]] = {}
for _of, _params in _MORE:
    for _name in _of.split():
        _ADDED.setdefault(_name, {}).update(_params)
#: Added parameters that do not change results: where they are None, `bind` of every primitive takes them.
_PLACED = ("accuracy", "out_sharding", "sharding")
#: Added parameters that `bind` takes and programs do not show: rules of libraries written for earlier JAX lack them.
_ACCEPTED = ("out_dtype",)
#: Added parameters that change results, so that `bind` refuses other values.
_EFFECTIVE = ("dimensions", "out_dtype", "symbolic_zeros")


def shown_params(prim: CorePrimitive, params: dict[str, Any]) -> dict[str, Any]:
    """Return the parameters of a primitive of the package under JAX's names."""
    if prim is call:
        spec = params["spec"]
        facts = {"name": spec.name, "inline": spec.inline, "keep_unused": spec.keep_unused}
        return {**params, **facts, "donated_invars": spec.donated}
    if "expected_steps" in params:  # a hint of loops of the package; it changes no result
        params = {name: value for name, value in params.items() if name != "expected_steps"}
    names = _NAMES.get(prim.name)
    if names is not None:
        params = {names[name]: value for name, value in params.items()}
    return {**params, **{name: value for name, value in _ADDED.get(prim.name, {}).items() if name not in _ACCEPTED}}


def recorded_params(prim: CorePrimitive, params: dict[str, Any]) -> dict[str, Any]:
    """Return the package's parameters for those that `shown_params` gave, in which values may have been changed.

    Raises:
        UnsupportedError: for a parameter that the primitive lacks, with a value that changes results.
    """
    if prim is call and "name" in params:
        spec = params.get("spec") or CallSpec()
        facts = {name: params[name] for name in ("name", "inline", "keep_unused") if name in params}
        return {"jaxpr": params["jaxpr"], "spec": dataclasses.replace(spec, **facts)}
    # Libraries that invert a function pass the parameters of a primitive to another one.
    params = {name: value for name, value in params.items() if value is not None or name not in _PLACED}
    added = _ADDED.get(prim.name)
    if added is None:
        return params
    for name in _EFFECTIVE:
        if name in added and params.get(name, added[name]) != added[name]:
            raise UnsupportedError(
                f"{prim.name} has no parameter {name}, which is {params[name]!r} here",
                fix=f"apply it with {name}={added[name]!r}",
            )
    shown = {shown: name for name, shown in _NAMES.get(prim.name, {}).items()}
    return {shown.get(name, name): value for name, value in params.items() if name not in added}


# -------------------------------------------------------------------------------------------- functions with jvp rules
def jvp_subfuns(*, fun: Any, rule: Any, consts: int) -> tuple[WrappedFun, WrappedFun]:
    """Return the function of a `custom_jvp_call`, and its rule on arguments followed by their tangents.

    Args:
        fun, rule, consts: parameters of the primitive. Tangents of the first `consts` arguments are not used.

    Returns:
        Functions of flat arrays; the rule returns results followed by their tangents.
    """

    def jvp(*flat: Any) -> list[Any]:
        half = len(flat) // 2
        directions = [None if isinstance(t, SymbolicZero) else t for t in flat[half + consts :]]
        outs, tangents = rule(flat[consts:half], directions, None)
        return [*outs, *(instantiate(t, aval_of(o)) for o, t in zip(outs, tangents, strict=True))]

    return WrappedFun(lambda *args: run(fun, args)), WrappedFun(jvp)


def bind_custom_jvp(subfuns: Sequence[Any], args: Sequence[Any]) -> list[Any]:
    """Apply a function that has a rule for forward mode.

    Args:
        subfuns: the function and its rule, as `jvp_subfuns` returns them.
        args: the arguments.

    Returns:
        The results.
    """
    fun, jvp = map(_called, subfuns)

    def rule(primals: Sequence[Any], tangents: Sequence[Any], expected: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        flat = jvp(*primals, *(instantiate(t, aval_of(p)) for p, t in zip(primals, tangents, strict=True)))
        half = len(flat) // 2
        return flat[:half], [None if isinstance(t, SymbolicZero) else t for t in flat[half:]]

    return list(custom_jvp_call(*args, fun=fun, rule=rule, consts=0))


def _called(fun: Any) -> Callable[..., Any]:
    def called(*args: Any) -> Any:
        return fun.call_wrapped(*args)

    called.__name__ = fun.__name__
    return called
