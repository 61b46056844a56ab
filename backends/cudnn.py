"""Settings of cuDNN, and of XLA's search for the fastest kernel, on NVIDIA's GPUs."""

from __future__ import annotations

from functorch_like.backends import cuda
from functorch_like.backends.flag_blocks import Block, Group, Module, adopt
from functorch_like.backends.settings import Alias, Setting
from functorch_like.backends.validators import boolean, one_of

_ELSEWHERE = {"cpu": "it is about GPUs"}


class Conv(Group, name="cudnn.conv"):
    """Convolutions on GPUs: `backends.cudnn.conv`."""

    __slots__ = ()

    fp32_precision = Setting(
        "none",
        one_of("none", "ieee", "tf32"),
        "Precision of float32 convolutions on GPUs: 'ieee' is float32, 'tf32' has 10 bits of mantissa.\n\n"
        "'none': as in `backends.fp32_precision`. (PyTorch's default is TF32, here it is float32.)",
        changes="StableHLO: precision_config of convolution",
        elsewhere=_ELSEWHERE,
    )


class _Settings(Module, name="cudnn"):
    allow_tf32 = Alias(
        Conv.fp32_precision,
        boolean,
        "Whether convolutions of float32 may use TF32: `conv.fp32_precision` is 'tf32', or else 'ieee'.",
        read=lambda value: value == "tf32",
        write=lambda allowed: "tf32" if allowed else "ieee",
    )
    deterministic = Setting(
        False,
        boolean,
        "Whether operations without a fixed order of sums are replaced by slower ones that have it, or refused.\n\n"
        "`backends.use_deterministic_algorithms` goes further: it also fixes which kernels are chosen.",
        changes="compile option xla_gpu_exclude_nondeterministic_ops",
        elsewhere={"cpu": "it is about GPUs"},
        options=lambda on, platform: {"xla_gpu_exclude_nondeterministic_ops": True} if on else {},
    )
    benchmark = Setting(
        True,
        boolean,
        "Whether XLA times candidate kernels of products and convolutions when it compiles, and takes the fastest.\n\n"
        "Which one that is may differ from run to run. (PyTorch's default is False; XLA does so by default.)",
        changes="compile option xla_gpu_autotune_level",
        elsewhere=_ELSEWHERE,
        options=lambda on, platform: {} if on else {"xla_gpu_autotune_level": 0},
    )


allow_tf32: bool
deterministic: bool
benchmark: bool
conv = Conv()


def is_available() -> bool:
    """Return True if there is a GPU for cuDNN to work on, and cuDNN.

    >>> from functorch_like import backends
    >>> backends.cudnn.is_available() <= backends.cuda.is_available()
    True
    """
    return version() is not None and cuda.is_available()


def version() -> int | None:
    """Return the version of the cuDNN installed beside the plugin, as cuDNN counts (91002 is 9.10.2); None without it.

    >>> from functorch_like import backends
    >>> backends.cudnn.version() is None or backends.cudnn.version() >= 8000
    True
    """
    from importlib import metadata  # 10 ms

    for package in ("nvidia-cudnn-cu13", "nvidia-cudnn-cu12"):
        try:
            major, minor, patch = (int(part) for part in metadata.version(package).split(".")[:3])
        except metadata.PackageNotFoundError:
            continue
        return major * 10000 + minor * 100 + patch
    return None


flags: Block
adopt(__name__, _Settings)
