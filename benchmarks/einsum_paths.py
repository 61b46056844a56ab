"""Gain by a good order of contractions: einsum along opt_einsum's path, compared with left to right.

    python -m benchmarks.einsum_paths [--json FILE]

Both are compiled programs of this package, run in turns; each line gives the ratio of their medians, and the ratio of
the paths' numbers of operations. The first two examples are those of opt_einsum's documentation
(https://optimized-einsum.readthedocs.io), the others networks drawn by its `rand_equation`.
"""

import argparse
import statistics

import numpy as np
import opt_einsum.testing

import functorch_like as ft
import functorch_like.numpy as fnp
from benchmarks.saving import save
from benchmarks.worker.clock import repeated

ROUNDS = 7


def examples() -> list[tuple[str, str, list[tuple[int, ...]]]]:
    """Return the name, subscripts and shapes of each example."""
    n = 16
    square, cube = (n, n), (n, n, n, n)
    sizes = dict(zip("abcdijk", (5, 8, 6, 7, 4, 6, 5), strict=True))
    network = "bdik,acaj,ikab,ajac,ikbd->"
    drawn = []
    for count, seed in ((6, 1), (8, 2), (10, 4)):
        text, shapes = opt_einsum.testing.rand_equation(count, 3, n_out=2, d_min=2, d_max=8, seed=seed)
        drawn.append((f"random, {count} operands", text, [tuple(map(int, s)) for s in shapes]))
    chain = [(300, 4), (4, 300), (300, 300), (300, 2)]
    return [
        ("four-index transformation", "pi,qj,ijkl,rk,sl->pqrs", [square, square, cube, square, square]),
        ("network", network, [tuple(sizes[c] for c in term) for term in network[:-2].split(",")]),
        ("chain of matrices", "ab,bc,cd,de->ae", chain),
        *drawn,
    ]


def measure(text: str, shapes: list[tuple[int, ...]]) -> dict[str, float]:
    """Return the median seconds of both orders, and the numbers of operations of both paths."""
    draw = np.random.default_rng(0).standard_normal
    arrays = [ft.device_put(draw(shape).astype(np.float32)) for shape in shapes]
    results: dict[str, float] = {}
    samplers = {}
    for name, optimize in (("path", "auto"), ("left to right", False)):
        fun = ft.jit(lambda *arrays, optimize=optimize: fnp.einsum(text, *arrays, optimize=optimize))
        samplers[name] = repeated(lambda fun=fun: fun(*arrays), ft.block_until_ready)
        results[f"{name}, operations"] = fnp.einsum_path(text, *arrays, optimize=optimize)[1].flops
    seconds = {name: [] for name in samplers}
    for _ in range(ROUNDS):
        for name, sample in samplers.items():
            seconds[name].append(sample())
    return results | {f"{name}, seconds": statistics.median(all_) for name, all_ in seconds.items()}


def main() -> None:
    """Measure all examples and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write every figure, with date and versions, to this file")
    options = parser.parse_args()
    ft.backends.compilation.tiers = "off"  # measure the last tier alone
    rows = {}
    print(f"{'example':28}{'left to right':>15}{'path':>12}{'ratio':>9}{'operations':>12}")
    for name, text, shapes in examples():
        row = rows[name] = {"subscripts": text, "shapes": shapes, **measure(text, shapes)}
        slow, fast = row["left to right, seconds"], row["path, seconds"]
        fewer = row["left to right, operations"] / row["path, operations"]
        print(f"{name:28}{slow * 1e3:12.3f} ms{fast * 1e3:9.3f} ms{slow / fast:9.1f}{fewer:12.1f}")
    if options.json:
        save(options.json, ["opt_einsum"], rounds=ROUNDS, examples=rows)


if __name__ == "__main__":
    main()
