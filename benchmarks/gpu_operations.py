"""Operations on a GPU beside JAX: first calls and later ones.

    python -m benchmarks.gpu_operations --ours PY --jax PY [--json FILE] [--scale 1] [--case "*attention*"]

Each side runs in its own process, without caches on disk. JAX's products have full float32, as this package's do. First
calls end in the quick tier, where there is one; later ones are of the last tier.
"""

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.report import duration

ROOT = Path(__file__).parents[1]


def measured(python: str, side: str, scale: int, pattern: str) -> dict:
    """Return the figures of one side."""
    environment = {**os.environ, "FT_CACHE": "0", "JAX_DEFAULT_MATMUL_PRECISION": "highest"}
    environment.pop("JAX_COMPILATION_CACHE_DIR", None)
    environment["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [python, "-m", "benchmarks.worker.gpu_operations", side, str(scale), pattern]
    done = subprocess.run(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True, check=True)
    return json.loads(done.stdout.splitlines()[-1])


def table(ours: dict, jax: dict) -> str:
    """Return the times of this package and their ratios to JAX's."""
    lines = [f"{'on ' + ours['device']:28}{'time':>10}{'ratio':>8}{'first':>10}{'ratio':>8}"]
    ratios = {"least": [], "first": []}
    for name, mine in ours["seconds"].items():
        line = f"{name:28}"
        for kind, found in ratios.items():
            found.append(mine[kind] / jax["seconds"][name][kind])
            line += f"{duration(mine[kind]):>10}{found[-1]:8.2f}"
        lines.append(line)
    means = {kind: math.exp(sum(map(math.log, found)) / len(found)) for kind, found in ratios.items()}
    lines.append(f"{'geometric mean':28}{means['least']:18.2f}{means['first']:18.2f}")
    return "\n".join(lines)


def main() -> None:
    """Measure both sides, and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    for side in ("ours", "jax"):
        default = os.environ.get(f"FT_BENCH_{side.upper()}", sys.executable)
        parser.add_argument(f"--{side}", default=default, metavar="PYTHON", help=f"interpreter of the {side} side")
    parser.add_argument("--scale", type=int, default=1, help="divides all sizes, to try the cases on a CPU")
    parser.add_argument("--case", default="*", metavar="PATTERN", help="only the operations with these names")
    parser.add_argument("--json", metavar="FILE", help="write every figure to this file")
    options = parser.parse_args()
    sides = {side: measured(getattr(options, side), side, options.scale, options.case) for side in ("ours", "jax")}
    print(table(**sides))
    if options.json:
        Path(options.json).write_text(json.dumps(sides, indent=1))


if __name__ == "__main__":
    main()
