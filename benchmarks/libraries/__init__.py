"""Three models of libraries written for JAX: what tracing a step and the first step cost, here and on JAX."""
