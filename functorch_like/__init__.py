"""Composable transformations of NumPy-style functions, compiled by XLA through jaxlib alone.

>>> import functorch_like as ft, functorch_like.numpy as fnp
>>> slope = ft.jit(ft.grad(lambda x: fnp.sum(fnp.sin(x) ** 2)))
>>> per_row = ft.vmap(slope)(fnp.zeros((3, 2)))
>>> per_row.shape
(3, 2)
"""

from __future__ import annotations

from collections.abc import Callable as _Callable
from typing import Any as _Any
from typing import TypeVar as _TypeVar

from functorch_like import collector as _collector
from functorch_like import interrupts as _interrupts  # noqa: F401  # first: it guards the other imports

# isort: split
with _collector.paused():  # collections would take a tenth of the time
    from functorch_like import array_methods as _array_methods
    from functorch_like import backends as _backends
    from functorch_like import caches as _caches
    from functorch_like import debug as _debug
    from functorch_like import dtypes as _dtypes
    from functorch_like.avals import ShapeDtypeStruct as ShapeDtypeStruct
    from functorch_like.backends import precision as _precision
    from functorch_like.calling import api_boundary as _api_boundary
    from functorch_like.calling import lazy_imports as _lazy_imports
    from functorch_like.core import Array as Array
    from functorch_like.dtypes import float0 as float0
    from functorch_like.errors import FtError as FtError
    from functorch_like.foreign import modules as _foreign_modules
    from functorch_like.interpreters import evaluate as _evaluate  # noqa: F401  # it sets `Evaluate.process`

