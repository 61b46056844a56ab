"""NVIDIA's GPUs: their presence, their properties, and settings of programs for them."""

from __future__ import annotations

from typing import Any, NamedTuple

from functorch_like.backends import xla
from functorch_like.backends.flag_blocks import Block, Group, Module, adopt

# PyTorch has the settings of attention here.
from functorch_like.backends.mha import SDPAParams as SDPAParams
from functorch_like.backends.mha import can_use_cudnn_attention as can_use_cudnn_attention
from functorch_like.backends.mha import can_use_efficient_attention as can_use_efficient_attention
from functorch_like.backends.mha import can_use_flash_attention as can_use_flash_attention
from functorch_like.backends.mha import cudnn_sdp_enabled as cudnn_sdp_enabled
from functorch_like.backends.mha import enable_cudnn_sdp as enable_cudnn_sdp
from functorch_like.backends.mha import enable_flash_sdp as enable_flash_sdp
from functorch_like.backends.mha import enable_math_sdp as enable_math_sdp
from functorch_like.backends.mha import enable_mem_efficient_sdp as enable_mem_efficient_sdp
from functorch_like.backends.mha import flash_sdp_enabled as flash_sdp_enabled
from functorch_like.backends.mha import math_sdp_enabled as math_sdp_enabled
from functorch_like.backends.mha import mem_efficient_sdp_enabled as mem_efficient_sdp_enabled
from functorch_like.backends.precision_names import FP32
from functorch_like.backends.settings import Alias, AtStart, Setting
from functorch_like.backends.validators import Kind, boolean, one_of
from functorch_like.backends.xla import cuda as _client
from functorch_like.errors import DeviceError, UnsupportedError

_ELSEWHERE = {"cpu": "it is about GPUs; backends.mkldnn.matmul.fp32_precision and backends.fp32_precision act on CPUs"}


class Matmul(Group, name="cuda.matmul"):
    """Products of matrices on GPUs: `backends.cuda.matmul`."""

    __slots__ = ()

    fp32_precision = Setting(
        "none",
        one_of("none", *FP32),
        "Precision of products of float32 matrices on GPUs.\n\n"
        "'ieee': float32. 'tf32': operands rounded to 10 bits of mantissa, if the GPU can, eight times faster. 'bf16': "
        "rounded to 7 bits. 'bf16x3', 'bf16x6', 'bf16x9': sums of three, six or nine products of bfloat16 parts; "
        "six are about as exact as float32. XLA has no kernel for nine, and float32 is used in their place. 'none': as "
        "`backends.fp32_precision` says.",
        changes="StableHLO: precision_config and algorithm of dot_general",
        elsewhere=_ELSEWHERE,
    )
    allow_tf32 = Alias(
        fp32_precision,
        boolean,
        "Whether products of float32 matrices may use TF32: `fp32_precision` is 'tf32', or else 'ieee'.",
        read=lambda value: value == "tf32",
        write=lambda allowed: "tf32" if allowed else "ieee",
    )
    allow_bf16_reduced_precision_reduction = Setting(
        False,
        boolean,
        "Whether partial sums of products of float16 or bfloat16 may be added in that type.\n\n"
        "PyTorch lets GPUs do so. XLA adds them in float32, and has no option for it: True is accepted, for "
        "programs that set it, and changes nothing.",
        changes="nothing",
        elsewhere=dict.fromkeys(("cpu", "gpu"), "XLA keeps partial sums in float32 always"),
        in_key=False,
    )
    allow_fp16_reduced_precision_reduction = Alias(
        allow_bf16_reduced_precision_reduction,
        boolean,
        "The same setting as `allow_bf16_reduced_precision_reduction`.",
        read=lambda allowed: allowed,
        write=lambda allowed: allowed,
    )


matmul = Matmul()


# --------------------------------------------------------------------------------------------------- memory, libraries
def _fraction(value: Any) -> float | None:
    if value is None or value == "":
        return None
    fraction = float(value)
    if not 0 < fraction <= 1:
        raise ValueError
    return fraction


def _either(value: Any) -> bool | None:
    return None if value in (None, "") else boolean.parse(value) if isinstance(value, str) else boolean.check(value)


_CPU = {"cpu": "it is about GPUs"}
_LINALG = "XLA's GPU programs call cuSOLVER and cuBLAS, and MAGMA for eig where it is installed; there is no choice"


class _Settings(Module, name="cuda"):
    preallocate = AtStart(
        None,
        Kind("True, False, or None (XLA's default: True)", _either),
        "Whether the client preallocates its share of the GPU's memory, when the first array is made.",
        changes="how the GPU's client is made",
        elsewhere=_CPU,
    )
    memory_fraction = AtStart(
        None,
        Kind("a number above 0 and up to 1, or None (XLA's default: 0.75)", _fraction),
        "Share of the GPU's memory that the client may take.",
        changes="how the GPU's client is made",
        elsewhere=_CPU,
    )


