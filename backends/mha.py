"""Forms of attention for `nn.dot_product_attention`: PyTorch's settings of scaled_dot_product_attention.

`math` computes the whole matrix of logits; `flash` goes by blocks of keys, `mem_efficient` by blocks of queries, and
both compute blocks again for derivatives. `cudnn` is one kernel for all of it, and a second one for derivatives, on
NVIDIA's GPUs.

>>> from functorch_like import backends
>>> with backends.mha.flags(math=False):
...     backends.mha.math_sdp_enabled()
False
"""

from __future__ import annotations

from typing import Any, NamedTuple

from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.flag_blocks import Block, Module, adopt
from functorch_like.backends.settings import SETTINGS, Setting
from functorch_like.backends.validators import boolean, integer
from functorch_like.backends.xla import cudnn_attention

_CHANGES = "which form nn.dot_product_attention takes"


class _Settings(Module, name="mha"):
    fastpath = Setting(
        True, boolean, "Whether forms other than `math` may be taken where the caller names none.", changes=_CHANGES
    )
    math = Setting(True, boolean, "Whether attention may compute the whole matrix of logits.", changes=_CHANGES)
    flash = Setting(True, boolean, "Whether attention may go by blocks of keys.", changes=_CHANGES)
    mem_efficient = Setting(True, boolean, "Whether attention may go by blocks of queries.", changes=_CHANGES)
    cudnn = Setting(
        True,
        boolean,
        "Whether attention may call cuDNN's kernel, which goes before the other forms where it can be used.\n\n"
        "It takes bfloat16 and float16 without bias or mask, on GPUs of compute capability 8.0 or more.",
        changes=_CHANGES,
        elsewhere={"cpu": "cuDNN is a library for GPUs"},
    )
    most_logits = Setting(
        None,
        integer(0, none="64 MiB; 1 GiB where the default device is a GPU"),
        "Largest matrix of logits, in bytes, for which `math` is taken where other forms are allowed, too.",
        changes=_CHANGES,
    )


fastpath: bool
math: bool
flash: bool
mem_efficient: bool
cudnn: bool
most_logits: int | None


def get_fastpath_enabled() -> bool:
    """Return True if forms of attention other than `math` may be taken where the caller names none.

    >>> from functorch_like import backends
    >>> with backends.mha.flags(fastpath=False):
    ...     backends.mha.get_fastpath_enabled()
    False
    """
    return _Settings.fastpath.value


def set_fastpath_enabled(value: bool) -> None:
    """Allow forms of attention other than `math` where the caller names none, or forbid them, in every thread.

    Args:
        value: True to allow them.

    >>> from functorch_like import backends
    >>> with backends.mha.flags(fastpath=True):  # in a block that sets it, this thread alone
    ...     backends.mha.set_fastpath_enabled(False)
    ...     backends.mha.get_fastpath_enabled()
    False
    """
    _Settings.fastpath.set(value)


def enable_math_sdp(enabled: bool) -> None:
    """Allow attention to compute the whole matrix of logits, or forbid it, in every thread.

    Args:
        enabled: True to allow it.

    >>> from functorch_like import backends
    >>> with backends.mha.flags(math=True):  # in a block that sets it, this thread alone
    ...     backends.mha.enable_math_sdp(False)
    ...     backends.mha.math_sdp_enabled()
    False
    """
    _Settings.math.set(enabled)


def enable_flash_sdp(enabled: bool) -> None:
    """Allow attention to go by blocks of keys, or forbid it, in every thread.

    Args:
        enabled: True to allow it.

    >>> from functorch_like import backends
    >>> with backends.mha.flags(flash=True):  # in a block that sets it, this thread alone
    ...     backends.mha.enable_flash_sdp(False)
    ...     backends.mha.flash_sdp_enabled()
    False
    """
    _Settings.flash.set(enabled)


def enable_mem_efficient_sdp(enabled: bool) -> None:
    """Allow attention to go by blocks of queries, or forbid it, in every thread.

    Args:
        enabled: True to allow it.

    >>> from functorch_like import backends
    >>> with backends.mha.flags(mem_efficient=True):  # in a block that sets it, this thread alone
    ...     backends.mha.enable_mem_efficient_sdp(False)
    ...     backends.mha.mem_efficient_sdp_enabled()
    False
    """
    _Settings.mem_efficient.set(enabled)


def enable_cudnn_sdp(enabled: bool) -> None:
    """Allow attention to call cuDNN's kernel, or forbid it, in every thread.

    Args:
        enabled: True to allow it.

    >>> from functorch_like import backends
    >>> with backends.mha.flags(cudnn=False):  # in a block that sets it, this thread alone
    ...     backends.mha.enable_cudnn_sdp(True)
    ...     backends.mha.cudnn_sdp_enabled()
    True
    """
    _Settings.cudnn.set(enabled)


def math_sdp_enabled() -> bool:
    """Return True if attention may compute the whole matrix of logits.

    >>> from functorch_like import backends
    >>> with backends.mha.flags(math=False):
    ...     backends.mha.math_sdp_enabled()
    False
    """
    return _Settings.math.value


def flash_sdp_enabled() -> bool:
    """Return True if attention may go by blocks of keys.

    >>> from functorch_like import backends
    >>> with backends.mha.flags(flash=False):
    ...     backends.mha.flash_sdp_enabled()
    False
    """
    return _Settings.flash.value


def mem_efficient_sdp_enabled() -> bool:
    """Return True if attention may go by blocks of queries.

    >>> from functorch_like import backends
    >>> with backends.mha.flags(mem_efficient=False):
    ...     backends.mha.mem_efficient_sdp_enabled()
    False
    """
    return _Settings.mem_efficient.value


