"""Samples that JAX makes of a key, where its way from bits to a sample is another than this package's.

`backends.random.numbers` chooses them. Each kernel of a distribution that differs is marked with `or_jax`, which names
the function here that replaces it; distributions that are made of these, such as Student's t, need none of their own.
What is computed here is what JAX 0.10.2 documents and computes, to within rounding.
"""

from __future__ import annotations

import functools
import importlib
from collections.abc import Callable
from typing import Any, TypeVar

from functorch_like.backends import random as settings

F = TypeVar("F", bound=Callable[..., Any])


def or_jax(name: str) -> Callable[[F], F]:
    """Mark a kernel that JAX's numbers have another one for.

    Args:
        name: module and name of the other one in this folder, "continuous.uniform". It takes the same arguments.
    """
    module, _, function = name.partition(".")

    def mark(kernel: F) -> F:
        @functools.wraps(kernel)
        def chosen(*args: Any, **kwargs: Any) -> Any:
            if settings.are_native():
                return kernel(*args, **kwargs)
            return getattr(importlib.import_module(f"{__name__}.{module}"), function)(*args, **kwargs)

        return chosen  # type: ignore[return-value]

    return mark
