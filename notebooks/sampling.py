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
# # Sampling: Hamiltonian Monte Carlo
#
# Bayesian statistics asks for averages over a distribution whose density is known up to a constant. Markov chains walk
# through it, and stay longer where the density is high. Hamiltonian Monte Carlo (HMC) walks far at each step: it lets a
# particle slide over the landscape of minus the logarithm of the density, with a random kick at the start.
#
# Sliding takes a gradient, so `grad`. Many chains take `vmap`. Loops that run compiled take `scan` and `jit`. The whole
# sampler is twenty lines.

# %%
import matplotlib.pyplot as plt
import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax, random
from functorch_like.examples import pictures

# %% [markdown]
# ## A landscape
#
# The density below is a banana: $x$ is normal, and $y$ is normal around $x^2$. Its averages are known, so we can tell
# whether the sampler is right.


# %%
def banana(z):
    x, y = z
    return -0.5 * (x**2 + ((y - x**2) / 0.7) ** 2)


# %% [markdown]
# ## One step
#
# A step draws a momentum, and follows it by *leapfrog* steps: half a kick, then a slide and a kick, and so on. These
# keep the energy up to a small error. What is left of the error is corrected: the new place is accepted with a
# probability that depends on it, and otherwise the chain stays where it is.


# %%
def leapfrog(logp, place, momentum, size, count):
    slope = ft.grad(logp)

    def step(_, state):
        place, momentum = state
        place = place + size * momentum
        return place, momentum + size * slope(place)

    momentum = momentum + 0.5 * size * slope(place)
    place, momentum = lax.fori_loop(0, count, step, (place, momentum))
    return place, momentum - 0.5 * size * slope(place)


def energy(logp, place, momentum):
    return 0.5 * fnp.sum(momentum**2) - logp(place)


def hmc_step(logp, place, key, size, count):
    kick, coin = random.split(key)
    momentum = random.normal(kick, place.shape, place.dtype)
    new, last = leapfrog(logp, place, momentum, size, count)
    gain = energy(logp, place, momentum) - energy(logp, new, last)
    accepted = fnp.log(random.uniform(coin)) < gain
    return fnp.where(accepted, new, place), accepted


# %% [markdown]
# One flight, drawn. The particle follows the valley of the banana.

# %%
flight = [np.array([0.0, 1.5], "float32")]
speed = np.array([1.4, 0.2], "float32")
hop = ft.jit(lambda place, momentum: leapfrog(banana, place, momentum, 0.05, 1))
for _ in range(110):
    place, speed = hop(flight[-1], speed)
    flight.append(place)
flight = np.array(flight)

x, y = np.meshgrid(np.linspace(-3, 3, 120, dtype="float32"), np.linspace(-1.5, 7, 120, dtype="float32"))
density = np.exp(ft.jit(ft.vmap(ft.vmap(banana)))(np.stack([x, y], -1)))

figure, axes = plt.subplots(figsize=(5, 3), layout="tight")
axes.contourf(x, y, density, levels=12, cmap="Blues")
axes.plot(*flight.T, color="#d8633b", linewidth=1)
axes.plot(*flight[0], "o", color="#d8633b")
pictures.show(
    figure, "A density shaped like a banana, and the path of a particle that slides along and across it in curves."
)

# %% [markdown]
# ## A chain, and many
#
# A chain is a `scan` over keys. Each step needs a key of its own: `random.split` makes them, and the same keys give the
# same chain, on every machine.


# %%
def chain(logp, start, key, size, count, steps):
    def step(place, key):
        place, accepted = hmc_step(logp, place, key, size, count)
        return place, (place, accepted)

    return lax.scan(step, start, random.split(key, steps))[1]


CHAINS, STEPS = 64, 500


@ft.jit
def sample(key, size):
    where, how = random.split(key)
    starts = random.normal(where, (CHAINS, 2))
    return ft.vmap(lambda start, key: chain(banana, start, key, size, 20, STEPS))(starts, random.split(how, CHAINS))


places, accepted = sample(random.key(0), 0.1)
places.shape, float(accepted.mean())

# %% [markdown]
# `chain` knows one chain. `vmap` made 64 of it, each with its start and its keys; the gradient inside became a gradient
# of 64 places at once.
#
# Trace plots are the first thing to look at: all chains should wander over the same range, and none should be stuck.

# %%
burnt = np.asarray(places[:, 100:])  # what comes first remembers the starts

figure, axes = plt.subplots(2, 1, figsize=(8, 3.2), sharex=True, layout="tight")
for row, name, ax in zip((0, 1), "xy", axes, strict=True):
    for one in np.asarray(places[:4, :300, row]):
        ax.plot(one, linewidth=0.7)
    ax.axvspan(0, 100, color="#eeeeee", zorder=0)
    ax.set(ylabel=name)
axes[1].set(xlabel="step (grey: not used)")
pictures.show(
    figure, "Trace plots of x and y for four chains over 300 steps: the chains wander over the same range and mix."
)

# %%
figure, (left, right) = plt.subplots(1, 2, figsize=(8, 2.8), layout="tight")
left.contour(x, y, density, levels=6, colors="#888888", linewidths=0.6)
left.plot(*burnt[:, ::8].reshape(-1, 2).T, ".", markersize=1, color="#3b7dd8")
left.set(title="draws", xlim=(-3, 3), ylim=(-1.5, 7))
points = np.linspace(-4, 4, 200)
right.hist(burnt[..., 0].ravel(), bins=80, density=True, color="#cfe0f5")
right.plot(points, np.exp(-(points**2) / 2) / np.sqrt(2 * np.pi), color="#d8633b", label="exact")
right.set(title="x alone")
right.legend(fontsize=8)
pictures.show(
    figure,
    "Left: draws fill the contours of the banana. Right: the histogram of x lies under the bell curve that is exact.",
)

