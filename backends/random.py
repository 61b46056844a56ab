"""The numbers that a key of `functorch_like.random` stands for: this package's, or JAX's.

>>> from functorch_like import backends, random
>>> with backends.random.flags(numbers="jax"):
...     random.bits(random.key(0)).item()
4070199207
"""

from __future__ import annotations

from functorch_like.backends.flag_blocks import Block, Module, adopt
from functorch_like.backends.settings import Setting
from functorch_like.backends.validators import one_of


class _Settings(Module, name="random"):
    numbers = Setting(
        "native",
        one_of("native", "jax", "jax_unpartitionable"),
        "Which numbers a key stands for.\n\n"
        "'native': this package's. One call of the cipher makes two words, and both are used; uniform numbers have all "
        "digits of the dtype. 'jax': those that JAX makes of the same key since its release 0.5.0, to within rounding. "
        "Half of each word of the cipher is lost, and a seed counts as an integer of the default width. "
        "'jax_unpartitionable': those of earlier releases of JAX, which "
        "`jax_threefry_partitionable=False` still gives. Programs that run under JAX's names "
        "(`functorch_like.as_jax`) start with 'jax'.",
        changes="how keys are split, and how samples are made of bits",
    )


numbers: str
flags: Block
adopt(__name__, _Settings)


def adopt_jax(partitionable: bool) -> None:
    """Let keys stand for JAX's numbers, unless the setting has been chosen."""
    if _Settings.numbers.source == "default":
        _Settings.numbers.set("jax" if partitionable else "jax_unpartitionable")


def are_native() -> bool:
    """Return True if keys stand for this package's numbers."""
    return _Settings.numbers.value == "native"


def are_partitionable() -> bool:
    """Return True unless keys stand for the numbers of JAX's earlier releases."""
    return _Settings.numbers.value != "jax_unpartitionable"
