"""Optimal transport by ott-jax: Sinkhorn's algorithm, the gradient of its cost, a divergence, Gromov-Wasserstein."""

import jax
import numpy as np
from ott.geometry import costs, pointcloud
from ott.problems.linear import linear_problem
from ott.problems.quadratic import quadratic_problem
from ott.solvers.linear import sinkhorn
from ott.solvers.quadratic import gromov_wasserstein
from ott.tools import sinkhorn_divergence

RNG = np.random.default_rng(13)
X = RNG.normal(size=(12, 2)).astype(np.float32)
Y = RNG.normal(size=(9, 2)).astype(np.float32) + 0.5


def main():
    def transport(x, weights):
        geometry = pointcloud.PointCloud(x, Y, cost_fn=costs.PNormP(1.5), epsilon=0.2)
        problem = linear_problem.LinearProblem(geometry, a=jax.nn.softmax(weights), tau_a=0.9)
        out = sinkhorn.Sinkhorn(threshold=1e-4)(problem)
        return out.reg_ot_cost, out.matrix.sum(0)

    step = jax.jit(jax.vmap(jax.value_and_grad(transport, has_aux=True), in_axes=(None, 0)))
    (cost, masses), slope = step(X, RNG.normal(size=(3, 12)).astype(np.float32))
    apart = jax.jit(lambda x: sinkhorn_divergence.sinkhorn_divergence(pointcloud.PointCloud, x, Y, epsilon=0.3)[0])
    solver = gromov_wasserstein.GromovWasserstein(sinkhorn.Sinkhorn(), epsilon=1.0, max_iterations=5)
    matched = jax.jit(solver)(quadratic_problem.QuadraticProblem(pointcloud.PointCloud(X), pointcloud.PointCloud(Y)))
    return {"cost": cost, "masses": masses, "slope": slope, "divergence": apart(X), "pull": jax.grad(apart)(X),
            "matched": matched.reg_gw_cost}  # fmt: skip
