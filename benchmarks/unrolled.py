"""Programs that unroll steps of a recurrent net, an integrator or a stencil: first results, and calls after them.

    python -m benchmarks.unrolled --ours PY --jax PY [--rounds 3] [--json FILE]

Each side runs all of them in one new process, without a cache on disk, and the sides take turns. This package compiles
them under the options of its last tier. Figures are medians of the rounds.
"""

from benchmarks.processes import compare

if __name__ == "__main__":
    compare(__doc__, "unrolled.py")
