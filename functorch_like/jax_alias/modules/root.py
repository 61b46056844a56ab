"""`jax` itself: settings, versions, and functions that take options about devices."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Generator, Sequence
from contextlib import ExitStack, contextmanager, nullcontext, suppress
from typing import Any

import functorch_like as ft
from functorch_like import checkpoint_policies
from functorch_like.arrays.devices import Device
from functorch_like.backends.xla.guard import check_jaxlib
from functorch_like.calling.call_signature import FlatCall, resolve_argnums
from functorch_like.calling.traced_function import check_callable
from functorch_like.core import Tracer, named_axis
from functorch_like.ir import trace_constants
from functorch_like.jax_alias.modules import hi_types, keys_in_functions, programs, vmappables
from functorch_like.jax_alias.modules.arrays import Array
from functorch_like.jax_alias.modules.callbacks import pure_callback as pure_callback
from functorch_like.jax_alias.modules.configuration import config
from functorch_like.jax_alias.modules.debug_info import debug_info, result_paths
from functorch_like.jax_alias.modules.name_stack import named_scope
from functorch_like.jax_alias.modules.sharding import P, concrete, make_mesh, reshard, set_mesh, without_formats
from functorch_like.primitives.higher_order.call import CallSpec
from functorch_like.random.typed_keys import is_keys
from functorch_like.sharding import NamedSharding, Shard
from functorch_like.transforms.jit_stages import Traced

__all__ = [
    "Array",
    "Device",
    "NamedSharding",
    "P",
    "Shard",
    "checkpoint_policies",
    "config",
    "device_put",
    "enable_x64",
    "jit",
    "make_mesh",
    "named_scope",
    "pure_callback",
    "reshard",
    "set_mesh",
]  # fmt: skip

#: The version of JAX that the installed jaxlib belongs to.
__version_info__ = tuple(check_jaxlib()[:3])
__version__ = ".".join(map(str, __version_info__))
__backend__ = "functorch_like"


def jit(
    fun: Callable[..., Any] | None = None,
    /,
    *,
    device: Any = None,
    backend: str | None = None,
    abstracted_axes: Any = None,
    inline: Any = False,
    **options: Any,
) -> Any:
    """`ft.jit`, with options that have no effect."""
    if fun is None:
        return lambda f: jit(f, inline=inline, **options)
    for name in ("in_shardings", "out_shardings"):
        if name in options:
            options[name] = without_formats(options[name])
    compiled = ft.jit(fun, inline=inline is True, **options)
    with suppress(TypeError, ValueError, AttributeError):  # builtins have no signature
        compiled.__signature__ = inspect.signature(fun)  # type: ignore[attr-defined]
    return compiled


def ds(start: Any, size: int | None = None, stride: int = 1) -> Any:
    """Return an index of `size` elements from `start` on, which may be traced; `ds(size)` begins at 0."""
    if start is None:
        return slice(None)
    if size is None:
        return slice(0, start * stride, stride)
    if isinstance(start, int):
        return slice(start, start + size * stride, stride)
    return start + stride * ft.numpy.arange(size, dtype=ft.numpy.result_type(start))


def make_jaxpr(
    fun: Callable[..., Any],
    static_argnums: Any = (),
    axis_env: Sequence[tuple[Any, int]] | None = None,
    return_shape: bool = False,
    abstracted_axes: Any = None,
) -> Callable[..., Any]:
    """Return a function of `fun`'s arguments that records `fun` and returns JAX's view of the program."""
    check_callable(fun, "make_jaxpr")

    @functools.wraps(fun)
    def made(*args: Any, **kwargs: Any) -> Any:
        name = getattr(fun, "__name__", "fun")
        call = FlatCall(resolve_argnums(fun, static_argnums, None), args, kwargs, abstract=True)
        with ExitStack() as stack:
            stack.enter_context(trace_constants.earlier_are_inputs())
            for axis_name, size in axis_env or ():
                stack.enter_context(named_axis(axis_name, size))
            traced = Traced(fun, call, CallSpec(name), origin="traced by make_jaxpr", trace_name=f"make_jaxpr({name})")
        names = debug_info("jit", fun, args, kwargs, static_argnums=static_argnums)
        names = names._replace(result_paths=result_paths(traced.out_info))
        closed = programs.view(traced.jaxpr, traced.consts, names)
        results = ft.tree.leaves(traced.out_info, is_leaf=is_keys)
        if any(map(is_keys, results)):
            closed.jaxpr.key_impls = tuple(x._impl if is_keys(x) else None for x in results)
        return (closed, traced.out_info) if return_shape else closed

    return made


@functools.wraps(ft.eval_shape)
def eval_shape(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    """`ft.eval_shape`; typed keys among the results are described by their shape and dtype, too."""
    return keys_in_functions.described(ft.eval_shape(fun, *args, **kwargs))


@functools.wraps(ft.vmap)
def vmap(fun: Callable[..., Any], *args: Any, **options: Any) -> Any:
    """`ft.vmap`; if classes are registered by `batching.register_vmappable`, it maps over their values, too."""
    if vmappables.TYPES:
        return vmappables.vmap(fun, *args, **options)
    return ft.vmap(fun, *args, **options)


def device_put(x: Any, device: Any = None, *, src: Any = None, donate: Any = False, may_alias: Any = None) -> Any:
    """`ft.device_put`, with options that have no effect."""
    return ft.device_put(x, concrete(device)) if device is not None else ft.device_put(x)


def device_put_replicated(x: Any, devices: Sequence[Any]) -> Any:
    """Return arrays with a leading axis of one copy for each device."""
    return ft.tree.map(lambda leaf: ft.numpy.stack([leaf] * len(devices)), x)


def device_put_sharded(shards: Sequence[Any], devices: Sequence[Any]) -> Any:
    """Return arrays with a leading axis that holds the shard of each device."""
    return ft.tree.map(lambda *leaves: ft.numpy.stack(leaves), *shards)


def process_indices(backend: str | None = None) -> list[int]:
    """Return the indices of all processes."""
    return list(range(ft.process_count()))


host_ids = process_indices


def host_id(backend: str | None = None) -> int:
    """Return the index of this process."""
    return ft.process_index()


host_count = ft.process_count


def local_devices(
    process_index: int | None = None, backend: str | None = None, host_id: int | None = None
) -> list[Device]:
    """Return the devices of a process, by default this one; `host_id` is an older name of its index."""
    index = host_id if process_index is None else process_index
    return [d for d in ft.devices(backend) if d.process_index == (ft.process_index() if index is None else index)]


def copy_to_host_async(x: Any) -> Any:
    """Return `x`: copies start when a value is read."""
    return x


def _option(name: str) -> Callable[..., Any]:
    return config.__getattr__(name)


enable_x64 = _option("enable_x64")
enable_checks = _option("enable_checks")
enable_custom_prng = _option("enable_custom_prng")
default_prng_impl = _option("default_prng_impl")
legacy_prng_key = _option("legacy_prng_key")
threefry_partitionable = _option("threefry_partitionable")
softmax_custom_jvp = _option("softmax_custom_jvp")
debug_key_reuse = _option("debug_key_reuse")
no_execution = _option("no_execution")
explain_cache_misses = _option("explain_cache_misses")
numpy_rank_promotion = _option("numpy_rank_promotion")
numpy_dtype_promotion = _option("numpy_dtype_promotion")
remove_size_one_mesh_axis_from_type = _option("remove_size_one_mesh_axis_from_type")
allow_f16_reductions = _option("allow_f16_reductions")
array_garbage_collection_guard = _option("array_garbage_collection_guard")
auto_pcast = _option("auto_pcast")
thread_guard = _option("thread_guard")


@contextmanager
def transfer_guard(level: str) -> Generator[None]:
    """Do nothing: transfers are not watched."""
    yield


transfer_guard_host_to_device = transfer_guard_device_to_host = transfer_guard_device_to_device = transfer_guard


def no_tracing(enable: bool = True) -> Any:
    """Return a `with` block without effect."""
    return nullcontext()


def fwd_and_bwd(*args: Any, **kwargs: Any) -> Any:
    """Call `ft.fwd_and_bwd`."""
    return ft.fwd_and_bwd(*args, **kwargs)


def device_get(x: Any) -> Any:
    """Copy a pytree of arrays to the host; traced values stay as they are."""
    return ft.tree.map(lambda leaf: leaf if isinstance(leaf, Tracer) else ft.device_get(leaf), x)


def block_until_ready(x: Any) -> Any:
    """Return `x` once its arrays are computed; other leaves are ignored."""
    for leaf in ft.tree.leaves(x):
        if isinstance(leaf, ft.Array):
            leaf.block_until_ready()
    return x


def typeof(x: Any) -> Any:
    """Return `ft.typeof(x)`; for typed keys, their shape and dtype; for values of hi types, these."""
    if is_keys(x):
        return x.dtype.aval_of_shape(x.shape)
    return hi_types.typeof(x) if hi_types.is_high_value(x) else ft.typeof(x)
