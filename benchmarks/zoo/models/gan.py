"""A generative adversarial network: the loss of the critic, which the generator maximises."""

from benchmarks.zoo.parts import normal, perceptron, stack
from benchmarks.zoo.side import nn, np

SIZES = {
    "tiny": {"n": 3, "pixels": 4, "width": 5, "latent": 2},
    "real": {"n": 128, "pixels": 784, "width": 512, "latent": 64},
}


def init(draw, n, pixels, width, latent):
    return {"generator": stack(draw, latent, width, width, pixels), "critic": stack(draw, pixels, width, width, 1)}


def batch(draw, n, pixels, width, latent):
    return normal(draw, n, pixels), normal(draw, n, latent)


def forward(params, real, noise):
    made = np.tanh(perceptron(params["generator"], noise, nn.leaky_relu))
    judge = lambda x: perceptron(params["critic"], x, nn.leaky_relu)
    return judge(real), judge(made)


def loss(params, real, noise):
    of_real, of_made = forward(params, real, noise)
    return np.mean(nn.softplus(-of_real)) + np.mean(nn.softplus(of_made))
