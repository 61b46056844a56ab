"""Counterparts in PyTorch of the models of sequences and of steps in time: each returns the output and the loss."""

# pyright: reportMissingImports=false
import torch
import torch.nn.functional as F

from benchmarks.zoo.torch_layers import affine, classified, normalize, perceptron, transformer


def gpt(params, text, following):
    x = params["words"][text.long()] + params["places"]
    logits = affine(params["out"], normalize(params["norm"], transformer(params["blocks"], x, 2, True)))
    return logits, classified(logits, following)


def vit(params, words, y):
    x = transformer(params["blocks"], affine(params["patches"], words) + params["places"], 2, False)
    logits = affine(params["out"], x.mean(1))
    return logits, classified(logits, y)


def lstm(params, xs, y):
    h = c = torch.zeros_like(xs[0])
    for x in xs:
        i, f, g, o = affine(params["gates"], torch.cat([x, h], -1)).chunk(4, -1)
        c = torch.sigmoid(f) * c + torch.sigmoid(i) * torch.tanh(g)
        h = torch.sigmoid(o) * torch.tanh(c)
    logits = affine(params["out"], h)
    return logits, classified(logits, y)


def gru(params, xs):
    h, outs = torch.zeros_like(xs[0]), []
    for x in xs[:-1]:
        reset, keep = torch.sigmoid(affine(params["gates"], torch.cat([x, h], -1))).chunk(2, -1)
        new = torch.tanh(affine(params["new"], torch.cat([x, reset * h], -1)))
        h = keep * h + (1 - keep) * new
        outs.append(affine(params["out"], h))
    result = torch.stack(outs)
    return result, F.mse_loss(result, xs[1:])


def ssm(params, x, y):
    for p in params["layers"]:
        entering, gate = affine(p["enter"], normalize(p["norm"], x)).chunk(2, -1)
        keep = torch.sigmoid(p["decay"]).expand_as(entering)
        state, shift = (1 - keep) * entering, 1
        while shift < x.shape[1]:  # sums over 1, 2, 4, ... times: a scan of log2(length) operations
            state = torch.cat([state[:, :shift], keep[:, shift:] * state[:, :-shift] + state[:, shift:]], 1)
            keep = torch.cat([keep[:, :shift], keep[:, shift:] * keep[:, :-shift]], 1)
            shift *= 2
        x = x + affine(p["leave"], state * F.silu(gate))
    logits = affine(params["out"], x.mean(1))
    return logits, classified(logits, y)


def neural_ode(params, x, y, times):
    h = 1 / len(times)

    def field(t, x):
        return perceptron(params["field"], torch.cat([x, t.expand(len(x), 1)], -1))

    for t in times:
        a = field(t, x)
        b = field(t + h / 2, x + h / 2 * a)
        c = field(t + h / 2, x + h / 2 * b)
        x = x + h / 6 * (a + 2 * b + 2 * c + field(t + h, x + h * c))
    logits = affine(params["out"], x)
    return logits, classified(logits, y)


def rl(params, seen, actions, rewards, old_values, old_logs):
    logs = F.log_softmax(perceptron(params["policy"], seen), -1)
    values = perceptron(params["value"], seen)[..., 0]
    if not torch.is_grad_enabled():
        return (logs, values), None
    surprise = rewards + 0.99 * old_values[1:] - old_values[:-1]
    total, gains = torch.zeros_like(surprise[0]), []
    for now in surprise.flip(0):
        total = now + 0.99 * 0.95 * total
        gains.append(total)
    gain = torch.stack(gains[::-1])
    ratio = (logs.gather(-1, actions.long()[..., None])[..., 0] - old_logs).exp()
    better = torch.minimum(ratio * gain, ratio.clamp(0.8, 1.2) * gain)
    entropy = -(logs.exp() * logs).sum(-1)
    return (logs, values), ((values - gain - old_values[:-1]) ** 2 - better - 0.01 * entropy).mean()
