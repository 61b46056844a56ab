"""Three models of libraries written for JAX: times of tracing and of the first step, here and on JAX."""
