"""Draws from keys, whose numbers `python tests/user/jax_numbers.py` records, where JAX is installed."""

import json
from pathlib import Path

import numpy as np

RECORD = Path(__file__).with_suffix(".json")
FLOATS = ("float32", "bfloat16", "float16")

#: Draws of floats; each is also drawn as bfloat16 and float16.
OF_FLOATS = (
    "uniform(KEY, (5,), DTYPE)", "uniform(KEY, (2, 3), DTYPE, -2.0, 3.0)", "normal(KEY, (5,), DTYPE)",
    "exponential(KEY, (5,), DTYPE)", "gumbel(KEY, (5,), DTYPE)", "gumbel(KEY, (5,), DTYPE, mode='high')",
    "laplace(KEY, (5,), DTYPE)", "logistic(KEY, (5,), DTYPE)", "cauchy(KEY, (5,), DTYPE)", "maxwell(KEY, (5,), DTYPE)",
    "truncated_normal(KEY, -2.0, 1.0, (5,), DTYPE)", "rayleigh(KEY, array([2.0], DTYPE), (5,), DTYPE)",
    "gamma(KEY, array([0.2, 0.9, 1.0, 2.5, 40.0], DTYPE), (5,), DTYPE)",
    "loggamma(KEY, array([0.2, 0.9, 1.0, 2.5, 40.0], DTYPE), (5,), DTYPE)",
    "dirichlet(KEY, array([0.5, 1.0, 2.0], DTYPE), (2,), DTYPE)", "t(KEY, array([3.0], DTYPE), (5,), DTYPE)",
    "bernoulli(KEY, array([0.3], DTYPE), (9,))", "bernoulli(KEY, array([0.3], DTYPE), (9,), mode='high')",
    "categorical(KEY, array([[0.1, 0.5, 0.2], [0.3, 0.1, 2.0]], DTYPE), shape=(5, 2))",
    "lognormal(KEY, array([0.5], DTYPE), (5,), DTYPE)",
)  # fmt: skip
OTHERS = (
    "key_data(key(0))", "key_data(key(-5))", "key_data(key(2**40 + 3))", "key_data(key(array(-3, 'int32')))",
    "split(KEY)", "split(KEY, (2, 3))", "fold_in(KEY, 7)", "fold_in(KEY, array(-3, 'int32'))",
    *(f"bits(KEY, {shape}, 'uint{width}')" for shape in ((), (5,), (2, 3)) for width in (8, 16, 32)),
    "split(key(3, impl='rbg'))", "fold_in(key(3, impl='rbg'), 7)", "normal(key(3, impl='rbg'), (5,))",
    "gumbel(KEY, (5,), 'float32', mode='highest')", "normal(KEY, (3,), 'complex64')",
    "beta(KEY, 2.0, 0.5, (5,))", "chisquare(KEY, 3.0, (5,))", "f(KEY, 3.0, 5.0, (5,))", "pareto(KEY, 2.0, (5,))",
    "wald(KEY, 2.0, (5,))", "weibull_min(KEY, 2.0, 1.5, (5,))", "triangular(KEY, 0.0, 0.5, 1.0, (5,))",
    "generalized_normal(KEY, 1.5, (5,))", "double_sided_maxwell(KEY, 1.0, 2.0, (5,))", "ball(KEY, 3, 2, (2,))",
    "orthogonal(KEY, 3)", "multivariate_normal(KEY, array([1.0, 2.0]), array([[2.0, 0.5], [0.5, 1.0]]), (2,))",
    "rademacher(KEY, (9,))", "bernoulli(KEY)", "bernoulli(KEY, 0.2, (9,))",
    *(f"randint(KEY, (5,), {bounds}, '{dtype}')" for dtype in ("int32", "uint32", "int8", "uint8")
      for bounds in ("0, 10", "3, 4", "5, 2", "0, 127")),
    "randint(KEY, (5,), 0, 256, 'uint8')", "randint(KEY, (5,), -128, 128, 'int8')",
    "randint(KEY, (5,), -(2**31), 2**31 - 1)", "randint(KEY, (3,), array([0, 5, -9]), array([5, 5, 100]))",
    *(f"permutation(KEY, {n})" for n in (0, 1, 10, 1700)),
    *(f"permutation(KEY, GRID, {axis}, {apart})" for axis in (0, 1) for apart in (False, True)),
    "choice(KEY, 10, (5,))", "choice(KEY, 10, (5,), replace=False)", "choice(KEY, GRID, (3,), axis=1)",
    "choice(KEY, GRID, (3,), replace=False, axis=1)", "choice(KEY, 4, (9,), p=WEIGHTS)",
    "choice(KEY, GRID, (3,), replace=False, p=WEIGHTS)",
    "categorical(KEY, array([[0.1, 0.5, 0.2], [0.3, 0.1, 2.0]]), shape=(2, 2), replace=False)",
    *(f"poisson(KEY, {mean}, (9,))" for mean in (0.0, 0.5, 9.9, 10.0, 1e4)),
    "poisson(KEY, array([0.0, 1.0, 20.0, 3.0, 100.0, float('nan')]))", "poisson(KEY, 3.0, (5,), 'int16')",
    *(f"binomial(KEY, {n}, {p}, (9,))" for n, p in ((5, 0.3), (100, 0.01), (100, 0.5), (1000, 0.9), (10, 0.0))),
    "binomial(KEY, array([3.0, 40.0, 500.0, float('nan'), float('inf'), -1.0]), array([0.1, 0.4, 0.6, 0.5, 0.5, 0.5]))",
    "multinomial(KEY, array([20.0, 5.0]), array([[0.1, 0.2, 0.7], [0.3, 0.3, 0.4]]))", "geometric(KEY, 0.3, (9,))",
)  # fmt: skip
OF_WIDE = (
    "bits(KEY, (3,), 'uint64')", "uniform(KEY, (3,), 'float64')", "normal(KEY, (3,), 'float64')",
    "gamma(KEY, array([0.5, 3.0], 'float64'), dtype='float64')", "gumbel(KEY, (3,), 'float64', mode='highest')",
    "randint(KEY, (3,), 0, 10**15, 'int64')", "randint(KEY, (3,), 0, 10**15, 'uint64')",
    "binomial(KEY, array([100.0], 'float64'), array([0.3], 'float64'), (3,), 'float64')",
)  # fmt: skip
CASES = {
    "jax": [*(case.replace("DTYPE", repr(dtype)) for case in OF_FLOATS for dtype in FLOATS), *OTHERS, *OF_WIDE],
    "jax_unpartitionable": [
        case.replace("DTYPE", "'float32'") for case in (*OF_FLOATS[:3], *OTHERS[4:18], *OF_WIDE[:2])
    ],
}


