# ---
# jupyter:
#   jupytext:
#     formats: ipynb,py:percent
#     text_representation:
#       extension: .py
#       format_name: percent
#   kernelspec:
#     display_name: Python 3
#     language: python
#     name: python3
# ---

# %% [markdown]
# # Derivatives for science
#
# A model of nature is often a function and its derivatives. Here four of them are written down as on paper, and the
# derivatives are left to `grad`:
#
# 1. a double pendulum, from its energies;
# 2. a law of motion, learned from measurements (a neural ODE);
# 3. the heat equation, solved by a network (a physics-informed network, PINN);
# 4. a curve through noisy data, with error bars, whose smoothness SciPy finds (a Gaussian process).

# %%
import itertools

import matplotlib.pyplot as plt
import numpy as np
import scipy.integrate
import scipy.optimize

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, tree
from functorch_like.examples import pictures
from functorch_like.flatten_util import ravel_pytree

# %% [markdown]
# ## A double pendulum
#
# Two rods of length 1 with a mass of 1 at the end of each, one hanging from the other. The state is two angles `q` and
# their velocities `v`. Energies are easy to write down. The equations of motion are not, and need not be written:
# with the Lagrangian $L = T - V$, and its derivatives written as subscripts, the accelerations $a$ solve
#
# $$L_{vv}\, a = L_q - L_{vq}\, v .$$


# %%
def positions(q):
    """The masses' places: x and y of each."""
    steps = fnp.stack([fnp.sin(q), -fnp.cos(q)], axis=-1)
    return fnp.cumsum(steps, axis=0)


def kinetic(q, v):
    _, velocities = ft.jvp(positions, (q,), (v,))
    return 0.5 * fnp.sum(velocities**2)


def potential(q):
    return 9.81 * fnp.sum(positions(q)[:, 1])


def lagrangian(q, v):
    return kinetic(q, v) - potential(q)


def acceleration(q, v):
    mass = ft.hessian(lagrangian, argnums=1)(q, v)
    force = ft.grad(lagrangian, argnums=0)(q, v)
    mixed = ft.jacobian(ft.grad(lagrangian, argnums=1), argnums=0)(q, v)
    return fnp.linalg.solve(mass, force - mixed @ v)


# %% [markdown]
# The velocities of the masses are a derivative, too: `jvp` of their places, in the direction `v`.
#
# A step of the classical Runge-Kutta method looks four times where the motion leads. `scan` goes through these stages,
# and another `scan` through the steps: it is a loop of the compiled program, which stacks what each step gives. Arrays
# are float64, because the pendulum forgets its digits fast.

# %%
STAGES = np.array([[0, 1 / 6], [1 / 2, 1 / 3], [1 / 2, 1 / 3], [1, 1 / 6]])


def runge_kutta(field, y, dt):
    """The state `y`, a vector, after the time `dt`, when `field(y)` is its rate of change."""

    def stage(carry, row):
        slope, total = carry
        slope = field(y + row[0] * dt * slope)
        return (slope, total + row[1] * slope), None

    zero = fnp.zeros_like(y)
    (_, total), _ = lax.scan(stage, (zero, zero), STAGES.astype(y.dtype))
    return y + dt * total


def motion(state):
    q, v = state[:2], state[2:]
    return fnp.concatenate([v, acceleration(q, v)])


DT, STEPS = 0.01, 1200


def simulate(q):
    def step(state, _):
        return runge_kutta(motion, state, DT), state

    return lax.scan(step, fnp.concatenate([q, fnp.zeros_like(q)]), None, length=STEPS)[1]


# %% [markdown]
# `simulate` knows one pendulum. Twenty of them, which start a millionth of a radian apart, are a `vmap`:

# %%
start = np.array([2.0, 2.5])
starts = start + 1e-6 * np.stack([np.arange(20.0), np.zeros(20)], axis=1)
states = np.asarray(ft.jit(ft.vmap(simulate))(starts))  # pendulum, time, angles and velocities


@ft.jit
@ft.vmap
def energy(state):
    return kinetic(state[:2], state[2:]) + potential(state[:2])


energies = energy(states[0])
print(f"energy {float(energies[0]):.3f}, after {STEPS * DT:.0f} s {float(energies[-1]):.3f}")

# %% [markdown]
# The energy is kept to four digits: the equations of motion are right, and the steps are short enough. Let them swing.

# %%
places = np.asarray(ft.jit(ft.vmap(ft.vmap(positions)))(states[..., :2]))  # pendulum, time, mass, x or y

figure, axes = plt.subplots(figsize=(2.6, 2.6), layout="tight")
axes.set(xlim=(-2.1, 2.1), ylim=(-2.1, 2.1), aspect="equal", xticks=[], yticks=[])
colors = plt.cm.viridis(np.linspace(0, 1, len(places)))
rods = [axes.plot([], [], color=color, linewidth=0.8)[0] for color in colors]
clock = axes.text(-2, 1.75, "", fontsize=8)


