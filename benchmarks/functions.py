"""Single functions and their gradients, on arrays of 65,536 elements: first results, and calls after them.

    python -m benchmarks.functions --ours PY --jax PY [--rounds 3] [--json FILE]

Each side runs all functions in one new process, without a cache on disk, and the sides take turns. First results of
this package are those of the tier in which a program starts, calls those of the last tier. A gradient is that of the
sum of the squares of all results. The last line of the table has the geometric means. Figures are medians of the
rounds.
"""

from benchmarks.processes import compare

if __name__ == "__main__":
    compare(__doc__, "functions.py")
