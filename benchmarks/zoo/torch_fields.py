"""Counterparts in PyTorch of the models of vectors, graphs and fields: each returns the output and the loss."""

# pyright: reportMissingImports=false
import math

import torch
import torch.nn.functional as F

from benchmarks.zoo.torch_layers import affine, classified, gelu, perceptron, waves


def mlp(params, x, y):
    logits = perceptron(params, x, F.relu)
    return logits, classified(logits, y)


def gnn(params, x, senders, receivers, y):
    senders, receivers = senders.long(), receivers.long()
    for p in params["layers"]:
        messages = F.silu(affine(p["message"], torch.cat([x[senders], x[receivers]], -1)))
        received = torch.zeros_like(x).index_add(0, receivers, messages)
        x = x + F.silu(affine(p["update"], torch.cat([x, received], -1)))
    logits = affine(params["out"], x)
    return logits, classified(logits, y)


def dlrm(params, numbers, rows, clicked):
    dense = perceptron(params["bottom"], numbers, F.relu)
    looked = [table[rows[:, i].long()] for i, table in enumerate(params["tables"])]
    vectors = torch.stack([dense, *looked], 1)
    pairs = (vectors @ vectors.transpose(1, 2)).reshape(len(dense), -1)
    logits = perceptron(params["top"], torch.cat([dense, pairs], -1), F.relu)[:, 0]
    return logits, (F.softplus(logits) - clicked * logits).mean()


def flow(params, x):
    first, second = x.chunk(2, -1)
    volume = 0.0
    for layers in params:
        scale, shift = perceptron(layers, first).chunk(2, -1)
        scale = torch.tanh(scale)
        first, second = second * scale.exp() + shift, first
        volume = volume + scale.sum(-1)
    z = torch.cat([first, second], -1)
    return z, (0.5 * (z**2).sum(-1) - volume).mean() + 0.5 * x.shape[-1] * math.log(2 * math.pi)


def moe(params, x, y):
    best, which = (x @ params["gate"]).topk(2)
    share = (best.softmax(-1)[..., None] * F.one_hot(which, len(params["up"]))).sum(-2)
    outs = gelu(torch.einsum("nc,ech->neh", x, torch.stack(params["up"])))
    outs = torch.einsum("neh,ehc->nec", outs, torch.stack(params["down"]))
    result = x + torch.einsum("ne,nec->nc", share, outs)
    return result, F.mse_loss(result, y)


def nerf(params, origins, directions, depths, colours):
    points = origins[:, None] + depths[..., None] * directions[:, None]
    out = perceptron(params, waves(0.1 * points, 6), F.relu)
    steps = torch.diff(depths, append=depths[:, -1:] + 0.1)
    absorbed = F.softplus(out[..., 3]) * steps
    reaching = (absorbed - absorbed.cumsum(-1)).exp()
    result = ((reaching * (1 - (-absorbed).exp()))[..., None] * torch.sigmoid(out[..., :3])).sum(1)
    return result, F.mse_loss(result, colours)


def pinn(params, x, t):
    grad, vmap = torch.func.grad, torch.func.vmap
    solution = lambda x, t: perceptron(params, torch.stack([x, t], -1))[..., 0]
    if not torch.is_grad_enabled():
        return solution(x, t), None
    along = grad(solution)
    inside = vmap(grad(solution, 1))(x, t) + solution(x, t) * vmap(along)(x, t) - 0.01 * vmap(grad(along))(x, t)
    start = solution(x, 0 * t) + (math.pi * x).sin()
    return start, (inside**2).mean() + (start**2).mean()
