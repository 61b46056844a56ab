"""`jax.config`: JAX's options by name. Those that the package has are set there; the others are kept and do nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, NamedTuple

import functorch_like as ft
from functorch_like import dtypes
from functorch_like.backends import promotion, random
from functorch_like.backends.external_settings import JIT_DISABLED
from functorch_like.backends.xla import client, events, guards
from functorch_like.core import LENIENT_POSITIONS
from functorch_like.debug import finite
from functorch_like.errors import ArgumentError, nearest
from functorch_like.random import generators, key_reuse
from functorch_like.transforms.disable_jit import jit_is_disabled


class Acting(NamedTuple):
    """An option that the package has.

    Attributes:
        read: returns its value in this thread.
        write: sets it in every thread.
        block: returns a `with` block that sets it in this thread.
    """

    read: Callable[[], Any]
    write: Callable[[Any], Any]
    block: Callable[[Any], AbstractContextManager[Any]]


def _write_x64(enable: Any) -> None:
    dtypes._NARROW.set_global(not enable)
    for dtype in _widths(enable):
        ft.set_default_dtype(dtype)


def _widths(enable: Any) -> tuple[str, str]:
    return ("float64", "int64") if enable else ("float32", "int32")


@contextmanager
def _x64(enable: Any = True) -> Generator[None]:
    settings = (dtypes._NARROW, dtypes._DEFAULT_FLOAT, dtypes._DEFAULT_INT)
    values = (not enable, *_widths(enable))
    tokens = [setting.swap_local(value) for setting, value in zip(settings, values, strict=True)]
    try:
        yield
    finally:
        for setting, token in zip(settings, tokens, strict=True):
            setting.restore(token)


def _precision() -> Any:
    return ft.backends.default_matmul_precision  # type: ignore[attr-defined]


def _write_precision(value: Any) -> None:
    ft.backends.default_matmul_precision = value  # type: ignore[attr-defined]


def _watch(name: str) -> Acting:
    return Acting(
        lambda: bool(finite.INSPECTED.value) and getattr(finite.INSPECTED.value, name),
        getattr(ft.debug, f"set_{name}"),
        getattr(ft.debug, name),
    )


def _promotion(name: str, block: Any) -> Acting:
    return Acting(lambda: getattr(promotion, name), lambda value: setattr(promotion, name, str(value)), block)


@contextmanager
def _log_compiles(enable: bool = True) -> Generator[None]:
    with ft.log_compiles(enable):
        yield


def _write_generator(name: str) -> None:
    generators.DEFAULT.set_global(generators.named(name, "jax_default_prng_impl"))


def _default_generator(name: str) -> AbstractContextManager[Any]:
    return generators.DEFAULT.held(generators.named(name, "jax_default_prng_impl"))


def _write_partitionable(partitionable: Any) -> None:
    random.numbers = _numbers(partitionable)


def _numbers(partitionable: Any) -> str:
    return "jax" if partitionable else "jax_unpartitionable"


def _partitionable(partitionable: Any = True) -> AbstractContextManager[Any]:
    return random.flags(numbers=_numbers(partitionable))


def _cpu_devices() -> int:
    return int(os.environ.get("FT_CPU_DEVICES") or -1)


def _write_cpu_devices(count: int) -> None:
    if count > 0:  # read when the first array is made
        os.environ["FT_CPU_DEVICES"] = str(count)


def _checked_keys(check: bool = True) -> AbstractContextManager[Any]:
    return key_reuse.check_key_reuse() if check else nullcontext()


#: Options of JAX that set something here.
ACTING = {
    "jax_enable_x64": Acting(lambda: dtypes.default_float() == dtypes.float64, _write_x64, _x64),
    "jax_debug_nans": _watch("nans"),
    "jax_debug_infs": _watch("infs"),
    "jax_array_garbage_collection_guard": Acting(
        guards.collection_level, guards.set_collection_level, guards.collection_guard
    ),
    "jax_thread_guard": Acting(guards.threads_are_guarded, guards.guard_threads, guards.thread_guard),
    "jax_check_static_indices": Acting(
        lambda: not LENIENT_POSITIONS.value,
        lambda check: LENIENT_POSITIONS.set_global(not check),
        lambda check: LENIENT_POSITIONS.held(not check),
    ),
    "jax_debug_key_reuse": Acting(key_reuse.is_checked, key_reuse.check_from_now_on, _checked_keys),
    "jax_disable_jit": Acting(jit_is_disabled, lambda on: JIT_DISABLED.set_global(bool(on)), ft.disable_jit),
    "jax_numpy_rank_promotion": _promotion("ranks", ft.numpy_rank_promotion),
    "jax_numpy_dtype_promotion": _promotion("dtypes", ft.numpy_dtype_promotion),
    "jax_default_matmul_precision": Acting(_precision, _write_precision, ft.default_matmul_precision),
    "jax_num_cpu_devices": Acting(_cpu_devices, _write_cpu_devices, lambda count: nullcontext()),
    "jax_default_device": Acting(lambda: client.chosen.value, ft.set_default_device, ft.default_device),
    "jax_default_prng_impl": Acting(lambda: generators.DEFAULT.value, _write_generator, _default_generator),
    "jax_threefry_partitionable": Acting(random.are_partitionable, _write_partitionable, _partitionable),
    "jax_log_compiles": Acting(
        lambda: events.LOGGED.value, lambda on: events.LOGGED.set_global(bool(on)), _log_compiles
    ),
}

#: Options that have no effect here, with the values that programs expect to read.
KEPT: dict[str, Any] = {
    "jax_allow_f16_reductions": True,
    "jax_auto_pcast": True,
    "jax_bcoo_cusparse_lowering": False,
    "jax_captured_constants_report_frames": 0,
    "jax_captured_constants_warn_bytes": 2_000_000_000,
    "jax_check_tracer_leaks": False,
    "jax_compilation_cache_check_contents": False,
    "jax_compilation_cache_dir": None,
    "jax_compilation_cache_expect_pgle": False,
    "jax_compilation_cache_include_metadata_in_key": False,
    "jax_compilation_cache_max_size": -1,
    "jax_compiler_detailed_logging_min_ops": 10,
    "jax_compiler_enable_remat_pass": True,
    "jax_cpu_collectives_implementation": "gloo",
    "jax_cpu_enable_async_dispatch": True,
    "jax_cpu_get_global_topology_timeout_minutes": 5,
    "jax_cpu_get_local_topology_timeout_minutes": 2,
    "jax_cuda_visible_devices": "all",
    "jax_custom_vjp3": False,
    "jax_debug_leaked_clients_on_clear_backends": False,
    "jax_debug_log_modules": "",
    "jax_default_dtype_bits": "64",
    "jax_disable_bwd_checks": False,
    "jax_disable_most_optimizations": False,
    "jax_disable_vmap_shmap_error": False,
    "jax_disallow_mesh_context_manager": False,
    "jax_distributed_debug": False,
    "jax_dump_ir_modes": "stablehlo",
    "jax_dump_ir_to": "",
    "jax_dynamic_shapes": False,
    "jax_embedded_constants_max_bytes": 32,
    "jax_enable_checks": False,
    "jax_enable_compilation_cache": True,
    "jax_enable_custom_prng": False,
    "jax_enable_pgle": False,
    "jax_enable_preemption_service": True,
    "jax_enable_recoverability": False,
    "jax_error_checking_behavior_divide": "ignore",
    "jax_error_checking_behavior_nan": "ignore",
    "jax_error_checking_behavior_oob": "ignore",
    "jax_exec_time_optimization_effort": 0.0,
    "jax_experimental_unsafe_xla_runtime_errors": False,
    "jax_explain_cache_misses": False,
    "jax_export_calling_convention_version": 10,
    "jax_export_ignore_forward_compatibility": False,
    "jax_high_dynamic_range_gumbel": False,
    "jax_hlo_source_file_canonicalization_regex": None,
    "jax_include_debug_info_in_dumps": True,
    "jax_include_full_tracebacks_in_locations": True,
    "jax_legacy_prng_key": "allow",
    "jax_log_checkpoint_residuals": False,
    "jax_logging_level": "NOTSET",
    "jax_memory_fitting_effort": 0.0,
    "jax_memory_fitting_level": "O2",
    "jax_mock_gpu_topology": "",
    "jax_mosaic_allow_hlo": False,
    "jax_mutable_array_checks": True,
    "jax_no_execution": False,
    "jax_no_tracing": False,
    "jax_optimization_level": "UNKNOWN",
    "jax_pallas_enable_debug_checks": False,
    "jax_pallas_poison_buffers": False,
    "jax_pallas_use_mosaic_gpu": True,
    "jax_persistent_cache_enable_xla_caches": "none",
    "jax_persistent_cache_min_compile_time_secs": 0.0,
    "jax_persistent_cache_min_entry_size_bytes": 0,
    "jax_pgle_aggregation_percentile": 90,
    "jax_pgle_profiling_runs": 3,
    "jax_pjrt_client_create_options": None,
    "jax_platform_name": "",
    "jax_platforms": None,
    "jax_pmap_no_rank_reduction": True,
    "jax_pmap_shmap_merge": True,
    "jax_pprint_use_color": True,
    "jax_ragged_dot_use_gpu_pallas_triton_lowering": False,
    "jax_ragged_dot_use_ragged_dot_instruction": True,
    "jax_raise_persistent_cache_errors": False,
    "jax_random_seed_offset": 0,
    "jax_refs_to_pins": False,
    "jax_remat3": False,
    "jax_remove_custom_partitioning_ptr_from_cache_key": False,
    "jax_remove_size_one_mesh_axis_from_type": False,
    "jax_scan3": False,
    "jax_send_traceback_to_runtime": "off",
    "jax_serialization_version": 0,
    "jax_share_binary_between_hosts": False,
    "jax_share_binary_between_hosts_timeout_ms": 1_200_000,
    "jax_softmax_custom_jvp": True,
    "jax_source_url_schema": None,
    "jax_spmd_mode": "allow_all",
    "jax_threefry_gpu_kernel_lowering": False,
    "jax_traceback_filtering": "auto",
    "jax_traceback_in_locations_limit": 100,
    "jax_tracer_error_num_traceback_frames": 5,
    "jax_transfer_guard": None,
    "jax_transfer_guard_device_to_device": None,
    "jax_transfer_guard_device_to_host": None,
    "jax_transfer_guard_host_to_device": None,
    "jax_use_direct_linearize": True,
    "jax_use_emit_pipeline_primitive": False,
    "jax_use_magma": "auto",
    "jax_use_shardy_partitioner": True,
    "jax_use_simplified_jaxpr_constants": False,
    "jax_xla_backend": "",
    "jax_xla_profile_version": 0,
}


class Option:
    """One option: `.value` reads it, and `with option(value):` sets it in a block."""

    def __init__(self, name: str) -> None:
        self.name = name

    @property
    def value(self) -> Any:
        """The option's value."""
        return config.read(self.name)

    @contextmanager
    def __call__(self, value: Any = True) -> Generator[None]:
        acting = ACTING.get(self.name)
        if acting is not None:
            with acting.block(value):
                yield
            return
        before = KEPT.get(self.name)
        KEPT[self.name] = value
        try:
            yield
        finally:
            KEPT[self.name] = before


