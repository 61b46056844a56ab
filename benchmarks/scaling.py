"""Growth of this package's costs and of JAX's.

    python -m benchmarks.scaling --ours PY --jax PY --json benchmarks/results/scaling.json

A curve is a cost over a size: operations of a program, leaves of a pytree, jitted functions, nested transformations.
The table shows each point, and the steepness of the end of each curve: 1 where twice the size costs twice as much.
`python -m benchmarks.plots` draws them.
"""

import argparse
import json
import math
import os
import sys
from fnmatch import fnmatch
from pathlib import Path

from benchmarks.report import duration, middle
from benchmarks.run import measure, start
from benchmarks.worker.curves import CURVES, case


def steepness(seconds: dict, curve: str, side: str) -> float | None:
    """Return the growth at a curve's end: the exponent or, for nested levels, the factor of one more level."""
    (before, after), grows = CURVES[curve][2][-2:], CURVES[curve][1]
    low, high = (middle(seconds[case(curve, size)], side) for size in (before, after))
    if low is None or high is None:
        return None
    return high / low if grows == "depth" else math.log(high / low) / math.log(after / before)


def table(seconds: dict, sides: list[str]) -> str:
    """Return a table with a line for each point, and one for the end of each curve."""
    lines = []
    for curve, (what, grows, sizes) in CURVES.items():
        if case(curve, sizes[0]) not in seconds:
            continue
        lines.append(f"{what}, by {grows}")
        for size in sizes:
            row = seconds[case(curve, size)]
            times = [middle(row, side) for side in sides]
            ratio = f"{times[0] / times[1]:.2f}" if None not in times and len(times) == 2 else ""
            lines.append(f"  {size:>9,}" + "".join(f"{duration(t):>12}" for t in times) + f"{ratio:>8}")
        ends = [steepness(seconds, curve, side) for side in sides]
        name = "factor" if grows == "depth" else "exponent"
        lines.append(f"  {name:>9}" + "".join(f"{'-' if e is None else f'{e:.2f}':>12}" for e in ends))
    return "\n".join(lines)


def main() -> int:
    """Measure, and print the table."""
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.scaling", description=__doc__, formatter_class=argparse.RawTextHelpFormatter
    )
    for side in ("ours", "jax"):
        default = os.environ.get(f"FT_BENCH_{side.upper()}", sys.executable)
        parser.add_argument(f"--{side}", default=default, metavar="PYTHON", help=f"interpreter of the {side} side")
    parser.add_argument("--rounds", type=int, default=3, help="samples of each side and point (default 3)")
    parser.add_argument("--curve", action="append", metavar="PATTERN", help="only these curves (may be repeated)")
    parser.add_argument("--json", metavar="FILE", help="write every sample to a file")
    options = parser.parse_args()
    os.environ["FT_BENCH_CLOCK"], os.environ["FT_BENCH_CORES"] = "cpu", "0"
    sides = start({side: (side, getattr(options, side)) for side in ("ours", "jax")})
    curves = [curve for curve in CURVES if any(fnmatch(curve, pattern) for pattern in options.curve or ["*"])]
    points = [case(curve, size) for curve in curves for size in CURVES[curve][2]]
    seconds = measure(sides, points, options.rounds)
    about = {side.name: side.about for side in sides}
    for side in sides:
        side.close()
    print(table(seconds, list(about)))
    if options.json:
        Path(options.json).write_text(json.dumps({"sides": about, "seconds": seconds}, indent=1))
    return 0


if __name__ == "__main__":
    sys.exit(main())
