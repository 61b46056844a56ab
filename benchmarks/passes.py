"""XLA's time to compile training steps of the zoo's models, with the passes before lowering and without them.

    python -m benchmarks.passes [--size tiny] [--json FILE]

The passes remove dead code, constants and common subexpressions. Figures are processor times on one core, the least of
some compilations of each kind, in turns, under the options of the optimised tier.
"""

import argparse
import math
import os
import time
from importlib import import_module
from pathlib import Path
from unittest import mock

import numpy as np

import functorch_like as ft
from benchmarks.saving import save
from functorch_like.ir import passes

ROUNDS = 2
MODELS = sorted(p.stem for p in (Path(__file__).parent / "zoo/models").glob("[!_]*.py"))


def compiled(step, operands, simplify) -> float:
    """Return the seconds that XLA takes for one more compilation of a training step."""
    fresh = ft.jit(lambda *args: step(*args))
    with mock.patch.object(passes, "simplify", simplify):
        lowered = fresh.lower(*operands)
        lowered.as_text()  # accessing it makes the module, outside of the timing
        started = time.process_time()
        lowered.compile()
        return time.process_time() - started


def measure(name: str, size: str) -> dict[str, float]:
    """Return the seconds with the passes and without, and the numbers of equations left and of all."""
    model = import_module(f"benchmarks.zoo.models.{name}")
    draw, sizes = np.random.default_rng(0), model.SIZES[size]
    operands = model.init(draw, **sizes), model.batch(draw, **sizes)

    def step(params, batch):
        loss, slopes = ft.value_and_grad(model.loss)(params, *batch)
        return loss, ft.tree.map(lambda p, g: p - 1e-3 * g, params, slopes)

    jaxpr = ft.make_jaxpr(step)(*operands)
    ways = {"with": passes.simplify, "without": lambda jaxpr: jaxpr}
    seconds = dict.fromkeys(ways, math.inf)
    for _ in range(ROUNDS):
        for way, simplify in ways.items():
            seconds[way] = min(seconds[way], compiled(step, operands, simplify))
    return {"equations": len(jaxpr.equations), "left": len(passes.simplify(jaxpr).equations), **seconds}


def main() -> None:
    """Measure all models and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--size", default="tiny", choices=("tiny", "real"), help="of the models")
    parser.add_argument("--json", help="write every figure, with date and versions, to this file")
    options = parser.parse_args()
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    ft.backends.compilation.tiers = "off"
    ft.backends.cache.enabled = False
    rows = {}
    for name in MODELS:
        row = rows[name] = measure(name, options.size)
        ratio = row["with"] / row["without"]
        print(f"{name:12} {row['left']:4} of {row['equations']:4} equations {ratio:8.2f}", flush=True)
    mean = math.exp(sum(math.log(r["with"] / r["without"]) for r in rows.values()) / len(rows))
    print(f"geometric mean of XLA's time with the passes over that without: {mean:.3f}")
    if options.json:
        save(options.json, (), models=rows)


if __name__ == "__main__":
    main()