class Config:
    """JAX's options, as attributes `jax_...`."""

    def update(self, name: str, val: Any) -> None:
        """Set an option in every thread.

        Args:
            name: with or without "jax_".
            val: as JAX takes it.

        Raises:
            ArgumentError: for a name that JAX does not have, by this package's list.
        """
        name = _full(name)
        if name in ACTING:
            ACTING[name].write(val)
        else:
            KEPT[name] = val

    def read(self, name: str) -> Any:
        """Return an option's value."""
        name = _full(name)
        return ACTING[name].read() if name in ACTING else KEPT[name]

    @property
    def x64_enabled(self) -> bool:
        """True if 64-bit types are in use: the option `jax_enable_x64`."""
        return self.read("jax_enable_x64")

    @property
    def values(self) -> dict[str, Any]:
        """All options by name."""
        return {name: self.read(name) for name in sorted({*ACTING, *KEPT})}

    def __getattr__(self, name: str) -> Any:
        if name.startswith("jax_") and (name in ACTING or name in KEPT):
            return self.read(name)
        if f"jax_{name}" in ACTING or f"jax_{name}" in KEPT:
            return Option(f"jax_{name}")
        raise AttributeError(f"jax.config has no option {name!r}{nearest(name, {*ACTING, *KEPT})}")

    def config_with_absl(self) -> None:
        """Do nothing: options are not read from flags."""

    def parse_flags_with_absl(self) -> None:
        """Let absl read the flags' defaults, as tests under pytest need, where its own `app` has not."""
        from absl import flags  # pyright: ignore[reportMissingImports]  (who calls this has it)

        if not flags.FLAGS.is_parsed():
            flags.FLAGS(sys.argv[:1], known_only=True)


def _full(name: str) -> str:
    full = name if name.startswith("jax_") else f"jax_{name}"
    if full in ACTING or full in KEPT:
        return full
    raise ArgumentError(f"jax.config has no option {name!r}{nearest(name, {*ACTING, *KEPT})}", fix="check its name")


config = Config()
