"""Programs lowered for GPUs, on machines that have none."""

import numpy as np

import functorch_like as ft
from functorch_like.backends import xla
from functorch_like.compiler.lower import lower


def lowered(f, *args):
    """Return a function of arrays lowered for GPUs."""
    return lower(ft.make_jaxpr(f)(*args), name="f", platform="gpu", keep_unused=True)


def text(f, *args):
    """Return its module as text."""
    module = lowered(f, *args).module
    xla.verify(module)
    return xla.module_text(module)


def executed(f, *args):
    """Return its results, computed on the CPU."""
    (device,) = ft.devices("cpu")[:1]
    return [np.asarray(out) for out in lowered(f, *args).compile(device).execute(args)]