def draw(i):
    for rod, place in zip(rods, places[:, i], strict=True):
        rod.set_data([0, *place[:, 0]], [0, *place[:, 1]])
    clock.set_text(f"{i * DT:.1f} s")


pictures.animate(
    figure,
    draw,
    range(0, STEPS, 24),
    "Twenty double pendulums swing as one for about eight seconds. Then they part, and each goes its own way.",
    seconds=0.12,
)

# %% [markdown]
# They swing as one, and then they do not: chaos. How fast do they part? Derivatives answer without a second pendulum:
# `jvp` of `simulate` tells how the state at each time moves with the start, in one direction. Its logarithm grows along
# a line, whose slope is the Lyapunov exponent.

# %%
_, spread = ft.jit(lambda q, along: ft.jvp(simulate, (q,), (along,)))(start, np.array([1.0, 0.0]))
growth = np.linalg.norm(np.asarray(spread), axis=1)
times = DT * np.arange(STEPS)
slope = np.polyfit(times[100:], np.log(growth[100:]), 1)[0]

figure, axes = plt.subplots(figsize=(7, 2.4), layout="tight")
axes.semilogy(times, growth, label="derivative")
apart = np.linalg.norm(states[1] - states[0], axis=1) / 1e-6
axes.semilogy(times, apart, "--", label="two pendulums, difference / $10^{-6}$")
axes.set(xlabel="seconds", ylabel="growth")
axes.legend(fontsize=8)
pictures.show(
    figure,
    "Growth of small differences over twelve seconds, on a logarithmic axis: the derivative and the difference of "
    "two pendulums rise together, about a straight line.",
)
print(f"differences grow by a factor of {np.exp(slope):.1f} each second")

# %% [markdown]
# ## A law of motion, learned
#
# Now the law is unknown. There are measurements of states over time, and a small network that is to be the right-hand
# side of $dy/dt = f(y)$. To compare, the equation has to be solved; to learn, the solution has to be differentiated by
# the weights. The Runge-Kutta steps from above do: they are a function, and `grad` goes back through the loops.

# %%
rng = np.random.default_rng(0)
times = np.linspace(0, 12, 200)
hidden = np.array([[-0.1, 2.0], [-2.0, -0.1]])
orbit = scipy.integrate.solve_ivp(lambda t, y: hidden @ y**3, (0, 12), [2.0, 0.0], t_eval=times, rtol=1e-6).y.T
measured = (orbit + rng.normal(0, 0.03, orbit.shape)).astype("float32")

# %% [markdown]
# Each example is a short piece: a start, and the seven measurements that follow it. The network gets the cubes of the
# state beside the state. That is knowledge of the problem, and leaving it out is a good experiment.


# %%
def network(sizes, dtype):
    """Weights and offsets of each layer."""
    return [
        ((rng.normal(size=shape) / np.sqrt(shape[0])).astype(dtype), np.zeros(shape[1], dtype))
        for shape in itertools.pairwise(sizes)
    ]


def apply(params, x):
    for w, b in params[:-1]:
        x = fnp.tanh(x @ w + b)
    w, b = params[-1]
    return x @ w + b


def law(params, y):
    return apply(params, fnp.concatenate([y, y**3 / 4]))


def solve(params, y, length):
    """States at `length` times, from `y` on."""

    def step(y, _):
        return runge_kutta(lambda y: law(params, y), y, float(times[1])), y

    return lax.scan(step, y, None, length=length)[1]


LENGTH = 8
windows = np.lib.stride_tricks.sliding_window_view(measured, LENGTH, axis=0).swapaxes(1, 2)  # start, time, state


def misfit(params, window):
    return fnp.mean((solve(params, window[0], LENGTH) - window) ** 2)


# %% [markdown]
# The optimizer is Adam, written out:


# %%
def adam(params, grads, state, rate):
    count, mean, square = state
    count = count + 1
    mean = tree.map(lambda m, g: 0.9 * m + 0.1 * g, mean, grads)
    square = tree.map(lambda s, g: 0.99 * s + 0.01 * g * g, square, grads)

    def moved(p, m, s):
        return p - rate * (m / (1 - 0.9**count)) / (fnp.sqrt(s / (1 - 0.99**count)) + 1e-8)

    return tree.map(moved, params, mean, square), (count, mean, square)


