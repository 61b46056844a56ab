"""Programs of linear algebra, transforms, random numbers, simulations; each is `(api) -> a function of its inputs`."""

from collections.abc import Callable
from types import SimpleNamespace

LARGE = 1 << 20  # number of random numbers


def einsum(api: SimpleNamespace) -> Callable:
    """An einsum of three operands, so that their order matters."""
    return lambda x, y, z: api.fnp.einsum("abc,cdb,de->ae", x, y, z)


def ode(api: SimpleNamespace) -> Callable:
    """A thousand small Runge-Kutta steps of the Lotka-Volterra equations."""

    def field(u):
        prey, hunters = u[0], u[1]
        return api.fnp.stack([1.1 * prey - 0.4 * prey * hunters, 0.1 * prey * hunters - 0.4 * hunters])

    def step(i, u, h=0.01):
        k1 = field(u)
        k2 = field(u + h / 2 * k1)
        k3 = field(u + h / 2 * k2)
        return u + h / 6 * (k1 + 2 * k2 + 2 * k3 + field(u + h * k3))

    return lambda u: api.lax.fori_loop(0, 1000, step, u)


def ode_adaptive(api: SimpleNamespace) -> Callable:
    """Heun's method with steps chosen by their error, up to a given time."""
    fnp = api.fnp

    def field(u):
        return fnp.sin(3 * u) - 0.1 * u

    def run(u):
        def step(state):
            t, h, u = state
            k1 = field(u)
            k2 = field(u + h * k1)
            error = fnp.max(fnp.abs(h / 2 * (k2 - k1)))
            good = error < 1e-4
            factor = fnp.clip(0.9 * fnp.sqrt(1e-4 / (error + 1e-12)), 0.2, 2.0)
            return fnp.where(good, t + h, t), h * factor, fnp.where(good, u + h / 2 * (k1 + k2), u)

        start = (fnp.float32(0), fnp.float32(0.01), u)
        return api.lax.while_loop(lambda state: state[0] < 5, step, start)[2]

    return run


def kalman(api: SimpleNamespace) -> Callable:
    """Means of a Kalman filter that observes the first component with noise of variance 1."""
    fnp = api.fnp

    def run(transition, noise, observations):
        def step(state, y):
            mean, spread = state
            mean, spread = transition @ mean, transition @ spread @ transition.T + noise
            gain = spread[:, 0] / (spread[0, 0] + 1)
            mean, spread = mean + gain * (y - mean[0]), spread - fnp.outer(gain, spread[0])
            return (mean, spread), mean

        return api.lax.scan(step, (0 * noise[0], noise), observations)[1]

    return run


def small_gru_grad(api: SimpleNamespace) -> Callable:
    """The gradient of a recurrent network that reads one sequence."""
    fnp = api.fnp

    def loss(update, reset, change, xs, h):
        def step(h, x):
            both = fnp.concatenate([h, x])
            z, r = (1 / (1 + fnp.exp(-w @ both)) for w in (update, reset))
            h = (1 - z) * h + z * fnp.tanh(change @ fnp.concatenate([r * h, x]))
            return h, h

        return fnp.sum(api.lax.scan(step, h, xs)[1] ** 2)

    return api.ft.grad(loss, argnums=(0, 1, 2))


def small_stacks(api: SimpleNamespace) -> Callable:
    """Ten products in sequence, each of stacks of small matrices."""

    def run(a, b):
        for _ in range(10):
            b = a @ b
        return b

    return run


def nbody(api: SimpleNamespace) -> Callable:
    """Ten steps of bodies that attract each other."""
    fnp = api.fnp

    def step(state, _):
        x, v = state
        apart = x[None] - x[:, None]
        near = fnp.sum(apart * apart, axis=-1) + 0.1
        v = v + 1e-3 * fnp.sum(apart * (near * fnp.sqrt(near))[..., None] ** -1, axis=1)
        return (x + 1e-3 * v, v), None

    return lambda x, v: api.lax.scan(step, (x, v), None, length=10)[0]


def heat(api: SimpleNamespace) -> Callable:
    """A hundred steps of diffusion on a periodic grid."""
    fnp = api.fnp

    def step(i, u):
        around = sum(fnp.roll(u, shift, axis) for shift in (-1, 1) for axis in (0, 1))
        return u + 0.1 * (around - 4 * u)

    return lambda u: api.lax.fori_loop(0, 100, step, u)


def seeded(draw: Callable) -> Callable:
    """Random numbers from a key that is made in the program."""
    return lambda api: lambda seed: draw(api.random, api.random.PRNGKey(seed))


PROGRAMS: dict[str, Callable[[SimpleNamespace], Callable]] = {
    each.__name__: each for each in (einsum, ode, ode_adaptive, kalman, small_gru_grad, small_stacks, nbody, heat)
} | {
    "matmul": lambda api: lambda x, y: x @ y,
    "matmul_batched": lambda api: lambda x, y: x @ y,
    "cholesky": lambda api: lambda x: api.fnp.linalg.cholesky(x),
    "cholesky_batched": lambda api: lambda x: api.fnp.linalg.cholesky(x),
    "solve": lambda api: lambda a, b: api.fnp.linalg.solve(a, b),
    "solve_batched": lambda api: lambda a, b: api.fnp.linalg.solve(a, b),
    "triangular_solve": lambda api: lambda a, b: api.lax.linalg.triangular_solve(a, b, left_side=True, lower=True),
    "inverse": lambda api: lambda a: api.fnp.linalg.inv(a),
    "eigh": lambda api: lambda a: api.fnp.linalg.eigh(a),
    "eigh_batched": lambda api: lambda a: api.fnp.linalg.eigh(a),
    "svd": lambda api: lambda a: api.fnp.linalg.svd(a),
    "svd_batched": lambda api: lambda a: api.fnp.linalg.svd(a),
    "qr": lambda api: lambda a: api.fnp.linalg.qr(a),
    "fft": lambda api: lambda x: api.fnp.fft.fft(x),
    "fft_long": lambda api: lambda x: api.fnp.fft.rfft(x),
    "fft2": lambda api: lambda x: api.fnp.fft.fft2(x),
    "normal": seeded(lambda random, key: random.normal(key, (LARGE,))),
    "uniform": seeded(lambda random, key: random.uniform(key, (LARGE,))),
    "permutation": seeded(lambda random, key: random.permutation(key, 1 << 16)),
}
