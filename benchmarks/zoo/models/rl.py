"""A step of proximal policy optimisation: advantages by a backward scan, and a clipped ratio of probabilities."""

from benchmarks.zoo.parts import labels, normal, perceptron, stack
from benchmarks.zoo.side import lax, nn, np

SIZES = {"tiny": {"time": 4, "n": 2, "seen": 3, "width": 4}, "real": {"time": 128, "n": 32, "seen": 16, "width": 128}}
ACTIONS, DISCOUNT, DECAY, CLIP = 4, 0.99, 0.95, 0.2


def init(draw, time, n, seen, width):
    return {"policy": stack(draw, seen, width, width, ACTIONS), "value": stack(draw, seen, width, width, 1)}


def batch(draw, time, n, seen, width):
    old = -1.4 + 0.1 * normal(draw, time, n)
    return (
        normal(draw, time, n, seen),
        labels(draw, ACTIONS, time, n),
        normal(draw, time, n),
        normal(draw, time + 1, n),
        old,
    )


def forward(params, seen, actions, rewards, old_values, old_logs):
    return nn.log_softmax(perceptron(params["policy"], seen)), perceptron(params["value"], seen)[..., 0]


def loss(params, seen, actions, rewards, old_values, old_logs):
    logs, values = forward(params, seen, actions, rewards, old_values, old_logs)
    surprise = rewards + DISCOUNT * old_values[1:] - old_values[:-1]

    def back(later, now):
        total = now + DISCOUNT * DECAY * later
        return total, total

    gain = lax.scan(back, np.zeros_like(surprise[0]), surprise, reverse=True)[1]
    ratio = np.exp(np.take_along_axis(logs, actions[..., None], -1)[..., 0] - old_logs)
    better = np.minimum(ratio * gain, np.clip(ratio, 1 - CLIP, 1 + CLIP) * gain)
    entropy = -np.sum(np.exp(logs) * logs, -1)
    return np.mean((values - gain - old_values[:-1]) ** 2 - better - 0.01 * entropy)
