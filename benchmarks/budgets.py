"""Cases that are measured, with the largest ratio to JAX's time that is allowed on a quiet machine."""

from typing import NamedTuple


class Case(NamedTuple):
    """One line of the table; `budget` is the ratio to JAX's time, or None for a case without a budget."""

    what: str
    budget: float | None = None


# The programs of `worker/nets.py`, `kernels.py` and `algebra.py`, at the sizes of `inputs.py`.
PROGRAMS = {
    "mlp_adam": "dense net with GELU, step of Adam",
    "resnet_block": "residual block with batch norm, step",
    "separable_conv": "depthwise and 1x1 convolution, step",
    "causal_attention": "causal attention, forward and backward",
    "transformer_block": "transformer block, step",
    "lstm": "LSTM over 64 steps, training step",
    "gru_forward": "GRU over 64 steps, forward",
    "embedding": "embedding and classifier, step",
    "per_sample_grads": "gradient of each example",
    "hessian": "Hessian of a small net",
    "jacobian": "Jacobian of a net",
    "kmeans_step": "k-means, one step",
    "layernorm_grad": "layer norm, forward and backward",
    "softmax": "softmax of rows",
    "logsumexp_grad": "log-sum-exp, forward and backward",
    "elementwise": "chain of elementwise functions",
    "trigonometric": "sin, cos, atan2",
    "powers": "powers 1.5, -0.5, 3",
    "dropout": "dropout",
    "sum_rows": "sum over the last of 3 axes",
    "sum_middle": "sum over the middle axis",
    "sum_columns": "sum over the first axis",
    "variance": "variance of rows",
    "argmax": "argmax of rows",
    "cumsum": "cumsum along rows",
    "cumsum_columns": "cumsum along columns",
    "cumprod": "cumprod along rows",
    "sort": "sort of rows",
    "argsort": "argsort of rows",
    "sort_long": "sort of 262,144 numbers",
    "top_k": "16 largest of rows",
    "median": "median of rows",
    "distinct": "count of distinct integers",
    "searchsorted": "searchsorted",
    "histogram": "counts of integers",
    "segment_sum": "sum of rows by segment",
    "gather": "rows of a table",
    "slices_and_pads": "strided slices, pads, concatenation",
    "transpose": "transpose of 3 axes",
    "max_pool_grad": "max pooling 3x3, forward and backward",
    "matmul": "product of matrices",
    "matmul_batched": "64 products of matrices",
    "einsum": "einsum of three operands",
    "cholesky": "Cholesky, 256x256",
    "cholesky_batched": "1,024 Cholesky, 8x8",
    "solve": "solve, 256x256",
    "solve_batched": "1,024 solves, 8x8",
    "triangular_solve": "triangular solve, 256x256",
    "inverse": "inverse, 256x256",
    "eigh": "eigh, 128x128",
    "eigh_batched": "256 eigh, 8x8",
    "svd": "SVD, 128x128",
    "svd_batched": "256 SVD, 8x8",
    "qr": "QR, 256x128",
    "fft": "FFT of 256 rows",
    "fft_long": "real FFT of 262,144 numbers",
    "fft2": "FFT of 16 images",
    "normal": "normal random numbers",
    "uniform": "uniform random numbers",
    "permutation": "random permutation",
    "ode": "Runge-Kutta, 1,000 steps of 2 numbers",
    "ode_adaptive": "Heun with adaptive steps",
    "kalman": "Kalman filter of 4 states, 500 steps",
    "small_gru_grad": "GRU of 16 units, 200 steps, gradient",
    "small_stacks": "ten products of stacks of 16 matrices, 4x4",
    "nbody": "bodies that attract each other, 10 steps",
    "heat": "diffusion on a grid, 100 steps",
}

