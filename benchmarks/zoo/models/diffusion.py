"""A step of training a diffusion model: a convolutional network predicts the noise in images."""

from benchmarks.zoo.parts import affine, conv, dense, normal, waves
from benchmarks.zoo.side import nn, np

SIZES = {"tiny": {"n": 2, "side": 4, "width": 4, "depth": 1}, "real": {"n": 16, "side": 32, "width": 48, "depth": 4}}
FREQUENCIES = 4


def init(draw, n, side, width, depth):
    return {
        "first": dense(draw, 3, 3, 3, width),
        "layers": [
            {"conv": dense(draw, 3, 3, width, width), "time": dense(draw, 2 * FREQUENCIES, width)} for _ in range(depth)
        ],
        "out": dense(draw, 3, 3, width, 3),
    }


def batch(draw, n, side, width, depth):
    return normal(draw, n, side, side, 3), normal(draw, n, side, side, 3), draw.uniform(0, 1, n).astype("float32")


def forward(params, image, noise, time):
    angle = (np.pi / 2) * time[:, None, None, None]
    x = conv(params["first"], np.cos(angle) * image + np.sin(angle) * noise)
    features = waves(time[:, None], FREQUENCIES)
    for p in params["layers"]:
        x = x + nn.silu(conv(p["conv"], x) + affine(p["time"], features)[:, None, None])
    return conv(params["out"], x)


def loss(params, image, noise, time):
    return np.mean((forward(params, image, noise, time) - noise) ** 2)
