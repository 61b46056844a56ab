"""Twenty small, real models: times and memory beside those of JAX and PyTorch; `python -m benchmarks.zoo --help`."""
