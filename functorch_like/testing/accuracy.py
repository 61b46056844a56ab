"""Accuracy of the compiled elementwise primitives: `python -m functorch_like.testing.accuracy`.

Each primitive is run over dense and special inputs of each floating and complex dtype. Results are compared with
mpmath's or, if it lacks the function, with the primitive's meaning in double precision (see the column "oracle").
Errors are in ulp: units in the last place of the exact result, in the primitive's dtype; those of complex results are
distances, in ulp of the exact result's absolute value. Values that are NaN or infinite where the exact ones are not, or
the other way round, are counted apart, with the first of them.

Subnormal inputs and results are left out: XLA:CPU treats them as zero.

`--markdown FILE` writes the largest errors as a page, a line for each primitive and a column for each dtype.

With `--jax PYTHON` the same inputs are given to jax.lax in that Python, and its errors are printed, too. The last lines
name the primitives that are less exact than JAX's; the exit status is then 1.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes, primitives
from functorch_like.errors import FtError
from functorch_like.testing import oracles, peer
from functorch_like.testing.accuracy_cases import CASES, Array, Case, inputs, label

DTYPES = ("float64", "float32", "float16", "bfloat16", "complex128", "complex64")
#: Names of primitives in jax.lax, where they differ.
_JAX = {"regularized_incomplete_beta": "betainc"}
#: Ratio of errors that count as equal: with few dense inputs, the largest error is known to about this factor.
_SLACK = 1.25
#: Large arrays take other forms of many primitives: inputs are repeated up to this number, and both results measured.
_LARGE = 1 << 14


class Errors(NamedTuple):
    """Distances of results from the exact ones.

    Args:
        ulp: the largest error.
        at: the operands there.
        wrong: how many are NaN or infinite and should not be, or should be and are not.
        first: the first of those, in words.
    """

    ulp: float
    at: tuple[Any, ...]
    wrong: int
    first: str


class Accuracy(NamedTuple):
    """One line of the table."""

    name: str
    dtype: str
    oracle: str
    points: int
    ours: Errors
    theirs: Errors | str | None = None


def ulps(got: Array, want: Array, dtype: Any) -> Array:
    """Distances in units of the last place of `want`, which is exact (longdouble, real or complex).

    >>> from functorch_like.testing.accuracy import ulps
    >>> ulps(np.array([1.5, 4.5]), np.array([1.0, 4.0]), np.dtype(np.float16)).tolist()
    [512.0, 128.0]
    """
    info = dtypes.finfo(dtype)
    with np.errstate(all="ignore"):
        size = np.maximum(np.abs(want), float(info.tiny))
        unit = np.exp2(np.floor(np.log2(size))) * float(info.eps)
        return np.asarray(np.abs(got.astype(want.dtype) - want) / unit, np.float64)


def errors(operands: Sequence[Array], got: Array, want: Array) -> Errors:
    """The largest error of `got`, and the results that are NaN or infinite by mistake."""
    dtype = got.dtype
    info = dtypes.finfo(dtype)
    wide = np.complex128 if dtype.kind == "c" else np.float64
    with np.errstate(all="ignore"):
        rounded, result = want.astype(dtype).astype(wide), got.astype(wide)
        near_end = np.abs(want) > 0.99 * float(info.max)  # one rounding away from infinity
        finite = np.isfinite(result) & np.isfinite(rounded)
        wrong = ~near_end & ((np.isinf(result) != np.isinf(rounded)) | (np.isfinite(result) != np.isfinite(rounded)))
        if dtype.kind != "c":
            wrong |= np.isinf(result) & np.isinf(rounded) & (result != rounded)
        # Parts of complex results are sums. Small ones are left out, since their summands may be subnormal.
        least = float(info.tiny) / (float(info.eps) if dtype.kind == "c" else 1.0)
        normal = finite & ((np.abs(want) >= least) | (rounded == 0))
        error = np.where(normal & ~near_end, ulps(got, want, dtype), 0.0)
    worst = int(np.argmax(error)) if error.size else 0
    first = ""
    if wrong.any():
        k = int(np.argmax(wrong))
        first = f"({', '.join(f'{x[k]:g}' for x in _wide(operands))}): {result[k]:g}, not {rounded[k]:g}"
    return Errors(float(error[worst]), tuple(x[worst].item() for x in _wide(operands)), int(wrong.sum()), first)


def _wide(operands: Sequence[Array]) -> list[Array]:
    return [x if x.dtype.kind == "c" else x.astype(np.float64) for x in operands]


def dtypes_of(case: Case) -> tuple[str, ...]:
    """Names of the dtypes a case is measured in.

    >>> from functorch_like.testing.accuracy import CASES, dtypes_of
    >>> dtypes_of(CASES["erf"])
    ('float64', 'float32', 'float16', 'bfloat16')
    """
    return DTYPES if case.complex else DTYPES[:4]


def measure(name: str, dtype: str, count: int = 2000, theirs: Array | str | None = None) -> Accuracy:
    """The largest error of a case in a dtype.

    Args:
        name: a key of `CASES`: a primitive's name, and its parameters where it has some.
        dtype: one of `DTYPES`.
        count: dense inputs, beside the special ones.
        theirs: results of another library for the same inputs, or a text that states why there are none.

    >>> from functorch_like.testing.accuracy import measure
    >>> measure("sqrt", "float32", 100).ours.ulp <= 0.51
    True
    """
    case, operands = CASES[name], _operands(name, dtype, count)
    prim = getattr(primitives, case.primitive)  # imports its family
    want, oracle = oracles.exact(prim, operands, case.params)
    beside = errors(operands, theirs, want) if isinstance(theirs, np.ndarray) else theirs
    size = operands[0].size

    def of(length: int) -> Errors:
        got = np.asarray(prim(*(np.resize(x, length) for x in operands), **case.params))
        return errors(operands, got[:size], want)

    ours = max((of(length) for length in sorted({size, max(size, _LARGE)})), key=lambda found: (found.wrong, found.ulp))
    return Accuracy(name, dtype, oracle, size, ours, beside)


def _operands(name: str, dtype: str, count: int) -> list[Array]:
    return inputs(CASES[name], np.dtype(getattr(dtypes, dtype)), count)


def _job(name: str, dtype: str, count: int) -> peer.Job:
    case, operands = CASES[name], _operands(name, dtype, count)
    params = dict(case.params)
    if case.primitive == "polygamma":  # its order is an operand there
        operands = [np.full_like(operands[0], params.pop("m")), *operands]
    return peer.Job("jax.lax", _JAX.get(case.primitive, case.primitive), operands, params)


def worse(each: Accuracy) -> bool:
    """True if JAX is closer to the exact results.

    >>> from functorch_like.testing.accuracy import Accuracy, Errors, worse
    >>> worse(Accuracy("exp", "float32", "mpmath", 9, Errors(2.0, (), 0, ""), Errors(1.0, (), 0, "")))
    True
    """
    if not isinstance(each.theirs, Errors):
        return False
    return each.ours.ulp > _SLACK * max(each.theirs.ulp, 0.5) or each.ours.wrong > each.theirs.wrong


def table(names: Sequence[str], kinds: Sequence[str], count: int, python: str | None = None) -> list[Accuracy]:
    """All lines for these cases and dtypes, printed as they come.

    >>> from functorch_like.testing.accuracy import table
    >>> [each.name for each in table(["abs"], ["float32"], 10)]
    primitive  dtype ...
    abs  float32 ...
    ['abs']
    """
    lines = [(name, kind, count) for name in names for kind in kinds if kind in dtypes_of(CASES[name])]
    theirs: list[Any] = peer.evaluate(python, [_job(*line) for line in lines]) if python else [None] * len(lines)
    beside = f" {'jax':>10}" if python else ""
    print(
        f"{'primitive':<31} {'dtype':<10} {'oracle':<7} {'points':>7} {'max ulp':>10}{beside}  {'at':<28} wrong values"
    )
    rows: list[Accuracy] = []
    for line, other in zip(lines, theirs, strict=True):
        rows.append(measure(*line, other))
        print(_line(rows[-1]), flush=True)
    return rows


def _line(each: Accuracy) -> str:
    ours, theirs = each.ours, each.theirs
    beside = ""
    if theirs is not None:
        beside = f" {theirs.ulp:>10.3g}" if isinstance(theirs, Errors) else f" {'-':>10}"
    at = ", ".join(f"{v:.6g}" for v in ours.at)
    wrong = f"{ours.wrong}: {ours.first}" if ours.wrong else ""
    if isinstance(theirs, Errors) and theirs.wrong:
        wrong += f" (jax {theirs.wrong}: {theirs.first})"
    name = f"{each.name:<31} {each.dtype:<10} {each.oracle:<7} {each.points:>7}"
    return f"{name} {ours.ulp:>10.3g}{beside}  {at:<28} {wrong}".rstrip()


def markdown(rows: Sequence[Accuracy]) -> str:
    """The documentation's page: the largest errors, those of jax.lax in parentheses.

    >>> from functorch_like.testing.accuracy import Accuracy, Errors, markdown
    >>> print(markdown([Accuracy("exp", "float32", "mpmath", 9, Errors(0.7, (), 0, ""), Errors(0.9, (), 0, ""))]))
    # Accuracy
    ...
    | primitive | float32 |
    |---|---|
    | exp | 0.7 (0.9) |
    """
    kinds = [kind for kind in DTYPES if any(each.dtype == kind for each in rows)]
    shown = {(each.name, each.dtype): _short(each) for each in rows}
    lines = [f"| primitive | {' | '.join(kinds)} |", "|---" * (len(kinds) + 1) + "|"]
    for name in dict.fromkeys(each.name for each in rows):
        lines.append(f"| {name} | {' | '.join(shown.get((name, kind), '') for kind in kinds)} |")
    return "\n".join([_PAGE, *lines])


def _short(each: Accuracy) -> str:
    ours = f"{each.ours.ulp:.2g}"
    return f"{ours} ({each.theirs.ulp:.2g})" if isinstance(each.theirs, Errors) else ours


_PAGE = """# Accuracy

