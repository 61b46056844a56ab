"""The inputs of the workloads, as NumPy arrays: every side gets the same numbers."""

import numpy as np


def normal(*shape: int) -> np.ndarray:
    """Return normal numbers, scaled so that a layer keeps the magnitude of its input."""
    fan_in = np.prod(shape[:-1]) if len(shape) == 2 else np.prod(shape[1:])
    return (np.random.default_rng(sum(shape)).normal(size=shape) * fan_in**-0.5).astype(np.float32)


def mlp() -> list[np.ndarray]:
    """A batch, its labels one-hot, and three weights."""
    labels = np.eye(10, dtype=np.float32)[np.arange(256) % 10]
    return [normal(256, 784), labels, normal(784, 512), normal(512, 512), normal(512, 10)]


def conv() -> list[np.ndarray]:
    """A batch of images, two kernels and a dense layer."""
    return [normal(32, 1, 28, 28), normal(16, 1, 3, 3), normal(32, 16, 3, 3), normal(32 * 14 * 14, 10)]


def attention() -> list[np.ndarray]:
    """Queries, keys and values: batch, heads, length, width."""
    return [normal(4, 8, 256, 64) for _ in range(3)]
