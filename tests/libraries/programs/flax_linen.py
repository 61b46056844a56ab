"""A convolutional network with batch statistics in flax.linen, its parameters given."""

import flax.linen as nn
import jax
import jax.numpy as jnp
import numpy as np

RNG = np.random.default_rng(3)
X = RNG.normal(size=(4, 8, 8, 2)).astype(np.float32)


class Network(nn.Module):
    @nn.compact
    def __call__(self, x, train):
        x = nn.Conv(4, (3, 3))(x)
        x = nn.BatchNorm(use_running_average=not train, momentum=0.9)(x)
        x = nn.avg_pool(nn.relu(x), (2, 2), (2, 2))
        return nn.Dense(3)(x.reshape(x.shape[0], -1))


def main():
    network = Network()
    variables = network.init(jax.random.key(0), X, train=False)
    draw = lambda x: jnp.asarray(RNG.normal(size=x.shape).astype(np.float32) * 0.2)
    params, stats = jax.tree.map(draw, variables["params"]), variables["batch_stats"]
    labels = np.array([0, 2, 1, 1])

    @jax.jit
    def step(params, stats):
        def loss(params):
            logits, updated = network.apply(
                {"params": params, "batch_stats": stats}, X, train=True, mutable="batch_stats"
            )
            return -jnp.mean(jnp.take_along_axis(nn.log_softmax(logits), labels[:, None], 1)), updated["batch_stats"]

        (value, stats_), gradients = jax.value_and_grad(loss, has_aux=True)(params)
        return jax.tree.map(lambda p, g: p - 0.1 * g, params, gradients), stats_, value

    losses = []
    for _ in range(5):
        params, stats, value = step(params, stats)
        losses.append(value)
    logits = network.apply({"params": params, "batch_stats": stats}, X, train=False)
    shapes = jax.tree.map(lambda x: x.shape, params)
    return {"losses": jnp.stack(losses), "logits": logits, "kernel": shapes["Conv_0"]["kernel"]}
