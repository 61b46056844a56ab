"""Composable transformations of NumPy-style functions, compiled by XLA through jaxlib alone.

>>> import functorch_like as ft, functorch_like.numpy as fnp
>>> slope = ft.jit(ft.grad(lambda x: fnp.sum(fnp.sin(x) ** 2)))
>>> per_row = ft.vmap(slope)(fnp.zeros((3, 2)))
>>> per_row.shape
(3, 2)
"""

from __future__ import annotations

import importlib as _importlib
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from functorch_like import array_methods as _array_methods
from functorch_like import backends as backends
from functorch_like import boundary as _boundary
from functorch_like import errors as errors
from functorch_like import extend as extend
from functorch_like import ffi as ffi
from functorch_like import lax as lax
from functorch_like import nn as nn
from functorch_like import numpy as numpy
from functorch_like import primitives as primitives
from functorch_like import random as random
from functorch_like import scipy as scipy
from functorch_like import tree as tree
from functorch_like.avals import ShapeDtypeStruct as ShapeDtypeStruct
from functorch_like.core import Array as Array
from functorch_like.devices import block_until_ready as block_until_ready
from functorch_like.devices import default_backend as default_backend
from functorch_like.devices import device_get as device_get
from functorch_like.devices import device_put as device_put
from functorch_like.devices import devices as devices
from functorch_like.differentials import jvp as jvp
from functorch_like.differentials import linearize as linearize
from functorch_like.differentials import vjp as vjp
from functorch_like.dtypes import float0 as float0
from functorch_like.dtypes import set_default_dtype as set_default_dtype
from functorch_like.errors import FtError as FtError
from functorch_like.grad import grad as grad
from functorch_like.grad import grad_and_value as grad_and_value
from functorch_like.grad import value_and_grad as value_and_grad
from functorch_like.jit import disable_jit as disable_jit
from functorch_like.jit import eval_shape as eval_shape
from functorch_like.jit import jit as jit
from functorch_like.jit import make_jaxpr as make_jaxpr
from functorch_like.lax import stop_gradient as stop_gradient
from functorch_like.vmap import vmap as vmap

if _TYPE_CHECKING:
    from functorch_like import testing as testing

__version__ = "0.1.0"

_LATE = ("testing",)  # stands above this file, and is imported when it is asked for


def __getattr__(name: str) -> _Any:
    if name in _LATE:
        return _importlib.import_module(f"{__name__}.{name}")
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATE})


_array_methods.install()
for _module in (tree, numpy, numpy.fft, numpy.linalg, lax, lax.linalg, nn, random, scipy.special):
    _boundary.seal(_module)
del _module
