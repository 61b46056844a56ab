"""Measurement of one model: `worker.py FILE` on JAX, `python -m functorch_like.as_jax worker.py FILE` on this package.

Prints one line of JSON: wall and processor seconds of imports, tracing, lowering and compiling with the
first step, and a later step; and the number that the sides must agree on.
"""

import importlib.util
import json
import sys
import time


def clocks():
    """Return wall seconds and processor seconds."""
    return time.perf_counter(), time.process_time()


def main(path):
    """Measure, and return the figures."""
    begin = clocks()
    spec = importlib.util.spec_from_file_location("model", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    import jax  # pyright: ignore[reportMissingImports]
    import numpy as np

    imported = clocks()
    draw = np.random.default_rng(0)
    filled = lambda x: jax.numpy.asarray((0.05 * draw.normal(size=x.shape)).astype(np.float32))
    step, args, value = module.make(lambda tree: jax.tree.map(filled, tree))
    jax.block_until_ready(args)
    made = clocks()
    compiled = jax.jit(step)
    compiled.trace(*args)
    traced = clocks()
    compiled = jax.jit(lambda *args: step(*args))  # another function, so that it is traced again
    out = jax.block_until_ready(compiled(*args))
    first = clocks()
    if hasattr(compiled, "optimised"):  # so that later steps run in the last tier; JAX has one tier only
        compiled.optimised()
    last = clocks()
    for _ in range(3):
        jax.block_until_ready(compiled(*args))
    later = clocks()
    names = ("import", "make", "trace", "first step", "last tier", "3 later steps")
    marks = (begin, imported, made, traced, first, last, later)
    pairs = zip(names, marks, marks[1:], strict=False)
    return {name: [b - a for a, b in zip(x, y, strict=True)] for name, x, y in pairs} | {"value": float(value(out))}


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1])))
