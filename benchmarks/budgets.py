"""What is measured, and what each ratio to JAX may be at most on a quiet machine."""

from typing import NamedTuple


class Case(NamedTuple):
    """One line of the table; `budget` is ours over JAX's, or None where nothing has been promised."""

    what: str
    budget: float | None = None


CASES = {
    "import": Case("import", 0.35),
    "second_process": Case("second process: first result of a jitted grad step", 0.2),
    "second_process_both_cached": Case("  the same, JAX's disk cache switched on"),
    "trace_forward": Case("trace forward of a 20-layer MLP", 0.15),
    "trace_grad": Case("trace its grad", 0.12),
    "lower_grad": Case("lower its grad", 0.25),
    "compile_grad": Case("compile its grad, never seen before", 1.0),
    "first_call": Case("first call of a small jitted function, never seen before", 1.0),
    "trace_10": Case("trace 10 operations"),
    "trace_100": Case("trace 100 operations"),
    "trace_1000": Case("trace 1,000 operations"),
    "trace_10000": Case("trace 10,000 operations"),
    "jit_call": Case("jit call, 2 arrays", 1.0),
    "jit_call_tree": Case("jit call, 40-leaf pytree", 1.0),
    "eager_add": Case("eager x + y", 0.8),
    "eager_lax_add": Case("eager lax.add(x, y)", 0.5),
    "eager_index": Case("eager v[0]", 0.25),
    "eager_reshape": Case("eager v.reshape", 0.5),
    "run_mlp": Case("MLP training step", 1.0),
    "run_conv_forward": Case("small convolutional net, forward", 1.0),
    "run_conv_grad": Case("small convolutional net, forward and backward", 1.0),
    "run_attention": Case("attention, forward and backward", 1.0),
}

# A linear cost has the same time per operation at both ends of this range; the report says how far it drifts.
SCALING = ("trace_100", 100, "trace_10000", 10_000)
LINEAR_WITHIN = 1.5

# How far JAX measured against itself (`--null`) strays from 1 on a quiet machine.
NOISE = 1.05
