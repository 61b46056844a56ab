"""Per-sample gradients: `vmap(grad(loss))`, where a framework without `vmap` would loop over the images."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import tree
from functorch_like.examples.models import Model, Params
from functorch_like.examples.training import loss_of_one


def per_sample_gradients(model: Model) -> Callable[..., Params]:
    """The function `(params, images, labels) -> gradients`, each with a leading axis over the images."""
    return ft.vmap(ft.grad(loss_of_one(model)), in_axes=(None, 0, 0))


def gradient_norms(model: Model) -> Callable[..., Any]:
    """The function `(params, images, labels) -> norms`, with the norm of each image's own gradient."""
    gradients = per_sample_gradients(model)

    def norms(params: Params, images: Any, labels: Any) -> Any:
        squares = [fnp.sum(g * g, axis=tuple(range(1, g.ndim))) for g in tree.leaves(gradients(params, images, labels))]
        return fnp.sqrt(sum(squares))

    return norms
