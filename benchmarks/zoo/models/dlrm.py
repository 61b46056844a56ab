"""Recommendation: tables of embeddings, and products of each pair of them (after DLRM)."""

from benchmarks.zoo.parts import labels, normal, perceptron, stack, weights
from benchmarks.zoo.side import nn, np

SIZES = {
    "tiny": {"n": 3, "tables": 2, "rows": 5, "width": 3},
    "real": {"n": 1024, "tables": 16, "rows": 10000, "width": 32},
}
NUMBERS = 4


def init(draw, n, tables, rows, width):
    return {
        "tables": [weights(draw, rows, width) * rows**0.5 for _ in range(tables)],
        "bottom": stack(draw, NUMBERS, 2 * width, width),
        "top": stack(draw, width + (tables + 1) ** 2, 4 * width, 1),
    }


def batch(draw, n, tables, rows, width):
    return normal(draw, n, NUMBERS), labels(draw, rows, n, tables), labels(draw, 2, n)


def forward(params, numbers, rows, clicked):
    dense = perceptron(params["bottom"], numbers, nn.relu)
    vectors = np.stack([dense, *(table[rows[:, i]] for i, table in enumerate(params["tables"]))], 1)
    pairs = np.einsum("nac,nbc->nab", vectors, vectors).reshape(len(dense), -1)
    return perceptron(params["top"], np.concatenate([dense, pairs], -1), nn.relu)[:, 0]


def loss(params, numbers, rows, clicked):
    logits = forward(params, numbers, rows, clicked)
    return np.mean(nn.softplus(logits) - clicked * logits)
