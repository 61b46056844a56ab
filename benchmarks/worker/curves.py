"""Curves of `python -m benchmarks.scaling`: by name, the cost, the quantity that grows, and its sizes."""

OPERATIONS = (100, 1000, 10_000, 30_000)
#: XLA's planning of a run is quadratic in the number of kernels: on either side it takes 40 s for 10,000 operations,
#: and six minutes for 30,000.
COMPILED = (100, 1000, 3000, 6000)
LEAVES = (10, 100, 1000, 10_000, 100_000)
DEPTHS = (1, 2, 3, 4, 5, 6, 7, 8)
CURVES = {
    "trace": ("trace a program", "operations", OPERATIONS),
    "lower": ("lower it", "operations", OPERATIONS),
    "compile": ("compile it", "operations", COMPILED),
    "tree_map": ("tree.map", "leaves", LEAVES),
    "tree_trace": ("trace a function of a pytree", "leaves", LEAVES),
    "tree_call": ("call it, compiled", "leaves", LEAVES[:3]),
    "functions": ("call as many jitted functions", "functions", (10, 100, 1000)),
    "nested_grad": ("trace a nested grad", "depth", DEPTHS),
    "nested_vmap": ("trace a nested vmap", "depth", DEPTHS),
}


def case(curve: str, size: int) -> str:
    """Return the name of the case of one point."""
    return f"scaling_{curve}_{size}"
