"""Arguments by which a function is differentiated: their positions, and whether they have derivatives."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DifferentiationError, FtError
from functorch_like.transforms.tangents import Fun, error_context


def positions(argnums: int | Sequence[int], count: int, name: str) -> list[int]:
    """Resolve `argnums` for a call of `count` arguments: non-negative positions, each once."""
    nums = as_positions(argnums, name)
    if any(not -count <= n < count for n in nums):
        raise ArgumentError(
            f"{name} got argnums={argnums}, but the call has {count} positional argument{'s' * (count != 1)}",
            fix=f"use positions {list(range(count))}; arguments to differentiate with respect to must be positional"
            if count
            else f"pass the arguments to differentiate with respect to without their names: {name}(f)(x)",
            **error_context(),
        )
    chosen = [n % count for n in nums]
    if len(set(chosen)) != len(chosen):
        raise ArgumentError(
            f"argnums={argnums} of {name} names an argument twice", fix="name each once", **error_context()
        )
    return chosen


def check_tuples(name: str, primals: Any, tangents: Any) -> None:
    """Refuse primals and tangents that are not one tuple each."""
    if not isinstance(primals, (tuple, list)) or not isinstance(tangents, (tuple, list)):
        raise ArgumentError(
            f"{name} takes tuples of primals and tangents, got {type(primals).__name__} and {type(tangents).__name__}",
            fix=f"{name}(f, {'loss, ' if name == 'gnvp' else ''}(x,), (dx,))",
        )


def as_positions(argnums: Any, name: str) -> tuple[int, ...]:
    """An int or a sequence of ints, as a tuple."""
    given = (argnums,) if isinstance(argnums, (int, np.integer)) else argnums
    if not isinstance(given, (tuple, list, range)) or not all(isinstance(n, (int, np.integer)) for n in given):
        raise ArgumentError(
            f"argnums of {name} must be an int or a tuple of ints, got {argnums!r}",
            fix=f"write argnums=(0, 1), and call the transformed function with the arguments: {name}(f)(x)",
        )
    return tuple(int(n) for n in given)


def argnums_partial(fun: Fun, args: tuple[Any, ...], kwargs: dict[str, Any], chosen: list[int]) -> tuple[Any, Any]:
    """Return a function of the tuple of chosen arguments, with the others fixed, and that tuple."""

    def partial(values: Any) -> Any:
        whole = list(args)
        for n, value in zip(chosen, values, strict=True):
            whole[n] = value
        return fun(*whole, **kwargs)

    return partial, tuple(args[n] for n in chosen)


def aval_for(x: Any, name: str) -> ShapedArray:
    """The aval of a leaf to differentiate with respect to."""
    try:
        return aval_of(x)
    except FtError as e:
        e.fix = e.fix or "differentiate with respect to arrays only"
        raise e.add_context(operation=name, **error_context()) from None


def check_input(x: Any, holomorphic: bool, allow_int: bool, name: str) -> bool:
    """Return True if a leaf is to be differentiated in reverse mode."""
    aval = aval_for(x, name)
    if holomorphic and not dtypes.is_complex(aval.dtype):
        raise DifferentiationError(
            f"holomorphic derivatives are with respect to complex arguments, got {aval!r}",
            fix="convert it with x.astype('complex64'), or leave holomorphic out",
            operation=name,
            **error_context(),
        )
    if not dtypes.is_inexact(aval.dtype):
        if allow_int:
            return False
        raise DifferentiationError(
            f"derivatives are with respect to float arguments, got {aval!r}",
            fix="pass a float (2.0, not 2; x.astype('float32')), "
            + ("or choose other argnums" if name == "hessian" else "choose other argnums, or set allow_int=True"),
            operation=name,
            **error_context(),
        )
    return True


def check_forward_input(x: Any, holomorphic: bool, name: str) -> None:
    """Refuse a leaf that has no Jacobian in forward mode."""
    aval = aval_for(x, name)
    if holomorphic:
        check_input(x, holomorphic, False, name)
    elif not dtypes.is_float(aval.dtype):
        raise DifferentiationError(
            f"derivatives are with respect to real float arguments, got {aval!r}",
            fix="set holomorphic=True if the function is, or push tangents of your choice with jvp"
            if dtypes.is_complex(aval.dtype)
            else "pass a float (2.0, not 2; x.astype('float32')), or choose other argnums",
            operation=name,
            **error_context(),
        )


def check_output(aval: ShapedArray, holomorphic: bool, of: str, name: str) -> None:
    """Refuse a result of another dtype than real float, or complex where `holomorphic` is set."""
    if dtypes.is_complex(aval.dtype) if holomorphic else dtypes.is_float(aval.dtype):
        return
    raise DifferentiationError(
        f"{name} needs {'complex' if holomorphic else 'real float'} results, {of} returned {aval!r}",
        fix="take its real part or abs, or set holomorphic=True"
        if dtypes.is_complex(aval.dtype)
        else "return a float, e.g. with .astype('float32')",
        **error_context(),
    )
