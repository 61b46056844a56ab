"""Checks of an exported program with symbolic dimensions at the ends of their ranges.

A program found from sizes in the middle holds for all sizes only if the function does not depend on them. So it is
compared with the function's own program at small sizes, at large ones and at equal ones. Where their texts differ, as
lowering may choose another algorithm, both are run, and the results compared.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.backends import xla
from functorch_like.errors import FtError, UnsupportedError
from functorch_like.exporting.dimensions import Scope

#: Sizes that are compared, where constraints allow them; also the smallest and the largest that they allow.
_SMALL, _LARGE = (1, 2, 3, 5, 8), (100, 300, 1100)
_CONSIDERED = range(1, 1101)

Sizes = Mapping[str, int]


def check(program: Any, exported: Callable[[Sizes], Any], scope: Scope, base: Sizes) -> None:
    """Compare a program for all sizes with those of the function, away from the sizes that it was found at.

    Args:
        program: a `SymbolicExported`.
        exported: gives the function's own program for some sizes.
        scope: with the constraints.
        base: sizes, of which one at a time is changed.

    Raises:
        UnsupportedError: where they compute something else, with the constraint that leaves such sizes out.
    """
    for name in base:
        allowed = [n for n in _CONSIDERED if scope.allows({**base, name: n})]
        below, above = _ends(allowed, base[name])
        for sizes, sign in ((below, ">="), (above, "<=")):
            proven = base[name]
            for size in sizes:
                _compare(program, exported, {**base, name: size}, f"{name} {sign} {proven}")
                proven = size
    for sizes in _together(base, scope):
        _compare(program, exported, sizes, " < ".join(base))


def _ends(allowed: list[int], middle: int) -> tuple[list[int], list[int]]:
    """Sizes to compare below and above one, the nearest first."""
    if not allowed:
        return [], []
    small = {*allowed[:3], *(n for n in _SMALL if n in allowed)}
    large = {max(n for n in allowed if n <= limit) for limit in _LARGE if allowed[0] <= limit}
    chosen = sorted(small | large)
    return [n for n in reversed(chosen) if n < middle], [n for n in chosen if n > middle]


def _together(base: Sizes, scope: Scope) -> Iterator[Sizes]:
    """Sizes where several dimensions are special: all the smallest, and pairs that are equal."""
    if len(base) > 1:
        smallest = next((dict.fromkeys(base, n) for n in _CONSIDERED if scope.allows(dict.fromkeys(base, n))), None)
        candidates = [smallest, *({**base, a: base[b]} for a, b in itertools.permutations(base, 2))]
        yield from (sizes for sizes in candidates if sizes and scope.allows(sizes))


def _compare(program: Any, exported: Callable[[Sizes], Any], sizes: Sizes, constraint: str) -> None:
    shown = ", ".join(f"{k} = {v}" for k, v in sizes.items())
    typical = program.samples[0][0]
    try:
        own = exported(sizes)
        if all(template.is_text(own.mlir_module(p), sizes) for p, template in program.templates.items()):
            return
        largest = 2 * max(*sizes.values(), *program.samples[-1][0].values())
        reason = _difference(program.at(**sizes), own, largest)
    except FtError as e:
        reason = f"{type(e).__name__}: {e.args[0] if e.args else e}".split("\n")[0]
    if reason:
        raise UnsupportedError(
            f"{program.fun_name} is another program for {shown} than for sizes such as {typical}: {reason}",
            fix=f"export it with a constraint that leaves these sizes out, such as {constraint!r}",
        )


def _difference(found: Any, own: Any, largest: int) -> str:
    """The difference of results for arguments up to some scale; an empty text for none."""
    if [(a.shape, a.dtype) for a in found.out_avals] != [(a.shape, a.dtype) for a in own.out_avals]:
        return f"it gives {own.out_avals}, not {found.out_avals}"
    if xla.default_device().platform not in {"gpu" if p == "cuda" else p for p in own.platforms}:
        # The program cannot run here. Its lowering may have chosen an algorithm by size; reading has checked the types.
        return ""
    scales = (1, *(32**k for k in range(1, 4) if 32**k < largest), largest)
    return "" if all(_agree(found, own, scale) for scale in scales) else "it gives other results"


def _agree(found: Any, own: Any, scale: int) -> bool:
    rng = np.random.default_rng(0)
    args, kwargs = own.in_tree.unflatten([_argument(rng, a, scale) for a in own.in_avals])
    results = [xla.flatten(e.call(*args, **kwargs))[0] for e in (found, own)]
    # Periodic functions amplify rounding errors of large arguments. A wrong limit changes values far more than that.
    loose = 1 if scale == 1 else 30
    return all(_close(x, y, loose) for x, y in zip(*results, strict=True))


def _argument(rng: np.random.Generator, aval: Any, scale: int) -> Any:
    """Draw an argument: small values at scale 1, else values as large as sizes, which functions may use as limits."""
    if aval.dtype == dtypes.bool_:
        return rng.integers(0, 2, aval.shape).astype(bool)
    if dtypes.is_integer(aval.dtype):
        drawn = rng.integers(0, 3, aval.shape) if scale == 1 else rng.integers(-scale, scale + 1, aval.shape)
        return drawn.clip(dtypes.iinfo(aval.dtype).min, dtypes.iinfo(aval.dtype).max).astype(aval.dtype)
    return (scale * rng.normal(size=aval.shape)).astype(aval.dtype)


def _close(found: Any, own: Any, loose: int) -> bool:
    actual, want = np.asarray(found), np.asarray(own)
    if actual.dtype == dtypes.bool_ or dtypes.is_integer(actual.dtype):
        return np.array_equal(actual, want)
    tolerance = min(0.1, loose * float(np.sqrt(dtypes.finfo(actual.dtype).eps)))
    wide = np.complex128 if dtypes.is_complex(actual.dtype) else np.float64
    actual, want = actual.astype(wide), want.astype(wide)
    finite = np.abs(want[np.isfinite(want)])
    return np.allclose(actual, want, rtol=tolerance, atol=tolerance * finite.max(initial=0.0), equal_nan=True)
