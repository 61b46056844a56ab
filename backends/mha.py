"""Forms of attention for `nn.dot_product_attention`: PyTorch's settings of scaled_dot_product_attention.

`math` computes the whole matrix of logits; `flash` goes by blocks of keys, `mem_efficient` by blocks of queries, and
both compute blocks again for derivatives. `cudnn`'s kernel is not called by this package.

>>> from functorch_like import backends
>>> with backends.mha.flags(math=False):
...     backends.mha.math_sdp_enabled()
False
"""

from __future__ import annotations

from typing import Any, NamedTuple

from functorch_like.backends import xla
from functorch_like.backends.flag_blocks import Block, Module, adopt
from functorch_like.backends.settings import Setting
from functorch_like.backends.validators import boolean, integer

_CHANGES = "which form nn.dot_product_attention takes"


class _Settings(Module, name="mha"):
    fastpath = Setting(
        True, boolean, "Whether forms other than `math` may be taken where the caller names none.", changes=_CHANGES
    )
    math = Setting(True, boolean, "Whether attention may compute the whole matrix of logits.", changes=_CHANGES)
    flash = Setting(True, boolean, "Whether attention may go by blocks of keys.", changes=_CHANGES)
    mem_efficient = Setting(True, boolean, "Whether attention may go by blocks of queries.", changes=_CHANGES)
    cudnn = Setting(
        False,
        boolean,
        "Whether attention may call cuDNN's kernel. This package does not call it: True changes nothing.",
        changes="nothing",
        elsewhere=dict.fromkeys(("cpu", "gpu"), "cuDNN's kernel is not called by this package"),
        in_key=False,
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
    """Set a value that has no effect: this package does not call cuDNN's kernel.

    Args:
        enabled: the value that `cudnn_sdp_enabled` returns.

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
    """Return the value given to `enable_cudnn_sdp`; it has no effect.

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
LEAST, MOST = 32, 512


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
    flash: 7 keys cannot be cut into equal blocks of 32 to 512
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
    """Return False: this package does not call cuDNN's kernel.

    Args:
        params: the arguments of attention.
        debug: whether to print the reason.

    >>> import functorch_like as ft
    >>> x = ft.ShapeDtypeStruct((1, 64, 2, 16), "float32")
    >>> ft.backends.mha.can_use_cudnn_attention(ft.backends.mha.SDPAParams(x, x, x), debug=True)
    cudnn: the kernel is not called by this package
    False
    """
    if debug:
        print("cudnn: the kernel is not called by this package")
    return False


def uncut(form: str, params: SDPAParams) -> str:
    """Return the reason why attention cannot go by blocks in the form "flash" or "mem_efficient"; "" if it can."""
    x, what = (params.key, "keys") if form == "flash" else (params.query, "queries")
    count = x.shape[-3]
    return "" if block_of(count) else f"{count} {what} cannot be cut into equal blocks of {LEAST} to {MOST}"


def _say(form: str, setting: Setting[bool], params: SDPAParams, debug: bool) -> bool:
    if not setting.value:
        why = f"backends.mha.{form} is off"
    elif params.dropout:
        why = f"weights are not dropped here, and dropout={params.dropout}"
    else:
        why = uncut(form, params)
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
    small = bytes_of_logits <= most
    if _Settings.math.value and (small or not _Settings.fastpath.value):
        return "math"
    if _Settings.fastpath.value:
        if can_use_flash_attention(params):
            return "flash"
        if can_use_efficient_attention(params):
            return "mem_efficient"
    return "math" if _Settings.math.value else ""


flags: Block
adopt(__name__, _Settings)
