"""Distributions of distrax: densities, divergences, a flow, a mixture and a hidden Markov model."""

import distrax
import jax
import jax.numpy as jnp


def main():
    normal = distrax.MultivariateNormalDiag(jnp.array([0.0, 1.0]), jnp.array([1.0, 2.0]))
    other = distrax.MultivariateNormalDiag(jnp.zeros(2), jnp.ones(2))
    flow = distrax.Transformed(
        distrax.Normal(0.0, 1.0), distrax.Chain([distrax.Tanh(), distrax.ScalarAffine(0.1, 0.5)])
    )
    drawn, density = flow.sample_and_log_prob(seed=jax.random.PRNGKey(0), sample_shape=(5,))
    mixture = distrax.MixtureSameFamily(
        distrax.Categorical(probs=jnp.array([0.3, 0.7])),
        distrax.Normal(jnp.array([-1.0, 1.0]), jnp.array([0.5, 0.5])),
    )
    hidden = distrax.HMM(
        init_dist=distrax.Categorical(probs=jnp.array([0.5, 0.5])),
        trans_dist=distrax.Categorical(probs=jnp.array([[0.9, 0.1], [0.2, 0.8]])),
        obs_dist=distrax.Normal(jnp.array([0.0, 2.0]), jnp.ones(2)),
    )
    seen = jnp.array([0.1, 0.3, 2.2])
    return {
        "density": normal.log_prob(jnp.array([0.5, 0.5])),
        "divergence": normal.kl_divergence(other),
        "flow": flow.log_prob(jnp.array([0.2, -0.3])),
        "flow of samples": flow.log_prob(drawn) - density,
        "entropy": jax.grad(lambda m: distrax.Categorical(logits=m).entropy())(jnp.array([0.1, 0.5, -1.0])),
        "mixture": jax.jit(mixture.log_prob)(jnp.array([0.0, 1.0])),
        "forward": hidden.forward(seen)[0],
        "path": hidden.viterbi(seen),
        "slope": jax.grad(lambda s: distrax.Gamma(s, 2.0).log_prob(1.5))(3.0),
    }
