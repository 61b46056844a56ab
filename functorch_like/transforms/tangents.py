"""Shared parts of derivative transformations: functions on flat leaves, and checks of tangents and cotangents."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes, source_info, tree
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.calling.call_signature import flatten_values
from functorch_like.calling.float0 import flatten_results
from functorch_like.core import Tracer, as_argument, aval_of, state, transform_stack
from functorch_like.errors import DifferentiationError, TreeError
from functorch_like.primitives.structural import convert_element_type, zeros

Fun = Callable[..., Any]


class FlatFunction:
    """A function of one tuple, on flat leaves; it stores the tree of its result, and of its aux part."""

    def __init__(self, fun: Callable[[Any], Any], in_tree: Any, has_aux: bool) -> None:
        self.fun, self.in_tree, self.has_aux = fun, in_tree, has_aux
        self.out_tree: Any = None
        self.aux_tree: Any = None
        self.count = 0  # leaves of the result; those of aux follow

    def flat(self, *leaves: Any) -> list[Any]:
        out = self.fun(self.in_tree.unflatten(leaves))
        aux: list[Any] = []
        if self.has_aux:
            if not isinstance(out, (tuple, list)) or len(out) != 2:
                shown = type(out).__name__ if not isinstance(out, Tracer) else repr(out.aval)
                shown = f"a {shown} of {len(out)}" if isinstance(out, (tuple, list)) else shown
                raise DifferentiationError(
                    f"with has_aux the function must return a pair (result, aux), it returned {shown}",
                    fix="return (result, aux), or leave has_aux out",
                )
            out, rest = out
            aux, self.aux_tree = flatten_results(rest)
        outs, self.out_tree = flatten_values(out)
        self.count = len(outs)
        return [*outs, *aux]


def error_context() -> dict[str, str]:
    """Parts of an error that depend on the present call."""
    return {"chain": transform_stack(state.trace), "at": str(source_info.user_line() or "")}


def is_strengthened(avals: Sequence[ShapedArray], tangents: Sequence[Any]) -> bool:
    """Return True if a strongly typed tangent or cotangent was given for a weakly typed value.

    What is computed with it is strongly typed, too.
    """
    return any(
        aval.weak_type and t is not None and not aval_of(t).weak_type
        for aval, t in zip(avals, tangents, strict=True)
        if dtypes.is_inexact(aval.dtype)
    )


def gradient_of(ct: Any, primal: Any, differentiated: bool, strong: bool = False) -> Any:
    """A cotangent as the user gets it: zeros where there is none, float0 for integers."""
    aval = aval_of(as_argument(primal))
    if not differentiated:
        return np.zeros(aval.shape, dtypes.float0)
    # The gradient by a Python number behaves as one.
    aval = aval.strong() if strong else aval
    return _zeros(aval, aval.weak_type) if ct is None else _as_weak_as(aval, ct)


def tangent_of(out: Any, tangent: Any, strong: bool = False) -> Any:
    """A tangent as the user gets it: of a weak result it is weak, too."""
    aval = aval_of(out).strong() if strong else aval_of(out)
    if not dtypes.is_inexact(aval.dtype):
        return np.zeros(aval.shape, dtypes.float0) if tangent is None else tangent
    return _zeros(aval, aval.weak_type) if tangent is None else _as_weak_as(aval, tangent)


def _as_weak_as(aval: ShapedArray, x: Any) -> Any:
    weak = aval.weak_type
    return x if aval_of(x).weak_type is weak else convert_element_type(x, new_dtype=aval.dtype, weak_type=weak)


def _zeros(aval: ShapedArray, weak: bool = False) -> Any:
    """Zeros as an array of the package; primitives themselves also take NumPy's."""
    return convert_element_type(zeros(aval), new_dtype=aval.dtype, weak_type=weak)


def tangent_leaves(in_tree: Any, tangents: Any, name: str) -> list[Any]:
    """Leaves of tangents that mirror a tree of primals; None stands for a zero tangent."""
    # Without the predicate, flattening would drop None.
    leaves, structure = xla.flatten(tangents, lambda x: x is None)
    primal_tree = in_tree
    if structure == primal_tree:
        return leaves
    try:
        flat = in_tree.flatten_up_to(tangents)
    except ValueError:
        flat = None
    if flat is None or any(xla.flatten(t)[1] != xla.leaf_structure for t in flat if t is not None):
        raise TreeError(
            f"{name} got tangents of structure {xla.structure(tangents)} for primals of structure {in_tree}",
            fix="tangents mirror the arguments leaf by leaf",
            **error_context(),
        )
    return flat


def check_tangent(primal: Any, tangent: Any, position: int, in_tree: Any) -> Any:
    """Check a tangent against its primal, and return it as the interpreters take it: None for zero."""
    aval = aval_of(primal)
    if tangent is None or getattr(tangent, "dtype", None) == dtypes.float0:
        return None
    actual = aval_of(tangent)
    path = tree.leaf_paths(in_tree)[position]
    if not dtypes.is_inexact(aval.dtype):
        raise DifferentiationError(
            f"the tangent of argument {path}, a {aval!r}, must be None or of dtype float0, got {actual!r}",
            fix="integers have no tangents: pass None",
            **error_context(),
        )
    if actual.shape != aval.shape or not _fits(actual, aval):
        raise DifferentiationError(
            f"the tangent of argument {path} must be {aval!r} as its primal, got {actual!r}",
            fix="give tangents the shapes and dtypes of the primals, e.g. with fnp.ones_like",
            **error_context(),
        )
    if actual.dtype != aval.dtype or actual.weak_type:
        return convert_element_type(_as_operand(tangent, aval), new_dtype=aval.dtype, weak_type=False)
    return tangent


def _fits(actual: ShapedArray, aval: ShapedArray) -> bool:
    """Return True if a tangent is of its primal's dtype, or a number that can be; a complex one is not real."""
    if actual.dtype == aval.dtype:
        return True
    return actual.weak_type and (dtypes.is_complex(aval.dtype) or not dtypes.is_complex(actual.dtype))


def _as_operand(x: Any, aval: ShapedArray) -> Any:
    """A number in its final dtype, not by way of float32, where it would lose digits."""
    return np.asarray(x, aval.dtype) if isinstance(x, (int, float, complex, np.generic)) else x


def cotangent_leaves(out_tree: Any, cotangent: Any, avals: list[ShapedArray]) -> list[Any]:
    """Leaves of cotangents that mirror a tree of results, as the interpreters take them."""
    leaves, structure = xla.flatten(cotangent)
    if structure != out_tree:
        raise TreeError(
            f"the pullback got a cotangent of structure {structure}, but the function returned {out_tree}",
            fix="pass a cotangent of the structure of the result",
            **error_context(),
        )
    checked: list[Any] = []
    for ct, aval in zip(leaves, avals, strict=True):
        if not dtypes.is_inexact(aval.dtype):
            checked.append(None)
            continue
        actual = aval_of(ct)
        if actual.shape != aval.shape or not _fits(actual, aval):
            raise DifferentiationError(
                f"the cotangent of a result {aval!r} must be {aval!r}, got {actual!r}",
                fix="give it the shape and dtype of the result, e.g. with fnp.ones_like",
                **error_context(),
            )
        same = actual.dtype == aval.dtype and not actual.weak_type
        checked.append(
            ct if same else convert_element_type(_as_operand(ct, aval), new_dtype=aval.dtype, weak_type=False)
        )
    return checked
