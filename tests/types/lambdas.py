"""A user's program of lambdas, whose parameters have no types."""

import numpy as np

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import lax

x = fnp.asarray(np.arange(3.0))
print(ft.grad(lambda p: (p**2).sum())(x), ft.grad(lambda p: p["w"] @ p["w"] + p["b"])({"w": x, "b": 1.0}))
print(ft.value_and_grad(lambda p, q: (p * q).sum(), argnums=1)(x, x), ft.hessian(lambda p: (p**3).sum())(x).shape)
print(ft.grad(lambda p: ((p**2).sum(), -p), has_aux=True)(x), ft.jit(ft.vmap(lambda v: v / 2))(x).dtype)
print(ft.checkpoint(lambda p: p.T @ p)(x), ft.vjp(lambda p: p * 2, x)[0], ft.jvp(lambda p: p * 2, (x,), (x,)))
print(lax.cond(True, lambda p: p + 1, lambda p: p * 2, x), lax.switch(1, [lambda p: p + 1, lambda p: p], x).shape)
print(lax.map(lambda v: v**2, x).shape, ft.tree.map(lambda v: v * 2, {"a": x})["a"].sum())