preallocate: bool | None
memory_fraction: float | None
_client.on_memory(lambda: (_Settings.preallocate.value, _Settings.memory_fraction.value))


def preferred_linalg_library(backend: str | None = None) -> str:
    """Return the library that linear algebra on GPUs calls, cuSOLVER; it cannot be chosen here.

    Args:
        backend: None to query; "default" or "cusolver" are taken, and change nothing.

    Raises:
        UnsupportedError: for another library.

    >>> from functorch_like import backends
    >>> backends.cuda.preferred_linalg_library()
    'cusolver'
    """
    return _only("cusolver", backend)


def preferred_blas_library(backend: str | None = None) -> str:
    """Return the library for products on GPUs: XLA times cuBLAS, cuBLASLt and its own kernels, and chooses.

    Args:
        backend: None to query; "default" or "autotuned" are taken, and change nothing.

    Raises:
        UnsupportedError: for another library.

    >>> from functorch_like import backends
    >>> backends.cuda.preferred_blas_library()
    'autotuned'
    """
    return _only("autotuned", backend)


def _only(what: str, name: str | None) -> str:
    if name not in (None, "default", what):
        raise UnsupportedError(f"{name!r} cannot be preferred: {_LINALG}", fix=f"leave it at {what!r}")
    return what


class PlanCache:
    """Plans of Fourier transforms on GPUs. XLA makes them with the program that needs them, and keeps them with it."""

    @property
    def size(self) -> int:
        """0: no plan is kept apart from programs."""
        return 0

    @property
    def max_size(self) -> int:
        """0; it cannot be set."""
        return 0

    @max_size.setter
    def max_size(self, value: int) -> None:
        raise UnsupportedError("XLA owns the plans of Fourier transforms", fix="leave max_size alone")

    def __getitem__(self, device: Any) -> PlanCache:
        """Return this object, for each device."""
        return self

    def clear(self) -> None:
        """Do nothing: plans are dropped with their programs (`jit(f).clear_cache()`)."""


cufft_plan_cache = PlanCache()


# -------------------------------------------------------------------------------------------------------------- devices
def is_built() -> bool:
    """Return True if the plugin that makes jaxlib work with NVIDIA's GPUs is installed.

    >>> from functorch_like import backends
    >>> isinstance(backends.cuda.is_built(), bool)
    True
    """
    return _client.find_plugin() is not None


def is_available() -> bool:
    """Return True if programs can run on a GPU here.

    >>> from functorch_like import backends
    >>> backends.cuda.is_available() == (backends.cuda.device_count() > 0)
    True
    """
    return device_count() > 0


def device_count() -> int:
    """Return the number of GPUs that programs can run on.

    >>> from functorch_like import backends
    >>> backends.cuda.device_count() >= 0
    True
    """
    return len([d for d in xla.devices() if d.platform in ("gpu", "cuda")])


class DeviceProperties(NamedTuple):
    """Properties of a GPU.

    Attributes:
        name: NVIDIA's name of it.
        major, minor: compute capability.
        total_memory: bytes that the client may use.
        multi_processor_count: streaming multiprocessors.
    """

    name: str
    major: int
    minor: int
    total_memory: int
    multi_processor_count: int


def get_device_properties(device: Any = "gpu") -> DeviceProperties:
    """Return the properties of a GPU.

    Args:
        device: a device of `devices()`, or its name, "gpu:1".

    Returns:
        Name, compute capability, memory and number of multiprocessors.

    Raises:
        DeviceError: where it is not a GPU.

    >>> import functorch_like as ft
    >>> gpus = [d for d in ft.devices() if d.platform == "gpu"]
    >>> all(ft.backends.cuda.get_device_properties(gpu).major >= 3 for gpu in gpus)
    True
    """
    gpu = xla.find_device(device)
    if gpu.platform not in ("gpu", "cuda"):
        raise DeviceError(f"{gpu} is not a GPU", fix="use backends.cpu.get_cpu_capability() for CPUs")
    major, _, minor = str(getattr(gpu, "compute_capability", "0.0")).partition(".")
    limit = (gpu.memory_stats() or {}).get("bytes_limit", 0)
    return DeviceProperties(gpu.device_kind, int(major), int(minor or 0), limit, int(getattr(gpu, "core_count", 0)))


def memory_stats(device: Any = "gpu") -> dict[str, int]:
    """Return the memory statistics of a GPU's client, in bytes: bytes_in_use, peak_bytes_in_use, bytes_limit, ...

    Args:
        device: as for `get_device_properties`.

    Raises:
        DeviceError: where it is not a GPU.

    >>> import functorch_like as ft
    >>> gpus = [d for d in ft.devices() if d.platform == "gpu"]
    >>> all("bytes_in_use" in ft.backends.cuda.memory_stats(gpu) for gpu in gpus)
    True
    """
    get_device_properties(device)
    return dict(xla.find_device(device).memory_stats() or {})


flags: Block
adopt(__name__, _Settings)
