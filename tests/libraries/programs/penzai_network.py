"""A network of penzai with given parameters: named axes, layers that are trees, a derivative with respect to them."""

import jax
import jax.numpy as jnp
import numpy as np
from penzai import pz

RNG = np.random.default_rng(5)
WEIGHTS = {name: RNG.normal(size=(4, 4)).astype(np.float32) * 0.5 for name in ("first", "second")}
X = RNG.normal(size=(3, 4)).astype(np.float32)


def network(weights):
    def layer(name):
        w = pz.nx.wrap(weights[name], "features", "out")
        affine = pz.nn.Linear(
            weights=pz.Parameter(value=w, label=name), in_axis_names=("features",), out_axis_names=("out",)
        )
        return pz.nn.Sequential([affine, pz.nn.RenameAxes("out", "features")])

    return pz.nn.Sequential([layer("first"), pz.nn.Elementwise(jnp.tanh), layer("second"), pz.nn.Softmax("features")])


def main():
    x = pz.nx.wrap(X, "batch", "features")
    model, parameters = pz.unbind_params(network(WEIGHTS), freeze=True)

    def loss(parameters):
        out = pz.bind_variables(model, parameters)(x)
        return -pz.nx.nmap(lambda row: jnp.log(row[0]))(out.untag("features")).untag("batch").unwrap().mean()

    out = network(WEIGHTS)(x)
    gradients = jax.grad(loss)(parameters)
    squared = [jnp.sum(leaf**2) for leaf in jax.tree.leaves(gradients)]
    summed = pz.nx.nmap(jnp.sum)(x.untag("batch"))
    return {"out": out.unwrap("batch", "features"), "loss": loss(parameters), "gradients": jnp.stack(squared),
            "summed": summed.unwrap("features"), "parameters": len(jax.tree.leaves(parameters))}  # fmt: skip
