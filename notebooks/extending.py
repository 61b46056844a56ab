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
# # Your own primitive, your own interpreter
#
# Two kinds of things make up this package. **Primitives** are operations: `add`, `sin`, `dot_general`. Each is a record
# of rules. **Interpreters** are what transformations are made of: each gives primitives another meaning. `grad` asks a
# primitive for its derivative, `vmap` for its batch rule, `jit` records it.
#
# So a new operation is a record, and every transformation takes it. A new transformation is a class with one method,
# which all operations go through. This notebook makes one of each, with `functorch_like.extend`.

# %%
import matplotlib.pyplot as plt
import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import extend
from functorch_like.examples import pictures

# %% [markdown]
# ## A primitive: Lambert's W
#
# $W(x)$ is the number whose product with its own exponential is $x$: $W e^W = x$. NumPy does not have it. Halley's
# iteration computes it. It has a simple derivative, $W' = 1/(x + e^{W})$, which differentiating the iteration would not
# find.
#
# These are its rules. `shape` says what comes out, from shapes and dtypes alone. Errors begin here.


# %%
def w_shape(x):
    if x.dtype.kind != "f":
        raise ft.errors.DtypeError(f"lambert_w of {x!r}", fix="convert it to a float")
    return x


# %% [markdown]
# `ref` is the meaning, in NumPy. It is what tests compare with.


# %%
def w_ref(x):
    w = np.log1p(x)
    for _ in range(8):
        e = np.exp(w)
        f = w * e - x
        w = w - f / (e * (w + 1) - (w + 2) * f / (2 * w + 2))
    return w.astype(x.dtype)


# %% [markdown]
# `lower` writes StableHLO, the language that XLA compiles. `emitter.op(name, operands, types)` adds an operation, and
# `emitter.full(number, type)` a constant. Two helpers keep it readable.


# %%
def w_lower(emitter, x):
    aval = emitter.ins[0]

    def op(name, *operands):
        return emitter.op(f"stablehlo.{name}", list(operands), emitter.outs)

    def number(value):
        return emitter.full(value, aval)

    one, two = number(1), number(2)
    w = op("log_plus_one", x)
    for _ in range(8):
        e = op("exponential", w)
        f = op("subtract", op("multiply", w, e), x)
        slope = op("multiply", e, op("add", w, one))
        bend = op("divide", op("multiply", op("add", w, two), f), op("multiply", two, op("add", w, one)))
        w = op("subtract", w, op("divide", f, op("subtract", slope, bend)))
    return w


# %% [markdown]
# `jvp` is the derivative: from primals and tangents to the result and its tangent, in terms of other operations. It is
# all that `grad` needs, too; `transpose` is for operations that are linear, and this one is not. Rules may call the
# primitive, so second derivatives follow.


# %%
def w_jvp(primals, tangents):
    (x,), (dx,) = primals, tangents
    w = lambert_w(x)
    return w, dx / (x + fnp.exp(w))


# %% [markdown]
# `batch` says what a `vmap` does. An operation that works on each element alone does not mind one more axis: it gives
# the position of the axis back. `samples` are operands for tests. A rule that is missing says why, and what to do
# instead; that becomes the error message.


# %%
def w_batch(axis, args, dims):
    return lambert_w(*args), dims[0]


lambert_w = extend.Primitive(
    "lambert_w",
    shape=w_shape,
    ref=w_ref,
    lower=w_lower,
    jvp=w_jvp,
    transpose=extend.NotDefined("lambert_w is not linear; differentiate it by its jvp rule"),
    batch=w_batch,
    samples=lambda: [extend.SampleInput((extend.ShapedArray((3,), "float32"),))],
    kind="elementwise",
)

# %% [markdown]
# That is all. Every transformation takes it:

# %%
x = fnp.asarray([0.5, 1.0, np.e])
slope = ft.grad(lambda x: lambert_w(x))
print("value        ", lambert_w(x))
print("jit          ", ft.jit(lambert_w)(x))
print("vmap(grad)   ", ft.vmap(slope)(x))
print("its own check", lambert_w(x) * fnp.exp(lambert_w(x)))
print(ft.make_jaxpr(ft.vmap(ft.grad(slope)))(x))

# %% [markdown]
# The kit for tests compares derivatives with differences, and batches with loops. SciPy has the function, too.

# %%
import scipy.special

