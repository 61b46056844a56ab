"""A variational autoencoder, whose noise comes with the batch."""

from benchmarks.zoo.parts import normal, perceptron, stack
from benchmarks.zoo.side import nn, np

SIZES = {
    "tiny": {"n": 3, "pixels": 6, "width": 5, "latent": 2},
    "real": {"n": 128, "pixels": 784, "width": 400, "latent": 20},
}


def init(draw, n, pixels, width, latent):
    return {"encoder": stack(draw, pixels, width, 2 * latent), "decoder": stack(draw, latent, width, pixels)}


def batch(draw, n, pixels, width, latent):
    return (normal(draw, n, pixels) > 0).astype("float32"), normal(draw, n, latent)


def forward(params, x, noise):
    mean, log_scale = np.split(perceptron(params["encoder"], x, nn.relu), 2, -1)
    return mean, log_scale, perceptron(params["decoder"], mean + np.exp(log_scale) * noise, nn.relu)


def loss(params, x, noise):
    mean, log_scale, logits = forward(params, x, noise)
    likelihood = np.sum(x * logits - nn.softplus(logits), -1)
    divergence = 0.5 * np.sum(mean**2 + np.exp(2 * log_scale) - 1 - 2 * log_scale, -1)
    return np.mean(divergence - likelihood)