# %% [markdown]
# ## Is it right?
#
# Two checks. Averages should be those that are known, within their error: $E[x] = 0$, $E[x^2] = 1$, $E[y] = 1$. And
# chains should agree with each other: $\hat R$ compares the variance between chains with that within, and is near 1.


# %%
def r_hat(draws):
    """Of draws (chain, step): the square root of the pooled variance over that within chains."""
    count = draws.shape[1]
    within = draws.var(axis=1, ddof=1).mean()
    between = count * draws.mean(axis=1).var(ddof=1)
    return np.sqrt(((count - 1) / count * within + between / count) / within)


for name, values, exact in (("x", burnt[..., 0], 0), ("x²", burnt[..., 0] ** 2, 1), ("y", burnt[..., 1], 1)):
    each = values.mean(axis=1)  # one estimate from each chain, independent of the others
    error = each.std(ddof=1) / np.sqrt(CHAINS)
    print(f"{name:3} {each.mean():7.3f} ± {error:.3f}   exact {exact}   r-hat {r_hat(values):.4f}")

# %% [markdown]
# ## How long a step?
#
# Long steps go far and are often refused. Short ones are accepted and go nowhere. The step size is an argument like any
# other, so one more `vmap` tries sixteen of them at once: 16 × 64 chains in one program. What counts is how far a chain
# has moved from one draw to the next.

# %%
sizes = np.geomspace(0.01, 0.7, 16).astype("float32")
tried, kept = ft.jit(ft.vmap(sample, in_axes=(None, 0)))(random.key(1), sizes)
jumps = np.asarray(fnp.mean(fnp.sum(fnp.diff(tried, axis=2) ** 2, axis=-1), axis=(1, 2)))

figure, axes = plt.subplots(figsize=(6, 2.6), layout="tight")
axes.semilogx(sizes, np.asarray(kept).mean(axis=(1, 2)), "o-", markersize=3, label="accepted")
axes.semilogx(sizes, jumps / jumps.max(), "s-", markersize=3, label="mean square jump, of the largest")
axes.set(xlabel="size of a leapfrog step")
axes.legend(fontsize=8)
pictures.show(
    figure,
    "Acceptance falls from one to nearly zero as steps grow. The mean square jump rises, has its top in between, and "
    "falls with the acceptance.",
)
print(f"the best of these is {sizes[jumps.argmax()]:.2f}")

# %% [markdown]
# ## A question from statistics
#
# Eight schools tried a course. Each reports an effect, with a standard error. Do courses work, and do schools differ?
# In the model each school has an effect of its own, drawn from a common normal distribution. Its mean `mu` and spread
# `tau` are unknown, too (D. B. Rubin, 1981). Parameters are a vector of ten numbers; `exp` keeps the spread positive.

# %%
effects = np.array([28.0, 8, -3, 7, -1, 1, 18, 12], "float32")
errors = np.array([15.0, 10, 16, 11, 9, 11, 10, 18], "float32")


def schools(z):
    mu, log_tau, offsets = 5 * z[0], z[1], z[2:]
    each = mu + fnp.exp(log_tau) * offsets
    prior = -0.5 * fnp.sum(z[0] ** 2) - 0.5 * ((log_tau - 1) / 1) ** 2 - 0.5 * fnp.sum(offsets**2)
    return prior - 0.5 * fnp.sum(((effects - each) / errors) ** 2)


@ft.jit
def posterior(key):
    where, how = random.split(key)
    starts = random.normal(where, (CHAINS, 10))
    run = lambda start, key: chain(schools, start, key, 0.25, 12, 400)
    return ft.vmap(run)(starts, random.split(how, CHAINS))


draws, accepted = posterior(random.key(2))
draws = np.asarray(draws[:, 100:])
mu, tau = 5 * draws[..., 0], np.exp(draws[..., 1])
schools_effects = mu[..., None] + tau[..., None] * draws[..., 2:]
print(f"accepted {float(accepted.mean()):.0%}, r-hat of mu {r_hat(mu):.3f}, of tau {r_hat(tau):.3f}")
print(f"mean effect {mu.mean():.1f} ± {mu.std():.1f}; it is positive with probability {np.mean(mu > 0):.0%}")

# %%
figure, axes = plt.subplots(figsize=(7, 2.8), layout="tight")
axes.errorbar(np.arange(8) - 0.12, effects, errors, fmt="o", color="#bbbbbb", label="reported")
flat = schools_effects.reshape(-1, 8)
axes.errorbar(np.arange(8) + 0.12, flat.mean(0), flat.std(0), fmt="o", color="#3b7dd8", label="posterior")
axes.axhline(mu.mean(), color="#3b7dd8", linewidth=0.6, linestyle="--")
axes.set(xticks=range(8), xticklabels="ABCDEFGH", ylabel="effect")
axes.legend(fontsize=8)
pictures.show(
    figure,
    "Effects of eight schools with error bars. The reported ones spread from -3 to 28; the posterior ones are pulled "
    "to the common mean, and have shorter bars.",
)

# %% [markdown]
# The school that reported 28 is believed to have an effect of about 6: its error is large, and the others know better.
#
# Things to try: a mass for each direction, from the variances of a first run; `ft.jit(ft.vmap(sample))` over keys; the
# same with `float64` places (`random.normal(key, shape, "float64")`).
