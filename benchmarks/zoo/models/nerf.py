"""A radiance field: colours of rays through a density given by a network."""

from benchmarks.zoo.parts import normal, perceptron, stack, waves
from benchmarks.zoo.side import nn, np

SIZES = {"tiny": {"rays": 2, "points": 4, "width": 5}, "real": {"rays": 256, "points": 32, "width": 128}}
FREQUENCIES = 6


def init(draw, rays, points, width):
    return stack(draw, 6 * FREQUENCIES, width, width, width, 4)


def batch(draw, rays, points, width):
    depths = draw.uniform(0, 1, (rays, points)).astype("float32")
    depths.sort(-1)
    return normal(draw, rays, 3), normal(draw, rays, 3), depths, draw.uniform(0, 1, (rays, 3)).astype("float32")


def forward(params, origins, directions, depths, colours):
    points = origins[:, None] + depths[..., None] * directions[:, None]
    out = perceptron(params, waves(0.1 * points, FREQUENCIES), nn.relu)
    steps = np.diff(depths, axis=-1, append=depths[:, -1:] + 0.1)
    absorbed = nn.softplus(out[..., 3]) * steps
    reaching = np.exp(absorbed - np.cumsum(absorbed, -1))
    return np.sum((reaching * (1 - np.exp(-absorbed)))[..., None] * nn.sigmoid(out[..., :3]), 1)


def loss(params, origins, directions, depths, colours):
    return np.mean((forward(params, origins, directions, depths, colours) - colours) ** 2)
