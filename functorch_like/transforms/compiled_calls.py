"""Calls of a program compiled for one signature: checked by Python once for each kind of arguments, then run by C++."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from functorch_like.backends import xla
from functorch_like.backends.xla.failures import is_double_donation
from functorch_like.calling.call_signature import donated_twice, kinds_of
from functorch_like.core import ArrayImpl, Tracer, aval_of, transform_stack
from functorch_like.errors import ArgumentError, ConcretizationError, DonatedError

_OTHERWISE = "call the jitted function itself, which compiles for each signature"
#: Placeholder of a static value that `serialize` did not store; it is not compared.
UNKNOWN: Any = object()


class CompiledCalls:
    """The calls of a compiled function.

    Args:
        traced: what was compiled.
        executable: the program.
        kept_inputs: for each of the trace's consts and then of the flat arguments, whether the program takes it.
    """

    def __init__(self, traced: Any, executable: Any, kept_inputs: Sequence[bool]) -> None:
        self.traced, self.executable, self.kept_inputs = traced, executable, kept_inputs
        self._positions, self._names = map(dict, traced.statics)
        self._statics: dict[int | str, Any] = {**self._positions, **self._names}

    def function(self) -> Callable[..., Any]:
        """Return the function that takes the arguments of a call."""
        if any(self.traced.statics):
            return lambda *args, **kwargs: self(*args, **kwargs)[0]
        fast = xla.function(self.traced.spec.name, self, self, compiles=False)  # C++ drops the program with `self`
        if not any(self.traced.donated):
            return fast

        def donating(*args: Any, **kwargs: Any) -> Any:
            try:
                out = fast(*args, **kwargs)
            except ValueError as e:
                raise donated_twice(args, kwargs, self.traced.spec.name) if is_double_donation(e) else e from None
            leaves = xla.flatten((args, kwargs))[0]
            xla.release(leaf for leaf, d in zip(leaves, self.traced.donated, strict=False) if d)
            return out

        return donating

    def __call__(self, *args: Any, **kwargs: Any) -> tuple[Any, Any, bool]:
        """Answer a call that comes to Python: the first one, and each that C++ cannot check."""
        traced = self.traced
        leaves = self._leaves(args, kwargs)
        flat = [self._checked(leaf, aval) for leaf, aval in zip(leaves, traced.in_avals, strict=True)]
        used = [a for a, k in zip([*traced.consts, *flat], self.kept_inputs, strict=True) if k]
        committed = any(type(a) is ArrayImpl and a._committed for a in used)
        try:
            outs = self.executable.execute(used, traced.jaxpr.out_avals, committed=committed)
        except DonatedError as e:
            raise donated_twice(args, kwargs, traced.spec.name) if is_double_donation(e) else e from None
        out = traced.out_tree.unflatten(outs)
        if any(type(leaf) is not ArrayImpl and type(leaf) is not np.ndarray for leaf in leaves):
            return out, None, False  # C++ would give numbers other dtypes
        fastpath = self.executable.fastpath(
            traced.out_tree,
            traced.jaxpr.out_avals,
            self.kept_inputs,
            traced.consts,
            committed=committed,
            handles_failures=True,
        )
        return out, fastpath, False

    def _leaves(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> list[Any]:
        """Return the flat arguments of a call.

        Raises:
            ArgumentError: where they have another structure.
        """
        expected = self.traced.in_tree
        given: dict[int | str, Any] = {k: kwargs[k] for k in self._names if k in kwargs}
        if given:
            kwargs = {k: v for k, v in kwargs.items() if k not in given}
        leaves, tree = xla.flatten((tuple(self._with_statics_none(args)), kwargs))
        if tree == expected:
            given |= {i: args[i] for i in self._positions}
        elif self._positions:  # JAX's programs are called without static arguments
            leaves, tree = xla.flatten((tuple(self._with_statics_added(args)), kwargs))
        if tree != expected:
            raise ArgumentError(
                f"{self.traced.spec.name} was compiled for arguments {expected}, got {tree}", fix=_OTHERWISE
            )
        for where, value in given.items():
            self._check_static(where, value, self._statics[where])
        return leaves

    def _check_static(self, where: int | str, value: Any, compiled: Any) -> None:
        """Refuse a static argument that is not the one that was compiled for.

        Raises:
            ArgumentError: where the two differ in value or type.
        """
        if compiled is UNKNOWN or value is compiled:
            return
        if kinds_of(value) == kinds_of(compiled) and bool(
            value == compiled or (value != value and compiled != compiled)
        ):
            return
        raise ArgumentError(
            f"{self.traced.spec.name} was compiled for the static argument {where!r} = {compiled!r:.60}, "
            f"got {value!r:.60}",
            fix=f"{_OTHERWISE}; or leave static arguments out of the call",
        )

    def _checked(self, leaf: Any, aval: Any) -> Any:
        """Return an argument as an array of the type that was compiled for.

        Raises:
            ArgumentError: for another shape or dtype.
            ConcretizationError: for a value that is being transformed.
        """
        name = self.traced.spec.name
        if isinstance(leaf, Tracer):
            raise ConcretizationError(
                f"{name} is compiled, and got a {leaf.aval!r} that is being transformed: a compiled function cannot be "
                "traced, mapped or differentiated any more",
                chain=transform_stack(leaf._trace),
                fix="call the jitted function itself; or transform first, then lower and compile the result",
            )
        actual = aval_of(leaf)
        if actual.shape != aval.shape or actual.dtype != aval.dtype:
            raise ArgumentError(f"{name} was compiled for {aval!r}, got {actual!r}", fix=_OTHERWISE)
        return leaf if type(leaf) is ArrayImpl else np.asarray(leaf, aval.dtype)

    def _with_statics_none(self, args: Sequence[Any]) -> Sequence[Any]:
        return [None if i in self._positions else a for i, a in enumerate(args)]

    def _with_statics_added(self, args: Sequence[Any]) -> Sequence[Any]:
        rest = iter(args)
        return [None if i in self._positions else next(rest, None) for i in range(len(args) + len(self._positions))]