def cudnn_sdp_enabled() -> bool:
    """Return True if attention may call cuDNN's kernel.

    >>> from functorch_like import backends
    >>> with backends.mha.flags(cudnn=True):
    ...     backends.mha.cudnn_sdp_enabled()
    True
    """
    return _Settings.cudnn.value


class SDPAParams(NamedTuple):
    """Arguments of attention, in PyTorch's order: arrays, or anything with a shape and a dtype.

    Attributes:
        query: [B, T, N, H] or [T, N, H].
        key, value: [B, S, K, H].
        attn_mask: or bias; None.
        dropout: the share of weights that are dropped: 0.0, `nn.dot_product_attention` has none.
        is_causal: whether position t takes part in sources 0 ... t only.
        enable_gqa: whether K may be less than N. It always may.
    """

    query: Any
    key: Any
    value: Any
    attn_mask: Any = None
    dropout: float = 0.0
    is_causal: bool = False
    enable_gqa: bool = True


#: Sizes of blocks. Larger blocks do not fit into the caches, smaller ones are mostly overhead.
LEAST, MOST = 32, 256


def block_of(size: int) -> int | None:
    """Return the largest size from LEAST to MOST that divides `size` into equal blocks; None if there is none."""
    return next((n for n in range(min(MOST, size), LEAST - 1, -1) if size % n == 0), None)


def can_use_flash_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Return True if attention can go by blocks of keys.

    Args:
        params: the arguments of attention.
        debug: whether to print the reason where it cannot.

    >>> import functorch_like as ft
    >>> x = ft.ShapeDtypeStruct((1, 7, 2, 16), "float32")
    >>> ft.backends.mha.can_use_flash_attention(ft.backends.mha.SDPAParams(x, x, x), debug=True)
    flash: 7 keys cannot be cut into equal blocks of 32 to 256
    False
    """
    return _say("flash", _Settings.flash, params, debug)


def can_use_efficient_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Return True if attention can go by blocks of queries.

    Args:
        params: the arguments of attention.
        debug: whether to print the reason where it cannot.

    >>> import functorch_like as ft
    >>> x = ft.ShapeDtypeStruct((1, 64, 2, 16), "float32")
    >>> ft.backends.mha.can_use_efficient_attention(ft.backends.mha.SDPAParams(x, x, x))
    True
    """
    return _say("mem_efficient", _Settings.mem_efficient, params, debug)


def can_use_cudnn_attention(params: SDPAParams, debug: bool = False) -> bool:
    """Return True if attention can call cuDNN's kernel.

    Args:
        params: the arguments of attention.
        debug: whether to print the reason where it cannot.

    >>> import functorch_like as ft
    >>> x = ft.ShapeDtypeStruct((1, 64, 2, 16), "float32")
    >>> ft.backends.mha.can_use_cudnn_attention(ft.backends.mha.SDPAParams(x, x, x), debug=True)
    cudnn: it takes bfloat16 and float16, not float32
    False
    """
    return _say("cudnn", _Settings.cudnn, params, debug)


def unfit(form: str, params: SDPAParams) -> str:
    """Return the reason why the form "flash", "mem_efficient" or "cudnn" cannot be taken; "" if it can."""
    if form == "cudnn":
        return _unfit_for_cudnn(params)
    x, what = (params.key, "keys") if form == "flash" else (params.query, "queries")
    count = x.shape[-3]
    return "" if block_of(count) else f"{count} {what} cannot be cut into equal blocks of {LEAST} to {MOST}"


def _unfit_for_cudnn(params: SDPAParams) -> str:
    arrays = [ShapedArray((1, *x.shape)[-4:], x.dtype) for x in params[:3]]
    why = cudnn_attention.unfit(*arrays)
    if why or params.attn_mask is not None:
        return why or "it takes no mask and no bias"
    if SETTINGS["deterministic_algorithms"].value != "off" or SETTINGS["cudnn.deterministic"].value:
        return "its derivative adds in no fixed order, and settings ask for the same bits in each run"
    gpus = [d for d in xla.devices() if d.platform != "cpu"] if xla.default_backend() != "cpu" else []
    if not any(float(d.compute_capability) >= 8 for d in gpus):
        return "no GPU of compute capability 8.0 or more is the default device"
    return ""


def _say(form: str, setting: Setting[bool], params: SDPAParams, debug: bool) -> bool:
    if not setting.value:
        why = f"backends.mha.{form} is off"
    elif params.dropout:
        why = f"weights are not dropped here, and dropout={params.dropout}"
    else:
        why = unfit(form, params)
    if debug and why:
        print(f"{form}: {why}")
    return not why


def choose(params: SDPAParams, bytes_of_logits: int) -> str:
    """Return the form that attention takes where the caller names none; "" if settings allow none.

    Args:
        params: the arguments of attention.
        bytes_of_logits: size of the matrix of logits.
    """
    most = _Settings.most_logits.value
    if most is None:
        most = 64 << 20 if xla.default_backend() == "cpu" else 1 << 30
    if _Settings.fastpath.value and can_use_cudnn_attention(params):
        return "cudnn"
    small = bytes_of_logits <= most
    if _Settings.math.value and (small or not _Settings.fastpath.value):
        return "math"
    if _Settings.fastpath.value:
        # Blocks of keys take up to 1.4 times as long on CPUs, since their sums are rescaled.
        if can_use_efficient_attention(params):
            return "mem_efficient"
        if can_use_flash_attention(params):
            return "flash"
    return "math" if _Settings.math.value else ""


flags: Block
adopt(__name__, _Settings)