# Measured only with `--devices`, on several devices.
ON_MESHES = {
    "sharded_call": Case("split arrays: jit call, 2 arrays", 1.15),
    "sharded_call_tree": Case("split arrays: jit call, 40-leaf pytree", 1.15),
    "sharded_sum": Case("split arrays: jit call with an all-reduce", 1.15),
    "sharded_psum": Case("split arrays: psum in a shard_map", 1.15),
    "sharded_step": Case("split arrays: step of gradient descent", 1.15),
    "sharded_numpy": Case("split arrays: jit call with a NumPy array"),
    "sharded_put": Case("split arrays: device_put of a NumPy array"),
}

CASES = (
    {
        "import": Case("import", 0.35),
        "second_process": Case("second process: first result of a jitted grad step", 0.2),
        "second_process_both_cached": Case("  the same, JAX's disk cache switched on"),
        "digits_step": Case("second process: first step of the digits example", 0.2),
        "digits_step_both_cached": Case("  the same, JAX's disk cache switched on"),
        "digits_start": Case("  from the parameters' keys to that step's loss", 0.2),
        "digits_process": Case("  from the import to that step's loss", 0.2),
        "trace_forward": Case("trace a 20-layer MLP", 0.15),
        "trace_grad": Case("trace the gradient of a 20-layer MLP", 0.12),
        "lower_grad": Case("lower the gradient of a 20-layer MLP", 0.25),
        "compile_grad": Case("compile the gradient of a 20-layer MLP, never seen before", 1.0),
        "first_call": Case("first call of a small jitted function, never seen before", 1.0),
        "stage_mlp_grad": Case("trace and lower the gradient of a 20-layer MLP", 0.15),
        "stage_hessian": Case("trace and lower the Hessian of a small net", 0.15),
        "stage_gru_grad": Case("trace and lower the gradient of a GRU, 40 steps unrolled", 0.15),
        "stage_conv_grad": Case("trace and lower the gradient of a convolutional net", 0.15),
        "stage_chain": Case("trace and lower 400 elementwise operations", 0.15),
        "stage_transformer": Case("trace and lower a step of a transformer block", 0.15),
        "trace_10": Case("trace 10 operations"),
        "trace_100": Case("trace 100 operations"),
        "trace_1000": Case("trace 1,000 operations"),
        "trace_10000": Case("trace 10,000 operations"),
        "jit_call": Case("jit call, 2 arrays", 1.0),
        "jit_call_tree": Case("jit call, 40-leaf pytree", 1.0),
        "jit_call_tree_90": Case("jit call, 90-leaf pytree", 1.0),
        "jit_call_list_40": Case("jit call, list of 40 arrays", 1.0),
        "jit_call_list_90": Case("jit call, list of 90 arrays", 1.0),
        "eager_add": Case("eager x + y", 0.8),
        "eager_lax_add": Case("eager lax.add(x, y)", 0.5),
        "eager_index": Case("eager v[0]", 0.25),
        "eager_reshape": Case("eager v.reshape", 0.5),
        "eager_mean": Case("eager mean", 0.8),
        "eager_sum": Case("eager sum", 0.8),
        "eager_where": Case("eager where", 0.8),
        "eager_compare": Case("eager x < y", 0.8),
        "eager_broadcast": Case("eager matrix + vector", 0.8),
        "run_mlp": Case("MLP training step", 1.0),
        "run_conv_forward": Case("small convolutional net, forward", 1.0),
        "run_conv_grad": Case("small convolutional net, forward and backward", 1.0),
        "run_attention": Case("attention, forward and backward", 1.0),
    }
    | {f"run_{name}": Case(what, 1.0) for name, what in PROGRAMS.items()}
    | ON_MESHES
)

# A linear cost has the same time per operation at both ends of this range; the report gives its drift.
SCALING = ("trace_100", 100, "trace_10000", 10_000)
LINEAR_WITHIN = 1.5

# How far JAX measured against itself (`--null`) strays from 1 on a quiet machine.
NOISE = 1.05
