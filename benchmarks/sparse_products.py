"""Products of sparse matrices with vectors and dense matrices, beside SciPy's.

    python -m benchmarks.sparse_products [--json FILE]

Compiled products of `experimental.sparse` and those of scipy.sparse run in turns; each line gives their medians. SciPy
runs in one thread.
"""

import argparse
import statistics

import numpy as np
import scipy.sparse

import functorch_like as ft
from benchmarks.saving import save
from benchmarks.worker.clock import repeated
from functorch_like.experimental import sparse

ROUNDS = 5
#: Rows, density, and columns of the dense operand (0 for a vector).
CASES = [(1000, 0.01, 0), (10000, 0.001, 0), (10000, 0.01, 0), (10000, 0.001, 32), (10000, 0.01, 32)]


def measure(n: int, density: float, columns: int) -> dict[str, float]:
    """Return the median seconds of each library and format."""
    a = scipy.sparse.random(n, n, density, format="csr", dtype=np.float32, random_state=0)
    x = np.random.default_rng(0).standard_normal((n, columns) if columns else n).astype(np.float32)
    samplers = {"scipy": repeated(lambda: a @ x)}
    c = a.tocoo()
    formats = {
        "BCOO": sparse.BCOO.from_scipy_sparse(a), "BCSR": sparse.BCSR.from_scipy_sparse(a),
        "COO": sparse.COO((c.data, c.row, c.col), shape=a.shape, rows_sorted=True),
        "CSR": sparse.CSR((a.data, a.indices, a.indptr), shape=a.shape),
    }  # fmt: skip
    for name, m in formats.items():
        y = ft.device_put(x)
        product = ft.jit(lambda m, x: m @ x)
        np.testing.assert_allclose(product(m, y), a @ x, rtol=1e-3, atol=1e-3)
        samplers[name] = repeated(lambda product=product, m=m, y=y: product(m, y), ft.block_until_ready)
    seconds = {name: [] for name in samplers}
    for _ in range(ROUNDS):
        for name, sample in samplers.items():
            seconds[name].append(sample())
    return {name: statistics.median(all_) for name, all_ in seconds.items()}


def main() -> None:
    """Measure all cases and print a table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--json", help="write every figure, with date and versions, to this file")
    options = parser.parse_args()
    ft.backends.compilation.tiers = "off"  # measure the last tier alone
    rows = {}
    names = ["SciPy", "BCOO", "BCSR", "COO", "CSR"]
    print(f"{'matrix':30}" + "".join(f"{name:>12}" for name in names) + "   (ms)")
    for n, density, columns in CASES:
        name = f"{n} x {n}, {density:.1%}, times {f'{n} x {columns}' if columns else 'vector'}"
        row = rows[name] = measure(n, density, columns)
        print(f"{name:30}" + "".join(f"{1e3 * row[key]:12.3f}" for key in ("scipy", *names[1:])))
    if options.json:
        save(options.json, ["scipy"], rounds=ROUNDS, seconds=rows)


if __name__ == "__main__":
    main()
