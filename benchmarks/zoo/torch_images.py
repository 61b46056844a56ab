"""Counterparts in PyTorch of the models of images: each returns the output and the loss."""

# pyright: reportMissingImports=false
import math

import torch
import torch.nn.functional as F

from benchmarks.zoo.torch_layers import affine, classified, conv, perceptron, waves


def cnn(params, x, y):
    x = x.permute(0, 3, 1, 2)
    for p in params["conv"]:
        x = F.relu(conv(p, x, 2))
    logits = affine(params["out"], x.mean((2, 3)))
    return logits, classified(logits, y)


def resnet(params, x, y):
    x = x.permute(0, 3, 1, 2)
    for p in params["stages"]:
        x = conv(p["down"], x, 2)
        for q in p["blocks"]:
            z = x
            for scale, kernel in zip(q["norms"], q["convs"], strict=True):
                z = conv(kernel, F.relu(F.instance_norm(z, weight=scale["scale"], bias=scale["shift"])))
            x = x + z
    logits = affine(params["out"], x.mean((2, 3)))
    return logits, classified(logits, y)


def unet(params, x, mask):
    across = [F.silu(conv(params["first"], x.permute(0, 3, 1, 2)))]
    for p in params["down"]:
        across.append(F.silu(conv(p, across[-1], 2)))
    x = across.pop()
    for p in reversed(params["up"]):
        x = F.silu(conv(p, torch.cat([F.interpolate(x, scale_factor=2), across.pop()], 1)))
    logits = conv(params["out"], x)
    return logits, (F.softplus(logits) - mask.permute(0, 3, 1, 2) * logits).mean()


def diffusion(params, image, noise, time):
    image, noise = (x.permute(0, 3, 1, 2) for x in (image, noise))
    angle = (math.pi / 2) * time[:, None, None, None]
    x = conv(params["first"], angle.cos() * image + angle.sin() * noise)
    features = waves(time[:, None], 4)
    for p in params["layers"]:
        x = x + F.silu(conv(p["conv"], x) + affine(p["time"], features)[:, :, None, None])
    result = conv(params["out"], x)
    return result, F.mse_loss(result, noise)


def vae(params, x, noise):
    mean, log_scale = perceptron(params["encoder"], x, F.relu).chunk(2, -1)
    logits = perceptron(params["decoder"], mean + log_scale.exp() * noise, F.relu)
    likelihood = (x * logits - F.softplus(logits)).sum(-1)
    divergence = 0.5 * (mean**2 + (2 * log_scale).exp() - 1 - 2 * log_scale).sum(-1)
    return logits, (divergence - likelihood).mean()


def gan(params, real, noise):
    made = torch.tanh(perceptron(params["generator"], noise, F.leaky_relu))
    of_real, of_made = (perceptron(params["critic"], x, F.leaky_relu) for x in (real, made))
    return of_made, F.softplus(-of_real).mean() + F.softplus(of_made).mean()
