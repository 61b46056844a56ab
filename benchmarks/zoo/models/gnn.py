"""A graph network: messages along edges, summed where they arrive."""

from benchmarks.zoo.parts import affine, cross_entropy, dense, labels, normal
from benchmarks.zoo.side import nn, np

SIZES = {
    "tiny": {"nodes": 5, "edges": 8, "width": 4, "depth": 2},
    "real": {"nodes": 3000, "edges": 12000, "width": 64, "depth": 3},
}


def init(draw, nodes, edges, width, depth):
    layers = [{"message": dense(draw, 2 * width, width), "update": dense(draw, 2 * width, width)} for _ in range(depth)]
    return {"layers": layers, "out": dense(draw, width, 7)}


def batch(draw, nodes, edges, width, depth):
    return normal(draw, nodes, width), labels(draw, nodes, edges), labels(draw, nodes, edges), labels(draw, 7, nodes)


def forward(params, x, senders, receivers, y):
    for p in params["layers"]:
        messages = nn.silu(affine(p["message"], np.concatenate([x[senders], x[receivers]], -1)))
        received = np.zeros_like(x).at[receivers].add(messages)
        x = x + nn.silu(affine(p["update"], np.concatenate([x, received], -1)))
    return affine(params["out"], x)


def loss(params, x, senders, receivers, y):
    return cross_entropy(forward(params, x, senders, receivers, y), y)