with _lazy_imports.block(__name__):
    from functorch_like import amp as amp
    from functorch_like import backends as backends
    from functorch_like import checkify as checkify
    from functorch_like import checkpoint_policies as checkpoint_policies
    from functorch_like import data as data
    from functorch_like import distributed as distributed
    from functorch_like import experimental as experimental
    from functorch_like import export as export
    from functorch_like import flatten_util as flatten_util
    from functorch_like import image as image
    from functorch_like import io as io
    from functorch_like import lax as lax
    from functorch_like import multihost_utils as multihost_utils
    from functorch_like import nn as nn
    from functorch_like import numpy as numpy
    from functorch_like import ops as ops
    from functorch_like import parallel as parallel
    from functorch_like import profiler as profiler
    from functorch_like import random as random
    from functorch_like import ref as ref
    from functorch_like import sharding as sharding
    from functorch_like import testing as testing
    from functorch_like import tree as tree
    from functorch_like import tree_util as tree_util
    from functorch_like import typing as typing
    from functorch_like.amp.autocasting import autocast as autocast
    from functorch_like.amp.casting import cast_floating as cast_floating
    from functorch_like.arrays.devices import Device as Device
    from functorch_like.arrays.devices import block_until_ready as block_until_ready
    from functorch_like.arrays.devices import default_backend as default_backend
    from functorch_like.arrays.devices import default_device as default_device
    from functorch_like.arrays.devices import device_count as device_count
    from functorch_like.arrays.devices import device_get as device_get
    from functorch_like.arrays.devices import device_put as device_put
    from functorch_like.arrays.devices import devices as devices
    from functorch_like.arrays.devices import live_arrays as live_arrays
    from functorch_like.arrays.devices import local_device_count as local_device_count
    from functorch_like.arrays.devices import local_devices as local_devices
    from functorch_like.arrays.devices import process_count as process_count
    from functorch_like.arrays.devices import process_index as process_index
    from functorch_like.arrays.devices import set_default_device as set_default_device
    from functorch_like.calling.host_callbacks import effects_barrier as effects_barrier
    from functorch_like.calling.host_callbacks import io_callback as io_callback
    from functorch_like.calling.host_callbacks import pure_callback as pure_callback
    from functorch_like.debug.explain import explain as explain
    from functorch_like.debug.log_compiles import log_compiles as log_compiles
    from functorch_like.debug.log_compiles import print_environment_info as print_environment_info
    from functorch_like.debug.named_scope import named_call as named_call
    from functorch_like.debug.named_scope import named_scope as named_scope
    from functorch_like.debug.progress import progress as progress
    from functorch_like.debug.saved_residuals import print_saved_residuals as print_saved_residuals
    from functorch_like.debug.tracer_leaks import check_tracer_leaks as check_tracer_leaks
    from functorch_like.debug.tracer_leaks import checking_leaks as checking_leaks
    from functorch_like.lax import stop_gradient as stop_gradient
    from functorch_like.ref.functions import empty_ref as empty_ref
    from functorch_like.ref.functions import free_ref as free_ref
    from functorch_like.ref.functions import freeze as freeze
    from functorch_like.ref.functions import new_ref as new_ref
    from functorch_like.ref.reference import Ref as Ref
    from functorch_like.sharding.assembly import make_array_from_callback as make_array_from_callback
    from functorch_like.sharding.assembly import (
        make_array_from_single_device_arrays as make_array_from_single_device_arrays,
    )
    from functorch_like.sharding.mesh_context import make_mesh as make_mesh
    from functorch_like.sharding.mesh_context import set_mesh as set_mesh
    from functorch_like.sharding.mesh_context import use_mesh as use_mesh
    from functorch_like.sharding.process_local import (
        make_array_from_process_local_data as make_array_from_process_local_data,
    )
    from functorch_like.transforms.abstract_calls import eval_shape as eval_shape
    from functorch_like.transforms.abstract_calls import make_jaxpr as make_jaxpr
    from functorch_like.transforms.abstract_calls import typeof as typeof
    from functorch_like.transforms.checkpoint import checkpoint as checkpoint
    from functorch_like.transforms.checkpoint import checkpoint_name as checkpoint_name
    from functorch_like.transforms.checkpoint import remat as remat
    from functorch_like.transforms.closure_convert import closure_convert as closure_convert
    from functorch_like.transforms.compile_time_eval import ensure_compile_time_eval as ensure_compile_time_eval
    from functorch_like.transforms.custom.custom_gradient import custom_gradient as custom_gradient
    from functorch_like.transforms.custom.custom_jvp import custom_jvp as custom_jvp
    from functorch_like.transforms.custom.custom_vjp import custom_vjp as custom_vjp
    from functorch_like.transforms.disable_jit import disable_jit as disable_jit
    from functorch_like.transforms.functional_call import functional_call as functional_call
    from functorch_like.transforms.functional_call import functionalize as functionalize
    from functorch_like.transforms.functional_call import named_parameters as named_parameters
    from functorch_like.transforms.functional_call import stack_state as stack_state
    from functorch_like.transforms.functional_call import unstack_state as unstack_state
    from functorch_like.transforms.grad import grad as grad
    from functorch_like.transforms.grad import grad_and_value as grad_and_value
    from functorch_like.transforms.grad import value_and_grad as value_and_grad
    from functorch_like.transforms.hessian_products import gnvp as gnvp
    from functorch_like.transforms.hessian_products import hvp as hvp
    from functorch_like.transforms.jacobians import hessian as hessian
    from functorch_like.transforms.jacobians import jacfwd as jacfwd
    from functorch_like.transforms.jacobians import jacobian as jacobian
    from functorch_like.transforms.jacobians import jacrev as jacrev
    from functorch_like.transforms.jit import jit as jit
    from functorch_like.transforms.jvp_vjp import fwd_and_bwd as fwd_and_bwd
    from functorch_like.transforms.jvp_vjp import jvp as jvp
    from functorch_like.transforms.jvp_vjp import linearize as linearize
    from functorch_like.transforms.jvp_vjp import vjp as vjp
    from functorch_like.transforms.linear_transpose import linear_transpose as linear_transpose
    from functorch_like.transforms.pmap import pmap as pmap
    from functorch_like.transforms.shard_map import shard_map as shard_map
    from functorch_like.transforms.smap import smap as smap
    from functorch_like.transforms.sparse_jacobian import sparse_jacobian as sparse_jacobian
    from functorch_like.transforms.taylor.jet import jet as jet
    from functorch_like.transforms.user_context import make_user_context as make_user_context
    from functorch_like.transforms.vmap import vmap as vmap

with _lazy_imports.block(__name__, wrap=False):
    from functorch_like import ad as ad
    from functorch_like import custom_batching as custom_batching
    from functorch_like import custom_derivatives as custom_derivatives
    from functorch_like import debug as debug
    from functorch_like import errors as errors
    from functorch_like import extend as extend
    from functorch_like import ffi as ffi
    from functorch_like import inspect as inspect
    from functorch_like import primitives as primitives
    from functorch_like import scipy as scipy

_api_boundary.wrap_public_function(ShapeDtypeStruct, __name__)

_F = _TypeVar("_F", bound=_Callable[..., _Any])


# Files on floors below `api_boundary` cannot import it, so their functions are wrapped here.
def _public(fun: _F) -> _F:
    return _api_boundary.wrap_public_function(fun, __name__, fun.__name__)


clear_caches = _public(_caches.clear_caches)
default_matmul_precision = _public(_precision.default_matmul_precision)
get_float32_matmul_precision = _public(_precision.get_float32_matmul_precision)
numpy_dtype_promotion = _public(_backends.promotion.numpy_dtype_promotion)
numpy_rank_promotion = _public(_backends.promotion.numpy_rank_promotion)
set_default_dtype = _public(_dtypes.set_default_dtype)
set_float32_matmul_precision = _public(_precision.set_float32_matmul_precision)

__version__ = "0.1.0"

debug_nans, debug_infs = _debug.nans, _debug.infs  # JAX's names

_array_methods.install()
_foreign_modules.install()
