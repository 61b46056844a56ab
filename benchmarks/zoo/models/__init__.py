"""One model in each file, which runs on JAX too: `side` holds the only imports that differ.

A file has `SIZES`, by name; `init(draw, **size)`, parameters as NumPy arrays; `batch(draw, **size)`, a tuple of NumPy
arrays; `forward(params, *batch)`; and `loss(params, *batch)`, a number that a training step makes smaller.
"""
