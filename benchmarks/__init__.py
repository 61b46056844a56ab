"""Times beside those of JAX and PyTorch, as ratios measured in one run: README.md, `python -m benchmarks --help`."""