The largest error of each elementwise primitive on CPUs, in units in the last place of the exact result, over dense and
special inputs; in parentheses that of jax.lax on the same inputs. Of complex results it is the distance, in units of
the absolute value. `python -m functorch_like.testing.accuracy` measures it anew.

Special values are those of NumPy and of C99 (Annexes F and G), with these exceptions:

- XLA:CPU takes subnormal numbers for zero, as operands and as results. `nextafter`, bit operations, `neg` and `abs` do
  not; neither does the meaning of a primitive in NumPy (its rule `ref`).
- `max` and `min` take -0 for less than 0, as in IEEE 754-2019; NumPy leaves it open.
- A complex infinity divided by a finite number is infinite, as in C99; NumPy gives NaN.
"""


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m functorch_like.testing.accuracy", description=__doc__)
    parser.add_argument("--primitive", action="append", help="a primitive; may be repeated; all by default")
    parser.add_argument("--dtype", action="append", choices=DTYPES, help="a dtype; may be repeated; all by default")
    parser.add_argument(
        "--points", type=int, default=2000, help="dense inputs for each primitive, beside the special ones"
    )
    parser.add_argument("--jax", metavar="PYTHON", help="an interpreter that has jax, to compare with")
    parser.add_argument("--markdown", metavar="FILE", help="where to write the page")
    options = parser.parse_args(argv)
    names = [label(case) for case in CASES.values() if options.primitive is None or case.primitive in options.primitive]
    if not names:
        parser.error(f"none of the primitives {options.primitive} is measured")
    try:
        rows = table(names, options.dtype or DTYPES, options.points, options.jax)
    except FtError as error:
        parser.error(str(error))
    if options.markdown:
        Path(options.markdown).write_text(markdown(rows) + "\n")
    behind = [each for each in rows if worse(each)]
    for each in behind:
        print(f"less exact than JAX: {each.name} {each.dtype}")
    if options.jax and not behind:
        print("nothing is less exact than JAX")
    return 1 if behind else 0


if __name__ == "__main__":
    sys.exit(main())