@ft.jit
def learn(params, batches, rates):
    def loss(params, batch):
        return fnp.mean(ft.vmap(misfit, in_axes=(None, 0))(params, batch))

    def step(carry, given):
        (params, state), (batch, rate) = carry, given
        value, grads = ft.value_and_grad(loss)(params, batch)
        return adam(params, grads, state, rate), value

    zeros = tree.map(fnp.zeros_like, params)
    (params, _), losses = lax.scan(step, (params, (0.0, zeros, zeros)), (batches, rates))
    return params, losses


params = network([4, 32, 2], "float32")
batches = windows[rng.integers(0, len(windows), (700, 16))]
params, losses = learn(params, batches, np.geomspace(0.02, 0.001, len(batches), dtype="float32"))
print(f"misfit of the first steps {float(losses[:10].mean()):.4f}, of the last {float(losses[-10:].mean()):.4f}")

# %%
again = ft.jit(lambda params: solve(params, measured[0], len(measured)))(params)
x, y = np.meshgrid(np.linspace(-2.2, 2.2, 14, dtype="float32"), np.linspace(-2.2, 2.2, 14, dtype="float32"))
grid = np.stack([x, y], -1)
arrows = np.asarray(ft.jit(ft.vmap(ft.vmap(lambda y: law(params, y))))(grid))
arrows = arrows / np.linalg.norm(arrows, axis=-1, keepdims=True)

figure, (left, right) = plt.subplots(1, 2, figsize=(8, 3), layout="tight")
left.plot(*measured.T, ".", color="#999999", markersize=3, label="measured")
left.plot(*np.asarray(again).T, color="#3b7dd8", linewidth=1, label="learned law")
left.quiver(x, y, arrows[..., 0], arrows[..., 1], color="#cccccc", zorder=0)
left.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1, 1))
left.set(title="states", aspect="equal")
right.semilogy(losses, linewidth=0.8)
right.set(title="misfit", xlabel="step of Adam")
pictures.show(
    figure,
    "Left: measured states spiral inwards, and the orbit of the learned law follows them among arrows of its "
    "field. Right: the misfit falls by orders of magnitude over seven hundred steps.",
)

# %% [markdown]
# ## The heat equation, solved by a network
#
# A rod between 0 and 1, held at temperature 0 at both ends. Its temperature $u(x, t)$ obeys $u_t = \nu\, u_{xx}$. The
# network below is a function of place and time. Multiplied with $x(1-x)t$ and added to the start, it has the right
# values at the start and at the ends, whatever its weights are. What is left is the equation itself: its residual, a
# formula with derivatives of the network, is made small at random points.

# %%
NU = 0.05


def initial(x):
    return fnp.sin(np.pi * x) + 0.5 * fnp.sin(3 * np.pi * x)


def temperature(params, x, t):
    return initial(x) + t * x * (1 - x) * apply(params, fnp.stack([2 * x - 1, 2 * t - 1]))[0]


def residual(params, x, t):
    u_t = ft.grad(temperature, argnums=2)
    u_xx = ft.grad(ft.grad(temperature, argnums=1), argnums=1)
    return u_t(params, x, t) - NU * u_xx(params, x, t)


# %% [markdown]
# SciPy's L-BFGS minimizes it. It wants a flat vector of float64, and gets one: `ravel_pytree` flattens the parameters,
# and gives the function that restores them. `value_and_grad` gives both things that `minimize(jac=True)` asks for.

# %%
flat, restore = ravel_pytree(network([2, 16, 16, 1], "float64"))
px, pt = rng.uniform(size=(2, 200))


def objective(flat):
    return fnp.mean(ft.vmap(residual, in_axes=(None, 0, 0))(restore(flat), px, pt) ** 2)


history = []
found = scipy.optimize.minimize(
    ft.jit(ft.value_and_grad(objective)),
    np.asarray(flat),
    jac=True,
    method="L-BFGS-B",
    callback=lambda intermediate_result: history.append(intermediate_result.fun),
    options={"maxiter": 150},
)
print(f"mean square residual {history[0]:.2e} -> {found.fun:.2e} in {found.nit} iterations")

# %% [markdown]
# This equation has a solution in closed form, which the network never saw:

# %%
xs, ts = np.linspace(0, 1, 80), np.linspace(0, 1, 60)
everywhere = ft.jit(ft.vmap(ft.vmap(temperature, in_axes=(None, 0, None)), in_axes=(None, None, 0)))
learned = np.asarray(everywhere(restore(found.x), xs, ts))
decay = lambda k: np.exp(-NU * (k * np.pi) ** 2 * ts[:, None])
exact = decay(1) * np.sin(np.pi * xs) + 0.5 * decay(3) * np.sin(3 * np.pi * xs)