from functorch_like import testing

points = np.geomspace(0.01, 50, 40)
testing.check_grads(lambert_w, (points[::8],), order=2)
testing.check_vmap(lambert_w, (points,))
testing.assert_allclose(lambert_w(points), scipy.special.lambertw(points).real)

line = np.linspace(0, 20, 200)
figure, axes = plt.subplots(figsize=(6, 2.4), layout="tight")
axes.plot(line, lambert_w(line), label="lambert_w")
axes.plot(line, ft.vmap(slope)(line), label="vmap(grad(lambert_w))")
axes.plot(line[::20], scipy.special.lambertw(line[::20]).real, "k.", label="SciPy")
axes.legend(fontsize=8)
pictures.show(
    figure, "Lambert's W rises like a logarithm, SciPy's values lie on it, and its slope falls from one to near zero."
)

# %% [markdown]
# Wrong operands get the error of the rule, completed with the operation, the transformations and the line:

# %%
try:
    ft.vmap(lambert_w)(np.arange(3))
except ft.FtError as e:
    print(e)

# %% [markdown]
# ## An interpreter: bounds
#
# Now a transformation. Given intervals for the arguments of a function, it finds an interval that holds all results.
# That is *interval arithmetic*: each primitive gets another meaning, on pairs of a lower and an upper bound.
#
# A few primitives have rules of their own. Functions that rise have one in common: they keep the order of bounds.


# %%
def corners(operation, a, b):
    values = fnp.stack([operation(p, q) for p in a for q in b])
    return values.min(axis=0), values.max(axis=0)


def square(a):
    high = fnp.maximum(a[0] ** 2, a[1] ** 2)
    return fnp.where((a[0] <= 0) & (a[1] >= 0), 0.0, fnp.minimum(a[0] ** 2, a[1] ** 2)), high


def sine(a):
    """Bounds of sin: those at the ends, and 1 or -1 where a peak or a valley lies between."""
    low, high = fnp.minimum(fnp.sin(a[0]), fnp.sin(a[1])), fnp.maximum(fnp.sin(a[0]), fnp.sin(a[1]))
    turns = lambda at: fnp.floor((a[1] - at) / (2 * np.pi)) > fnp.floor((a[0] - at) / (2 * np.pi))
    return fnp.where(turns(-np.pi / 2), -1.0, low), fnp.where(turns(np.pi / 2), 1.0, high)


RULES = {
    "add": lambda a, b: (a[0] + b[0], a[1] + b[1]),
    "sub": lambda a, b: (a[0] - b[1], a[1] - b[0]),
    "neg": lambda a: (-a[1], -a[0]),
    "mul": lambda a, b: corners(fnp.multiply, a, b),
    "sin": sine,
    "square": square,
}
RISING = {"exp", "tanh", "log1p", "sqrt", "lambert_w", "reshape", "broadcast_in_dim", "convert_element_type"}

# %% [markdown]
# The interpreter is two classes. A `Tracer` stands for a value; here it holds two bounds. A `Trace` has a method
# `process`, which is called for each primitive. It takes its own tracers apart, computes with what is in them, and
# wraps the result. Its computations run under its `parent`, the interpreter around it. Values that are no tracers of
# this trace are constants: both bounds are the same.


# %%
class Bounded(extend.Tracer):
    __slots__ = ("high", "low")

    def __init__(self, trace, low, high):
        self._trace, self.low, self.high = trace, low, high

    aval = property(lambda self: extend.aval_of(self.low))


class Bounds(extend.Trace):
    __slots__ = ()

    def process(self, prim, args, params):
        if "jaxpr" in params:  # a function that jit compiled: look inside
            out = extend.evaluate_jaxpr(params["jaxpr"], args)
            return out if prim.multiple_results else out[0]
        pairs = [(a.low, a.high) if extend.mine(self, a) else (a, a) for a in args]
        with extend.set_current_trace(self.parent):
            if prim.name in RISING:
                low, high = (prim(*side, **params) for side in zip(*pairs, strict=True))
            elif prim.name in RULES and not params:
                low, high = RULES[prim.name](*pairs)
            else:
                raise NotImplementedError(f"bounds of {prim.name} with {params}: add it to RULES")
        return Bounded(self, low, high)


