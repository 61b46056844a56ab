"""Training steps on a GPU under the options of each tier: compile time, and run time.

    python -m benchmarks.gpu_tiers [MODEL ...]

The models are those of `benchmarks.zoo`, with products and convolutions of different sizes.
"""

import argparse
import os
import statistics
import time
from importlib import import_module

import numpy

from benchmarks.report import duration

TIERS = {"quick": {"xla_gpu_enable_triton_gemm": False}, "full": {}}
MODELS = ("mlp", "lstm", "resnet", "unet", "vit")
RATE, ROUNDS, CALLS = 1e-3, 7, 5


def step(model):
    """Return a training step of a model of the zoo."""
    import functorch_like as ft

    def train(params, batch):
        loss, slopes = ft.value_and_grad(model.loss)(params, *batch)
        return loss, ft.tree_util.tree_map(lambda p, g: p - RATE * g, params, slopes)

    return train


def measured(model, options) -> tuple[float, float]:
    """Return the seconds to compile a model's training step under options, and those of a run."""
    import functorch_like as ft

    draw, sizes = numpy.random.default_rng(0), model.SIZES["real"]
    given = ft.tree_util.tree_map(ft.device_put, (model.init(draw, **sizes), model.batch(draw, **sizes)))
    lowered = ft.jit(step(model), compiler_options=options).lower(*given)
    begun = time.perf_counter()
    compiled = lowered.compile()
    took = time.perf_counter() - begun
    ft.block_until_ready(compiled(*given))
    seconds = []
    for _ in range(ROUNDS):
        begun = time.perf_counter()
        for _ in range(CALLS):
            last = compiled(*given)
        ft.block_until_ready(last)
        seconds.append((time.perf_counter() - begun) / CALLS)
    return took, statistics.median(seconds)


def main() -> None:
    """Measure the models, and print a line for each tier of each."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("models", nargs="*", default=MODELS, metavar="MODEL")
    models = parser.parse_args().models
    os.environ |= {"FT_CACHE": "0", "FT_ZOO_SIDE": "ours"}  # before the package is imported
    print(f"{'':10}{'tier':8}{'compile':>10}{'run':>10}")
    for name in models:
        model = import_module(f"benchmarks.zoo.models.{name}")
        for tier, options in TIERS.items():
            print(f"{name:10}{tier:8}" + "".join(f"{duration(s):>10}" for s in measured(model, options)), flush=True)


if __name__ == "__main__":
    main()