figure, axes = plt.subplots(1, 3, figsize=(9, 2.6), layout="tight")
axes[0].semilogy(history)
axes[0].set(title="mean square residual", xlabel="iteration")
picture = axes[1].imshow(learned.T, origin="lower", extent=(0, 1, 0, 1), aspect="auto", cmap="inferno")
axes[1].set(title="temperature", xlabel="time", ylabel="place")
figure.colorbar(picture, ax=axes[1])
for i in (0, 10, 59):
    axes[2].plot(xs, exact[i], color="#bbbbbb", linewidth=4)
    axes[2].plot(xs, learned[i], label=f"time {ts[i]:.1f}", linewidth=1)
axes[2].set(title="exact (grey) and learned", xlabel="place")
axes[2].legend(fontsize=7)
pictures.show(
    figure,
    "Left: the residual falls over the iterations. Middle: the temperature over time and place, two bumps that melt "
    "into one and fade. Right: learned profiles lie on the exact ones at three times.",
)
print(f"largest error {abs(learned - exact).max():.1e}")

# %% [markdown]
# ## A Gaussian process
#
# A Gaussian process is a distribution over curves. Its kernel says how alike two values are, by the distance of their
# places. Three numbers decide: how high curves are, how far they look, and how much noise there is. They maximize the
# likelihood of the data: a Cholesky factor and a triangular solve, which `grad` differentiates as everything else.


# %%
def kernel(log, a, b):
    return fnp.exp(2 * log["height"]) * fnp.exp(-0.5 * ((a - b) / fnp.exp(log["length"])) ** 2)


def gram(log, a, b):
    return ft.vmap(ft.vmap(kernel, in_axes=(None, None, 0)), in_axes=(None, 0, None))(log, a, b)


def cholesky(log, x):
    return fnp.linalg.cholesky(gram(log, x, x) + fnp.exp(2 * log["noise"]) * fnp.eye(len(x)))


def surprise(log, x, y):
    """Minus the logarithm of the likelihood, up to a constant."""
    factor = cholesky(log, x)
    white = ft.scipy.linalg.solve_triangular(factor, y, lower=True)
    return 0.5 * fnp.sum(white**2) + fnp.sum(fnp.log(fnp.diagonal(factor)))


x = np.sort(np.concatenate([rng.uniform(0, 4, 25), rng.uniform(6, 10, 25)]))
y = np.sin(x) + 0.3 * np.sin(3 * x) + rng.normal(0, 0.1, x.shape)
flat, restore_log = ravel_pytree(
    {"height": fnp.zeros((), "float64"), "length": fnp.zeros((), "float64"), "noise": fnp.zeros((), "float64")}
)
found = scipy.optimize.minimize(
    ft.jit(ft.value_and_grad(lambda flat: surprise(restore_log(flat), x, y))), np.asarray(flat), jac=True
)
log = restore_log(found.x)
print({name: round(float(fnp.exp(value)), 3) for name, value in log.items()}, "after", found.nit, "iterations")

# %% [markdown]
# The noise was 0.1. How sure is it of that? The Hessian of the surprise at its minimum is the inverse of the covariance
# of the three logarithms:

# %%
curvature = ft.jit(ft.hessian(lambda flat: surprise(restore_log(flat), x, y)))(found.x)
print("standard errors of the logarithms:", np.sqrt(np.diag(np.linalg.inv(curvature))).round(2))


# %%
@ft.jit
def predict(log, new):
    factor = cholesky(log, x)
    across = ft.scipy.linalg.solve_triangular(factor, gram(log, x, new), lower=True)
    mean = across.T @ ft.scipy.linalg.solve_triangular(factor, y, lower=True)
    return mean, fnp.sqrt(kernel(log, 0.0, 0.0) - fnp.sum(across**2, axis=0))


new = np.linspace(-0.5, 11, 250)
mean, sure = (np.asarray(part) for part in predict(log, new))
figure, axes = plt.subplots(figsize=(8, 2.6), layout="tight")
axes.fill_between(new, mean - 2 * sure, mean + 2 * sure, color="#cfe0f5", label="two standard deviations")
axes.plot(new, np.sin(new) + 0.3 * np.sin(3 * new), color="#999999", linewidth=1, label="truth")
axes.plot(new, mean, color="#3b7dd8", label="mean")
axes.plot(x, y, "k.", markersize=4, label="data")
axes.legend(fontsize=7, ncols=4, loc="upper center")
axes.set(ylim=(-2, 2.4))
pictures.show(
    figure,
    "A curve through fifty points. The band around it is narrow where there are points, and wide in the gap between "
    "4 and 6 and beyond the ends; the truth stays within it.",
)

# %% [markdown]
# Where there are no data, the band widens: the model says what it does not know.
#
# - `functorch_like.experimental.ode.odeint` chooses its steps by their error, and solves the adjoint equation backwards
#   in time, which stores no steps.
# - `ft.scipy.optimize` has minimizers that run inside of compiled programs, and so under `vmap`.
# - The notebook on sampling draws from distributions instead of maximizing them.