def bounds(fun):
    """A function of pairs (low, high) that gives bounds of what `fun` gives within them."""

    def bounded(*pairs):
        with extend.new_trace(Bounds("bounds", extend.current_trace())) as trace:
            out = fun(*[Bounded(trace, low, high) for low, high in pairs])
        return out.low, out.high

    return bounded


# %% [markdown]
# It needs no more of the function below than the primitives in it. The primitive from above is one of them.


# %%
def wiggle(x):
    return fnp.sin(3 * x) + 0.5 * lambert_w(fnp.exp(x)) - fnp.square(x) / 8


RULES["div"] = lambda a, b: corners(fnp.divide, a, b)  # right as long as b does not hold 0
bounds(wiggle)((0.0, 0.5))

# %% [markdown]
# It computes by the package's own operations, so other transformations take it. `vmap` gives the bounds on many
# intervals, and `jit` compiles that. The narrower the intervals, the tighter the boxes.

# %%
boxes = ft.jit(ft.vmap(bounds(wiggle)))
line = np.linspace(-3, 4, 500, dtype="float32")

figure, axes = plt.subplots(1, 2, figsize=(9, 2.6), sharey=True, layout="tight")
for ax, count in zip(axes, (14, 100), strict=True):
    edges = np.linspace(-3, 4, count + 1, dtype="float32")
    low, high = boxes((edges[:-1], edges[1:]))
    ax.bar(
        edges[:-1], high - low, np.diff(edges), low, align="edge", color="#cfe0f5", edgecolor="#9db8dd", linewidth=0.5
    )
    ax.plot(line, ft.vmap(wiggle)(line), color="#d8633b", linewidth=1)
    ax.set(title=f"{count} intervals", ylim=(-2.6, 1.7))
    assert np.all(np.asarray(low) <= np.asarray(ft.vmap(wiggle)(edges[:-1])) + 1e-5)
pictures.show(
    figure,
    "A wavy curve inside boxes that bound it on each interval: with 14 intervals the boxes are loose, with 100 they "
    "hug the curve.",
)

# %% [markdown]
# The other order works as well: bounds of a *derivative*. Where the upper bound is below zero, the function certainly
# falls. No sample of points could tell that.

# %%
RULES |= {"cos": lambda a: sine((a[0] + np.pi / 2, a[1] + np.pi / 2))}
edges = np.linspace(-3, 4, 101, dtype="float32")
low, high = ft.jit(ft.vmap(bounds(ft.grad(wiggle))))((edges[:-1], edges[1:]))
rises, falls = np.asarray(low) > 0, np.asarray(high) < 0

figure, axes = plt.subplots(figsize=(7, 2.4), layout="tight")
values = np.asarray(ft.vmap(wiggle)(line))
axes.plot(line, values, color="#333333", linewidth=1)
for which, color, name in (
    (rises, "#bfe3b4", "rises"),
    (falls, "#f5cfcf", "falls"),
    (~rises & ~falls, "#eeeeee", "not known"),
):
    for i in np.flatnonzero(which):
        axes.axvspan(
            edges[i], edges[i + 1], color=color, linewidth=0, label=name if i == np.flatnonzero(which)[0] else None
        )
axes.set(ylim=(-2.6, 1.6), xlim=(-3, 4))
axes.legend(fontsize=7, loc="lower center", ncols=3)
pictures.show(
    figure,
    "The same curve over coloured bands: green where it is proved to rise, red where it is proved to fall, and narrow "
    "grey bands around its peaks and valleys.",
)

# %% [markdown]
# A primitive without a rule is an error that names it, because this interpreter raises one:

# %%
try:
    bounds(fnp.cbrt)((1.0, 2.0))
except NotImplementedError as e:
    print(e)

# %% [markdown]
# The other way to write an interpreter is over a jaxpr, as a loop over `equations`. That is enough if nothing has to be
# combined with it. Here it counts how often each primitive is applied:

# %%
from collections import Counter

jaxpr = ft.make_jaxpr(ft.grad(wiggle))(1.0)
Counter(equation.prim.name for equation in jaxpr.equations).most_common(4)

# %% [markdown]
# A name belongs to one primitive. To run the cell that makes it once more, forget the old one first:

# %%
extend.forget(lambert_w)

# %% [markdown]
# `python -m functorch_like.primitives sin` prints the rules of a primitive of the package. `docs/architecture.md`
# follows a call through the interpreters.
