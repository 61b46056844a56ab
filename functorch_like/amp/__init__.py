"""Mixed precision: products in bfloat16 or float16, loss scaling, and conversion of the floats of a pytree.

>>> import functorch_like as ft, functorch_like.numpy as fnp
>>> loss = lambda w, x: fnp.mean(fnp.tanh(x @ w) ** 2)
>>> gradient = ft.jit(ft.grad(ft.autocast(loss)))(fnp.ones((3, 2)), fnp.ones((4, 3)))
>>> gradient.dtype.name
'float32'
"""

from __future__ import annotations

from functorch_like.calling import lazy_imports as _lazy_imports

with _lazy_imports.block(__name__):
    from functorch_like.amp.autocasting import autocast as autocast
    from functorch_like.amp.casting import cast_floating as cast_floating
    from functorch_like.amp.loss_scaling import LossScale as LossScale
    from functorch_like.amp.loss_scaling import Scaled as Scaled
    from functorch_like.amp.loss_scaling import apply_if_finite as apply_if_finite
    from functorch_like.amp.loss_scaling import loss_scale as loss_scale
    from functorch_like.amp.loss_scaling import scaled_value_and_grad as scaled_value_and_grad
