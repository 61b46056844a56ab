"""The inputs of the programs, by name, as NumPy arrays: every side gets the same numbers."""

import itertools

import numpy as np
from shapes import normal

CHANNELS, WIDTH = 32, 128
SEED = np.asarray(7, np.int32)


def numbers(*shape: int, seed: int = 0) -> np.ndarray:
    """Return standard normal numbers."""
    return np.random.default_rng(seed).normal(size=shape).astype(np.float32)


def whole(high: int, *shape: int) -> np.ndarray:
    """Return indices below `high`."""
    return np.random.default_rng(1).integers(0, high, shape).astype(np.int32)


def layers(*widths: int) -> list[np.ndarray]:
    """Return weights and biases, alternating."""
    return [a for n, m in itertools.pairwise(widths) for a in (normal(n, m), np.zeros(m, np.float32))]


def positive(*shape: int) -> np.ndarray:
    """Return symmetric positive definite matrices."""
    x = numbers(*shape)
    return (x @ np.swapaxes(x, -1, -2) / shape[-1] + np.eye(shape[-1])).astype(np.float32)


def general(*shape: int) -> np.ndarray:
    """Return well-conditioned matrices."""
    return numbers(*shape) * shape[-1] ** -0.5 + 2 * np.eye(shape[-1], dtype=np.float32)


INPUTS = {
    # nets: a batch first, then weights
    "mlp_adam": lambda: [numbers(128, 256), whole(10, 128), *layers(256, 512, 512, 10)],
    "resnet_block": lambda: [
        numbers(16, CHANNELS, 28, 28), *[normal(CHANNELS, CHANNELS, 3, 3) for _ in range(2)],
        *[np.ones(CHANNELS, np.float32) for _ in range(4)],
    ],
    "separable_conv": lambda: [numbers(8, 64, 28, 28), normal(64, 1, 3, 3), normal(128, 64, 1, 1)],
    "causal_attention": lambda: [numbers(4, 8, WIDTH, 32, seed=i) for i in range(3)],
    "transformer_block": lambda: [
        numbers(4, 64, WIDTH), normal(WIDTH, 3 * WIDTH), normal(WIDTH, WIDTH), normal(WIDTH, 4 * WIDTH),
        normal(4 * WIDTH, WIDTH), np.ones(WIDTH, np.float32), np.ones(WIDTH, np.float32),
    ],
    "lstm": lambda: [numbers(64, 32, 64), normal(64, 4 * WIDTH), normal(WIDTH, 4 * WIDTH), np.zeros(4 * WIDTH, "f")],
    "gru_forward": lambda: [numbers(64, 32, 64), normal(64, 3 * WIDTH), normal(WIDTH, 3 * WIDTH)],
    "embedding": lambda: [whole(10_000, 64, 32), whole(10, 64), numbers(10_000, 64), normal(64, 10)],
    "per_sample_grads": lambda: [numbers(128, 64), whole(10, 128), *layers(64, 64, 10)],
    "hessian": lambda: [numbers(32, 8), numbers(32), *layers(8, 16, 1)],
    "jacobian": lambda: [numbers(64), *layers(64, 128, 64)],
    "kmeans_step": lambda: [numbers(4096, 32), numbers(64, 32, seed=1)],
    # kernels
    "layernorm_grad": lambda: [numbers(1024, 512), np.ones(512, np.float32), np.zeros(512, np.float32)],
    "softmax": lambda: [numbers(2048, 512)],
    "logsumexp_grad": lambda: [numbers(2048, 512)],
    "elementwise": lambda: [numbers(1 << 20), numbers(1 << 20, seed=1)],
    "trigonometric": lambda: [numbers(1 << 20)],
    "powers": lambda: [np.abs(numbers(1 << 20)) + np.float32(0.1)],
    "dropout": lambda: [numbers(1 << 20), SEED],
    "sum_rows": lambda: [numbers(64, 128, 256)],
    "sum_middle": lambda: [numbers(64, 128, 256)],
    "sum_columns": lambda: [numbers(64, 128, 256)],
    "variance": lambda: [numbers(2048, 512)],
    "argmax": lambda: [numbers(2048, 512)],
    "cumsum": lambda: [numbers(1024, 512)],
    "cumsum_columns": lambda: [numbers(1024, 512)],
    "cumprod": lambda: [numbers(1024, 512)],
    "sort": lambda: [numbers(1024, 256)],
    "argsort": lambda: [numbers(1024, 256)],
    "sort_long": lambda: [numbers(1 << 18)],
    "top_k": lambda: [numbers(256, 4096)],
    "median": lambda: [numbers(1024, 255)],
    "distinct": lambda: [whole(1000, 1 << 16)],
    "searchsorted": lambda: [np.sort(numbers(1 << 12)), numbers(1 << 16)],
    "histogram": lambda: [whole(256, 1 << 18)],
    "segment_sum": lambda: [numbers(1 << 13, 64), whole(256, 1 << 13)],
    "gather": lambda: [numbers(10_000, 64), whole(10_000, 1 << 13)],
    "slices_and_pads": lambda: [numbers(64, 128, 128)],
    "transpose": lambda: [numbers(64, 128, 256)],
    "max_pool_grad": lambda: [numbers(8, 32, 56, 56)],
    # algebra
    "matmul": lambda: [numbers(512, 512), numbers(512, 512, seed=1)],
    "matmul_batched": lambda: [numbers(64, 64, 64), numbers(64, 64, 64, seed=1)],
    "einsum": lambda: [numbers(16, 32, 48), numbers(48, 24, 32, seed=1), numbers(24, 40, seed=2)],
    "cholesky": lambda: [positive(256, 256)],
    "cholesky_batched": lambda: [positive(1024, 8, 8)],
    "solve": lambda: [general(256, 256), numbers(256, 8)],
    "solve_batched": lambda: [general(1024, 8, 8), numbers(1024, 8, 1)],
    "triangular_solve": lambda: [np.tril(general(256, 256)), numbers(256, 64)],
    "inverse": lambda: [general(256, 256)],
    "eigh": lambda: [positive(128, 128)],
    "eigh_batched": lambda: [positive(256, 8, 8)],
    "svd": lambda: [numbers(128, 128)],
    "svd_batched": lambda: [numbers(256, 8, 8)],
    "qr": lambda: [numbers(256, 128)],
    "fft": lambda: [numbers(256, 1024)],
    "fft_long": lambda: [numbers(1 << 18)],
    "fft2": lambda: [numbers(16, 128, 128)],
    "normal": lambda: [SEED],
    "uniform": lambda: [SEED],
    "permutation": lambda: [SEED],
    "ode": lambda: [np.float32([1.0, 0.5])],
    "ode_adaptive": lambda: [numbers(64)],
    "kalman": lambda: [numbers(4, 4) / 4, np.eye(4, dtype=np.float32), numbers(500)],
    "small_gru_grad": lambda: [*[numbers(16, 24, seed=i) / 4 for i in range(3)], numbers(200, 8), numbers(16)],
    "small_stacks": lambda: [numbers(16, 4, 4) / 4, numbers(16, 4, 4, seed=1)],
    "nbody": lambda: [numbers(256, 3), numbers(256, 3, seed=1)],
    "heat": lambda: [numbers(128, 128)],
}  # fmt: skip
