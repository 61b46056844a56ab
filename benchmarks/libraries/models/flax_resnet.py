"""A step of SGD with momentum on a ResNet-18 of flax.linen for 32x32 images, with batch statistics; 16 images."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np
import optax

BATCH = 16


class Block(nn.Module):
    """Two convolutions with a residual connection."""

    features: int
    stride: int

    @nn.compact
    def __call__(self, x):
        norm = lambda: nn.BatchNorm(use_running_average=False, momentum=0.9)
        y = nn.Conv(self.features, (3, 3), self.stride, use_bias=False)(x)
        y = nn.relu(norm()(y))
        y = norm()(nn.Conv(self.features, (3, 3), use_bias=False)(y))
        if x.shape != y.shape:
            x = norm()(nn.Conv(self.features, (1, 1), self.stride, use_bias=False)(x))
        return nn.relu(x + y)


class ResNet(nn.Module):
    """Logits of images."""

    @nn.compact
    def __call__(self, x):
        x = nn.relu(nn.BatchNorm(use_running_average=False)(nn.Conv(64, (3, 3), use_bias=False)(x)))
        for stage, features in enumerate((64, 128, 256, 512)):
            for block in range(2):
                x = Block(features, 2 if stage and not block else 1)(x)
        return nn.Dense(10)(x.mean((1, 2)))


def make(given):
    """Return the step, its arguments, and a function of its results: the value that the sides must agree on."""
    draw = np.random.default_rng(1)
    images = draw.normal(size=(BATCH, 32, 32, 3)).astype(np.float32)
    labels = draw.integers(0, 10, BATCH).astype(np.int32)
    model = ResNet()
    variables = jax.jit(model.init)(jax.random.key(0), images)
    params, statistics = given(variables["params"]), variables["batch_stats"]
    optimizer = optax.sgd(optax.cosine_decay_schedule(0.1, 1000), 0.9, nesterov=True)

    def loss(params, statistics):
        logits, changed = model.apply({"params": params, "batch_stats": statistics}, images, mutable=["batch_stats"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean(), changed["batch_stats"]

    def step(params, statistics, state):
        (value, statistics), slopes = jax.value_and_grad(loss, has_aux=True)(params, statistics)
        updates, state = optimizer.update(slopes, state, params)
        return optax.apply_updates(params, updates), statistics, state, jnp.asarray(value)

    return step, (params, statistics, jax.jit(optimizer.init)(params)), lambda out: out[3]
