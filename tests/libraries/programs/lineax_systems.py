"""Linear systems by lineax: direct and iterative solvers, and derivatives of solutions."""

import jax
import jax.numpy as jnp
import lineax as lx
import numpy as np

RNG = np.random.default_rng(7)
A = RNG.normal(size=(4, 4)).astype(np.float32) + 4 * np.eye(4, dtype=np.float32)
B = RNG.normal(size=4).astype(np.float32)


def main():
    general = lx.linear_solve(lx.MatrixLinearOperator(jnp.asarray(A)), jnp.asarray(B))
    spd = lx.MatrixLinearOperator(jnp.asarray(A @ A.T), lx.positive_semidefinite_tag)
    cg = lx.linear_solve(spd, jnp.asarray(B), lx.CG(rtol=1e-6, atol=1e-6))
    tall = lx.linear_solve(lx.MatrixLinearOperator(jnp.asarray(A[:, :2])), jnp.asarray(B), lx.QR())

    @jax.jit
    def norm(a):
        return jnp.sum(lx.linear_solve(lx.MatrixLinearOperator(a), jnp.asarray(B)).value ** 2)

    return {"general": general.value, "cg": cg.value, "tall": tall.value, "slope": jax.grad(norm)(jnp.asarray(A))}
