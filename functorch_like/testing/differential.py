"""Programs compiled in different ways, and comparison of each result with its meaning in NumPy in float64."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import nullcontext
from typing import Any, NamedTuple

import numpy as np

from functorch_like import backends, core, dtypes, tree
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla import option_sets
from functorch_like.compiler import autotune
from functorch_like.compiler.lower import lower
from functorch_like.errors import FtError
from functorch_like.ir.jaxpr import Jaxpr
from functorch_like.ir.trace_to_jaxpr import stage
from functorch_like.testing.error_bars import Meaning, limits
from functorch_like.testing.source_programs import Program

Array = np.ndarray[Any, Any]
#: Number of error bars that a result may be off.
_FACTOR = 100.0
#: Number of units of rounding that a result may be off before its bars are evaluated. Bars are about one unit or more,
#: so that this is the stricter test.
_SURE = 10.0


#: Compile options of the quick tier: LLVM does little, and libraries get the same operations.
QUICK = option_sets.QUICK


class Refused(Exception):
    """A drawn program is not valid: what it computes in float64 is refused in the dtype that was drawn."""


class Candidate(NamedTuple):
    """A way to compile.

    Args:
        name: that reports show.
        fitting: compile options; None for those that the rule on a program's content chooses.
        mode: of `jit`.
        settings: of `backends.flags`.
    """

    name: str
    fitting: dict[str, Any] | None = None
    mode: str = "default"
    settings: dict[str, Any] | None = None


DEFAULT = Candidate("default")
STANDARD = Candidate("standard lowerings", settings={"cpu.fast_lowerings": False})


def candidates() -> list[Candidate]:
    """Return all ways that the package may choose for a CPU program, and those that users may set.

    >>> [c.name for c in candidates()][:2]
    ['default', 'fast-compile']
    """
    ways = [DEFAULT, Candidate("fast-compile", mode="fast-compile")]
    for way in autotune.CANDIDATES["cpu"][1:]:
        ways.append(Candidate(way.name, way.fitting, settings=None if way.fast else STANDARD.settings))
    for name, options in vars(option_sets).items():
        if isinstance(options, dict) and name.isupper() and not any("_gpu_" in key for key in options):
            ways.append(Candidate(name, options))
    for kind in ("reduce", "dot", "individual_dot", "individual_convolution", "eltwise"):
        ways.append(Candidate(f"ynn.fusions = {kind}", settings={"ynn.fusions": kind}))
    ways.append(Candidate("mkldnn", settings={"mkldnn.enabled": True}))
    ways.append(Candidate("xnnpack", settings={"xnnpack.enabled": True}))
    return ways


class Staged(NamedTuple):
    """A function as a jaxpr, with its operands.

    Args:
        jaxpr: of the function.
        args: of the jaxpr: constants, then arguments.
    """

    jaxpr: Jaxpr
    args: list[Array]


def staged(fun: Callable[..., Any], args: Sequence[Array]) -> Staged:
    """Trace a function of arrays."""
    avals = [ShapedArray(a.shape, a.dtype) for a in args]
    jaxpr, consts = stage(lambda *xs: tree.leaves(fun(*xs)), avals, name="f", parent=core.EVALUATE)
    return Staged(jaxpr, [*map(np.asarray, consts), *args])


def widened(args: Sequence[Array]) -> list[Array]:
    """Return arrays with all floats as float64 and all complex numbers as complex128."""

    def wide(x: Array) -> Any:
        if not dtypes.is_inexact(x.dtype):
            return x.dtype
        return np.complex128 if dtypes.is_complex(x.dtype) else np.float64

    return [x.astype(wide(x)) for x in args]


def narrow(fun: Callable[..., Any], args: Sequence[Array]) -> Staged:
    """Trace a function in the dtypes that were drawn.

    Raises:
        Refused: if it is not valid in these.
    """
    try:
        return staged(fun, args)
    except FtError as error:
        raise Refused(str(error)) from error


def meaning_of(wide: Meaning, narrow: Staged) -> Meaning:
    """Return the exact results of a program with bars for the dtypes that were drawn.

    Args:
        wide: results in float64.
        narrow: the program as it was drawn.

    Raises:
        Refused: if an intermediate value is too large for these dtypes.
    """
    eps, most = limits(narrow.jaxpr)
    if wide.peak > most / 4:
        raise Refused(f"{wide.peak:.1g} is too large for its dtypes")
    return wide.rounded_to(eps)


def differences(outs: Sequence[Any], meaning: Meaning) -> Iterator[str]:
    """Yield which results differ from the exact ones by more than rounding explains."""
    for k, (out, exact) in enumerate(zip(outs, meaning.exact, strict=True)):
        if _is_close(np.asarray(out), exact, meaning.eps):
            continue
        message = disagreement(out, exact, meaning.bars[k])
        if message:  # it may be due to a comparison of close numbers
            message = disagreement(out, exact, np.where(meaning.jumps[k], np.inf, meaning.bars[k]))
        if message:
            yield f"result {k}: {message}"


def _is_close(got: Array, exact: Array, eps: float) -> bool:
    """Return True if a result is so close to the exact one that no bars are needed to know that it is right."""
    if got.shape != exact.shape:
        return False
    if not dtypes.is_inexact(got.dtype) or not dtypes.is_inexact(exact.dtype):
        return bool(np.array_equal(got, exact))
    with np.errstate(all="ignore"):
        size = np.abs(exact)
        typical = float(np.sqrt(np.mean(np.square(size)))) if size.size else 0.0
        scale = np.maximum(size, typical if np.isfinite(typical) else 0.0)
        return bool(np.all(np.abs(got.astype(exact.dtype) - exact) <= _SURE * eps * scale))


def disagreement(got: Any, exact: Array, bars: Array) -> str | None:
    """Return how a result differs from the exact one by more than rounding explains; None if it does not."""
    got = np.asarray(got)
    if got.shape != exact.shape:
        return f"shape {got.shape}, not {exact.shape}"
    if not got.size:
        return None
    if not dtypes.is_inexact(got.dtype):
        wrong = (got != exact) & (bars == 0)
    else:
        info = dtypes.finfo(dtypes.real_part(got.dtype))
        with np.errstate(all="ignore"):
            # Where numbers are about to overflow, or rounding decides all, nothing is known.
            known = np.isfinite(exact) & np.isfinite(bars) & (np.abs(exact) + _FACTOR * bars < float(info.max) / 100)
            error = np.abs(got.astype(exact.dtype) - exact)
            wrong = known & ~(error <= _FACTOR * bars + 100 * float(info.tiny))
    if not wrong.any():
        return None
    at = tuple(int(k) for k in np.argwhere(wrong)[0])
    return f"{int(wrong.sum())} of {got.size} elements wrong; at {at} {got[at]!s}, not {exact[at]!s} (± {bars[at]:.2g})"


def compiled_ways(
    narrow: Staged, ways: Sequence[Candidate], options: dict[str, Any] | None = None
) -> Iterator[tuple[Candidate, list[Any]]]:
    """Compile a program each way, run it, and yield the results. Ways with the same options are compiled once.

    With `QUICK` as the options, a way that has no compile options of its own gets those of the quick tier.
    """
    device = xla.default_device()
    seen: list[Any] = []
    for way in ways:
        with backends.flags(way.settings) if way.settings else nullcontext():
            lowered = lower(narrow.jaxpr, name="f", platform=device.platform)
            fitting = way.fitting
            if fitting is None and options == QUICK:
                fitting = lowered.quick_fitting(lowered.fitting(device, way.mode), device)
            try:
                all_options = lowered.options(device, options, mode=way.mode, fitting=fitting)
                identity = (all_options, "cpu.fast_lowerings" in (way.settings or {}))
                if identity in seen:
                    continue
                seen.append(identity)
                executable = lowered.compile(device, options, mode=way.mode, fitting=fitting)
            except FtError as error:
                if way is DEFAULT:
                    raise
                if "option" not in str(error):  # an option that this version does not have
                    raise
                continue
            operands = [x for x, kept in zip(narrow.args, lowered.kept_inputs, strict=True) if kept]
            yield way, executable.execute(operands)


def check(program: Program, ways: Sequence[Candidate], options: dict[str, Any] | None = None) -> list[str]:
    """Return what is wrong with the results of a program.

    Args:
        program: a function of arrays.
        ways: in which it is compiled.
        options: compile options besides.

    Raises:
        Refused: if it is not valid in its own dtype.
    """
    args = program.values()
    drawn = narrow(program.function(), args)
    wide = staged(program.function(wide=True), widened(args))
    exact = meaning_of(Meaning(wide.jaxpr, wide.args, 0.0), drawn)
    messages: list[str] = []
    for way, outs in compiled_ways(drawn, ways, options):
        first = next(differences(outs, exact), None)
        messages += [] if first is None else [f"{way.name}: {first}"]
    return messages
