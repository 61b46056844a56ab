"""Alternative lowerings: forms of a primitive that one platform runs faster, of the same meaning.

A `lower` rule with alternatives is a `Lowering`: it states what each of them is, up to which sizes it is taken, and
gives samples on both sides of these limits. The table lists them, and `backends.cpu.fast_lowerings` turns them off.
The tests compare each of them, and the standard form, with the primitive's meaning. All were measured on XLA:CPU with 2
cores.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from functorch_like.backends.cpu import fast_lowering
from functorch_like.core import SampleInput


class Alternative(NamedTuple):
    """One faster form.

    Args:
        name: in a few words.
        limits: when it is taken, in words.
        takes: `(ins, outs, **params) -> bool`: the same, of avals.
        lower: as the primitive's own rule.
        edges: `() -> [(sample, taken), ...]`: samples on both sides of each limit.
        on_host: whether it calls a kernel of NumPy, as programs that leave the process may not do.
        conditional: whether it branches, so that XLA fuses it with nothing.
        slow_compile: whether XLA takes much longer to compile it than the standard form.
        optimised_only: whether the quick tier takes another form, which compiles sooner and, under quick options, runs
            about as fast.
        here: False on processors that run another form faster, where it is never taken.
    """

    name: str
    limits: str
    takes: Callable[..., bool]
    lower: Callable[..., Any]
    edges: Callable[[], list[tuple[SampleInput, bool]]]
    on_host: bool = False
    conditional: bool = False
    slow_compile: bool = False
    optimised_only: bool = False
    here: bool = True


class Lowering:
    """A primitive's `lower` rule that, for CPUs, picks the first alternative that fits, else the standard form."""

    __slots__ = ("_on", "alternatives", "slow_compile", "standard")

    def __init__(self, primitive: str, standard: Callable[..., Any], *alternatives: Alternative) -> None:
        self.standard, self.alternatives, self.slow_compile = standard, alternatives, False
        self._on = fast_lowering(primitive, "; ".join(f"{a.name}: {a.limits}" for a in alternatives))

    def pick(
        self,
        platform: str,
        ins: Sequence[Any],
        outs: Sequence[Any],
        params: dict[str, Any],
        host_kernels: bool = True,
        quick: bool = False,
    ) -> Alternative | None:
        """The alternative that is taken for operands and results of these avals, if any; `quick`: in the quick tier."""
        if platform != "cpu" or not self._on():
            return None
        allowed = [a for a in self.alternatives if a.here and (host_kernels or not a.on_host)]
        return next((a for a in allowed if not (quick and a.optimised_only) and a.takes(ins, outs, **params)), None)

    def __call__(self, e: Any, *operands: Any, **params: Any) -> Any:
        key = (self, *e.ins, *e.outs, *params.values())
        try:
            result = e.memo[key]
        except KeyError:  # programs apply a primitive to the same shapes over and over
            result = e.memo[key] = self.pick(e.platform, e.ins, e.outs, params, e.host_kernels, e.quick)
        except TypeError:  # a parameter without a hash
            result = self.pick(e.platform, e.ins, e.outs, params, e.host_kernels, e.quick)
        return (self.standard if result is None else result.lower)(e, *operands, **params)


def _takes(lower: Any, ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any], *marks: str) -> bool:
    """Return True if a `lower` rule takes an alternative with one of these marks. Few rules have such alternatives."""
    marked = lambda a: any(getattr(a, mark) for mark in marks)
    if not any(map(marked, alternatives_of(lower))):
        return False
    picked = lower.pick("cpu", ins, outs, params)
    return picked is not None and marked(picked)


def takes_another_form(lower: Any, ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> bool:
    """Return True if a `lower` rule takes an alternative on CPUs, for these operands and results."""
    return isinstance(lower, Lowering) and lower.pick("cpu", ins, outs, params) is not None


def is_fusible(lower: Any, ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> bool:
    """Return False if a `lower` rule writes, for these operands and results, what XLA:CPU fuses with nothing."""
    return not _takes(lower, ins, outs, params, "on_host", "conditional")


def compiles_slowly(lower: Any, ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> bool:
    """Return True if a `lower` rule writes, for these operands and results, what XLA:CPU compiles for long."""
    return getattr(lower, "slow_compile", False) or _takes(lower, ins, outs, params, "slow_compile")


def is_for_the_last_tier(lower: Any, ins: Sequence[Any], outs: Sequence[Any], params: dict[str, Any]) -> bool:
    """Return True if a `lower` rule writes something else in the quick tier, for these operands and results."""
    return _takes(lower, ins, outs, params, "optimised_only")


def slow_compile(lower: Any) -> Any:
    """Mark a `lower` rule each of whose forms XLA:CPU compiles for longer than several equations."""
    lower.slow_compile = True
    return lower


def alternatives_of(lower: Any) -> tuple[Alternative, ...]:
    """Return the alternatives of a primitive's `lower` rule."""
    return lower.alternatives if isinstance(lower, Lowering) else ()
