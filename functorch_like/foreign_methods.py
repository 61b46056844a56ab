"""Methods that arrays of other libraries have and arrays here do not: an AttributeError says what to call instead."""

from __future__ import annotations

from typing import Any

#: By PyTorch's names, unless NumPy has them.
INSTEAD = {
    "backward": "ft.grad(f)(x): a derivative belongs to a function",
    "requires_grad": "ft.grad(f)(x): a derivative belongs to a function",
    "requires_grad_": "ft.grad(f)(x): a derivative belongs to a function",
    "grad": "ft.grad(f)(x): a derivative belongs to a function",
    "detach": "lax.stop_gradient(x)",
    "numpy": "np.asarray(x)",
    "cpu": 'ft.device_put(x, "cpu")',
    "cuda": 'ft.device_put(x, "gpu")',
    "to": 'ft.device_put(x, device), or x.astype("float16")',
    "float": 'x.astype("float32")',
    "double": 'x.astype("float64")',
    "half": 'x.astype("float16")',
    "bfloat16": 'x.astype("bfloat16")',
    "long": 'x.astype("int64")',
    "contiguous": "x itself, whose memory is always contiguous",
    "permute": "fnp.transpose(x, axes)",
    "unsqueeze": "fnp.expand_dims(x, axis)",
    "expand": "fnp.broadcast_to(x, shape)",
    "masked_fill": "fnp.where(mask, value, x)",
    "add_": "x = x + y: arrays never change",
    "mul_": "x = x * y: arrays never change",
    "copy_": "x = y: arrays never change",
    "zero_": "x = fnp.zeros_like(x): arrays never change",
    "scatter_": "x = x.at[i].set(y): arrays never change",
    "resize": "fnp.resize(x, shape)",
    "itemset": "x = x.at[i].set(value): arrays never change",
    "fill": "x = fnp.full_like(x, value): arrays never change",
    "put": "x = x.at[i].set(value): arrays never change",
}


class Renamed:
    """A name that an array does not have; reading it is an AttributeError with a remedy, and `hasattr` is False."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __get__(self, array: Any, kind: type | None = None) -> Any:
        raise AttributeError(f"an array has no attribute {self.name!r}; use {INSTEAD[self.name]}", name=self.name)


def listing(array: Any) -> list[str]:
    """`dir` of an array, without the names it does not have."""
    return [name for name in object.__dir__(array) if name not in INSTEAD]
