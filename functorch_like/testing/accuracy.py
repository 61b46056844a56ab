"""How exact the compiled elementwise rows are: `python -m functorch_like.testing.accuracy`.

Each row is run over dense and special inputs of each floating dtype and held against mpmath, or where mpmath has no
such function against NumPy in float64 (told by the column "oracle"; then a float64 row is held against itself up to
NumPy's own rounding). Errors are in ulp: units in the last place of the exact result, in the row's dtype. Values that
are NaN or infinite where the exact ones are not, or the other way round, are counted apart, with the first of them.

Inputs that are subnormal are left out, and so are results: XLA takes them for zero.
"""

from __future__ import annotations

import argparse
import sys
from typing import Any, NamedTuple

import numpy as np

from functorch_like import dtypes
from functorch_like.core import TABLE, Primitive
from functorch_like.testing import oracles

DTYPES = ("float64", "float32", "float16", "bfloat16")
#: Rows of one or two floating operands whose results are floating too; the others are exact by nature.
ROWS = tuple(oracles.DOMAINS)


class Row(NamedTuple):
    """One line of the table."""

    name: str
    dtype: str
    oracle: str
    points: int
    ulp: float
    at: tuple[float, ...]
    wrong: int
    first: str


def ulps(got: np.ndarray[Any, Any], want: np.ndarray[Any, Any], dtype: Any) -> np.ndarray[Any, Any]:
    """Distances in units of the last place of `want`, which is exact (float64 or longdouble)."""
    info = dtypes.finfo(dtype)
    size = np.maximum(np.abs(want), float(info.tiny))
    with np.errstate(all="ignore"):
        unit = np.exp2(np.floor(np.log2(size))) * float(info.eps)
        return np.asarray(np.abs(got.astype(want.dtype) - want) / unit, np.float64)


def measure(prim: Primitive, dtype: str, count: int = 2000) -> Row:
    """The largest error of a row in a dtype.

    >>> from functorch_like.testing.accuracy import measure
    >>> measure(ft.primitives.sqrt, "float32", 100).ulp <= 0.51
    True
    """
    kind = np.dtype(getattr(dtypes, dtype))
    operands = oracles.inputs(prim.name, kind, count)
    got = np.asarray(prim(*operands))
    want, oracle = oracles.exact(prim, operands)
    info = dtypes.finfo(kind)
    with np.errstate(all="ignore"):
        rounded = want.astype(np.float64).astype(kind).astype(np.float64)
    result = got.astype(np.float64)
    finite = np.isfinite(result) & np.isfinite(rounded)
    near_end = np.abs(want) > 0.99 * float(info.max)  # one rounding away from infinity
    wrong = ~near_end & ((np.isnan(result) != np.isnan(rounded)) | (np.isinf(result) != np.isinf(rounded)))
    wrong |= np.isinf(result) & np.isinf(rounded) & (result != rounded)
    normal = finite & ((np.abs(want) >= float(info.tiny)) | (rounded == 0))
    error = np.where(normal, ulps(got, want, kind), 0.0)
    worst = int(np.argmax(error)) if error.size else 0
    first = ""
    if wrong.any():
        k = int(np.argmax(wrong))
        first = f"({', '.join(f'{float(x[k]):g}' for x in operands)}): {result[k]:g}, not {rounded[k]:g}"
    at = tuple(float(x[worst]) for x in operands)
    return Row(prim.name, dtype, oracle, got.size, float(error[worst]), at, int(wrong.sum()), first)


def table(names: list[str], kinds: list[str], count: int) -> list[Row]:
    """All lines for these rows and dtypes, printed as they come.

    >>> from functorch_like.testing.accuracy import table
    >>> [row.name for row in table(["abs"], ["float32"], 10)]
    row  dtype ...
    abs  float32 ...
    ['abs']
    """
    found: list[Row] = []
    print(f"{'row':<20} {'dtype':<9} {'oracle':<7} {'points':>7} {'max ulp':>10}  {'at':<28} wrong special values")
    for name in names:
        for kind in kinds:
            row = measure(TABLE[name], kind, count)
            at = ", ".join(f"{v:.6g}" for v in row.at)
            wrong = f"{row.wrong}: {row.first}" if row.wrong else ""
            print(f"{row.name:<20} {row.dtype:<9} {row.oracle:<7} {row.points:>7} {row.ulp:>10.3g}  {at:<28} {wrong}")
            found.append(row)
    return found


def main(argv: list[str] | None = None) -> int:
    """The command line."""
    parser = argparse.ArgumentParser(prog="python -m functorch_like.testing.accuracy", description=__doc__)
    parser.add_argument("--row", action="append", choices=ROWS, help="a row; may be repeated; all by default")
    parser.add_argument("--dtype", action="append", choices=DTYPES, help="a dtype; may be repeated; all by default")
    parser.add_argument("--points", type=int, default=2000, help="dense inputs for each row, beside the special ones")
    given = parser.parse_args(argv)
    table(given.row or list(ROWS), given.dtype or list(DTYPES), given.points)
    return 0


if __name__ == "__main__":
    sys.exit(main())