def drawn(case, random, numpy):
    """Return the draw of a case from the functions of a package."""
    names = {name: getattr(random, name) for name in dir(random) if not name.startswith("_")}
    names |= {
        "KEY": random.PRNGKey(42),
        "array": numpy.asarray,
        "GRID": numpy.arange(24.0).reshape(4, 6),
        "WEIGHTS": numpy.asarray([0.1, 0.2, 0.3, 0.4]),
    }
    return eval(case, names)


def written(x):
    """Return an array as its dtype, shape and numbers."""
    numbers = np.asarray(x)
    dtype = str(numbers.dtype)
    if numbers.dtype.kind == "c":
        numbers = np.stack([numbers.real, numbers.imag])
    digits = 17 if dtype == "float64" else 9
    plain = lambda v: float(f"{v:.{digits}g}") if isinstance(v, float) else v
    numbers = numbers if numbers.dtype.kind in "iub" else numbers.astype(np.float64)
    return [dtype, list(numbers.shape), [plain(v) for v in numbers.ravel().tolist()]]


if __name__ == "__main__":
    import jax

    made = {"jax": jax.__version__, "numbers": {}}
    for rule, cases in CASES.items():
        jax.config.update("jax_threefry_partitionable", rule == "jax")
        made["numbers"][rule] = {}
        for case in cases:
            with jax.enable_x64(case in OF_WIDE):
                x = drawn(case, jax.random, jax.numpy)
                x = jax.random.key_data(x) if jax.numpy.issubdtype(x.dtype, jax.dtypes.prng_key) else x
                made["numbers"][rule][case] = written(x)
    RECORD.write_text(json.dumps(made, separators=(",", ":")).replace('"jax', '\n"jax').replace('],"', '],\n"') + "\n")
