"""Draws of random numbers: first results, and calls after them.

    FT_RANDOM_NUMBERS=jax python -m benchmarks.draws --ours PY --jax PY [--rounds 3] [--json FILE]

With that variable, both sides draw the same numbers; without it, this package draws its own. Each side runs all draws
in one new process, without a cache on disk, and the sides take turns. This package compiles them under the options of
its last tier. Figures are medians of the rounds.
"""

from benchmarks.processes import compare

if __name__ == "__main__":
    compare(__doc__, "draws.py")
