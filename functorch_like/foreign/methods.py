"""Methods that arrays of other libraries have and arrays here do not: an AttributeError names what to call instead."""

from __future__ import annotations

from typing import Any

from functorch_like.frames import without_frames

_NEVER = "arrays never change"
#: Functions that PyTorch has as methods, too.
_FUNCTIONS = {
    "fnp": (
        "exp",
        "log",
        "log1p",
        "expm1",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "tanh",
        "sinh",
        "cosh",
        "abs",
        "sign",
        "floor",
        "ceil",
        "isnan",
        "isfinite",
        "square",
        "maximum",
        "minimum",
        "median",
        "flip",
        "split",
        "tile",
        "log2",
        "log10",
        "exp2",
        "isinf",
        "neg",
        "negative",
        "reciprocal",
        "trunc",
        "tril",
        "triu",
        "diag",
        "unique",
        "argwhere",
        "count_nonzero",
        "nan_to_num",
        "bincount",
        "rot90",
        "asin",
        "acos",
        "atan",
        "nansum",
        "nanmean",
    ),
    "nn": ("sigmoid", "relu", "softmax", "log_softmax", "logsumexp"),
    "fnp.linalg": ("norm", "inverse", "det", "pinverse", "svd", "qr", "cholesky", "slogdet"),
    "ft.scipy.special": ("erf", "erfc", "erfinv", "lgamma", "digamma"),
    "lax": ("rsqrt",),
}
_RENAMED = {"inverse": "inv", "pinverse": "pinv", "neg": "negative", "lgamma": "gammaln"}
#: Functions of two arrays or of options.
_OF_MORE = {
    "roll": "shift, axis", "outer": "y", "kron": "y", "cross": "y", "allclose": "y", "isclose": "y", "logaddexp": "y",
    "fmod": "y", "atan2": "y", "quantile": "q", "movedim": "source, destination", "isin": "values",
    "tensor_split": "n", "take_along_dim": "indices, axis", "broadcast_to": "shape",
}  # fmt: skip
_RENAMED_OF_MORE = {"movedim": "moveaxis", "tensor_split": "array_split", "take_along_dim": "take_along_axis"}
_IN_PLACE = {"fnp": ("exp", "log", "sqrt", "abs", "floor", "round"), "nn": ("relu", "sigmoid", "softmax")}
_COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}
#: By PyTorch's names, unless NumPy has them.
INSTEAD = {
    **{name: f"{room}.{_RENAMED.get(name, name)}(x)" for room, names in _FUNCTIONS.items() for name in names},
    **{name: f"fnp.{_RENAMED_OF_MORE.get(name, name)}(x, {more})" for name, more in _OF_MORE.items()},
    **{f"{name}_": f"x = {room}.{name}(x): {_NEVER}" for room, names in _IN_PLACE.items() for name in names},
    "append": f"fnp.append(x, value): {_NEVER}; or collect values in a list, and fnp.stack them at the end",
    "extend": f"fnp.concatenate([x, y]): {_NEVER}",
    "insert": f"fnp.insert(x, index, value): {_NEVER}",
    "data": "x itself, or lax.stop_gradient(x) where a derivative is not wanted",
    "tofile": "np.asarray(x).tofile(file), or fnp.save(file, x)",
    "flags": "x itself: its memory is always contiguous, and never written to",
    "strides": "np.asarray(x).strides",
    "numel": "x.size",
    "dim": "x.ndim",
    "t": "x.T",
    "mm": "x @ y",
    "bmm": "x @ y",
    "matmul": "x @ y",
    "add": "x + y",
    "sub": "x - y",
    "mul": "x * y",
    "div": "x / y",
    "pow": "x**y",
    "int": 'x.astype("int32")',
    "bool": 'x.astype("bool")',
    "type": "x.dtype, or x.astype(dtype)",
    "type_as": "x.astype(y.dtype)",
    "clamp": "x.clip(min, max)",
    "clamp_": f"x = x.clip(min, max): {_NEVER}",
    "sub_": f"x = x - y: {_NEVER}",
    "div_": f"x = x / y: {_NEVER}",
    "fill_": f"x = fnp.full_like(x, value): {_NEVER}",
    "masked_fill_": f"x = fnp.where(mask, value, x): {_NEVER}",
    "squeeze_": f"x = x.squeeze(): {_NEVER}",
    "unsqueeze_": f"x = fnp.expand_dims(x, axis): {_NEVER}",
    "normal_": "ft.random.normal(key, x.shape)",
    "uniform_": "ft.random.uniform(key, x.shape)",
    "expand_as": "fnp.broadcast_to(x, y.shape)",
    "view_as": "x.reshape(y.shape)",
    "reshape_as": "x.reshape(y.shape)",
    "gather": "fnp.take_along_axis(x, indices, axis)",
    "scatter": "x.at[i].set(y)",
    "index_select": "x[indices], or fnp.take(x, indices, axis)",
    "topk": "lax.top_k(x, k)",
    "chunk": "fnp.array_split(x, n)",
    "unbind": "fnp.unstack(x)",
    "repeat_interleave": "x.repeat(n, axis)",
    "to_numpy": "np.asarray(x)",
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
    **{name: f"x {sign} y" for name, sign in _COMPARISONS.items()},
    "where": "fnp.where(mask, x, y)",
    "narrow": "x[start : start + length]",
    "new_zeros": "fnp.zeros(shape, x.dtype)",
    "new_ones": "fnp.ones(shape, x.dtype)",
    "new_full": "fnp.full(shape, value, x.dtype)",
    "new_tensor": "fnp.asarray(values, x.dtype)",
    "is_cuda": 'x.device.platform == "gpu"',
    "resize": "fnp.resize(x, shape)",
    "itemset": "x = x.at[i].set(value): arrays never change",
    "scatter_add": "x.at[i].add(y)",
    "scatter_add_": f"x = x.at[i].add(y): {_NEVER}",
    "index_add": "x.at[i].add(y)",
    "index_add_": f"x = x.at[i].add(y): {_NEVER}",
    "index_fill": "x.at[i].set(value)",
    "index_copy": "x.at[i].set(y)",
    "partition": "fnp.partition(x, kth), a changed copy",
    "setflags": "x itself, which is never written to",
    "dump": "fnp.save(file, x)",
    "base": "x itself: arrays share no memory that could change",
    "fill": "x = fnp.full_like(x, value): arrays never change",
    "put": "x = x.at[i].set(value): arrays never change",
    **dict.fromkeys(("pow_", "neg_"), f"x = x**y, or x = -x: {_NEVER}"),
    "detach_": "lax.stop_gradient(x)",
    "index_put_": f"x = x.at[i].set(y): {_NEVER}",
    "masked_scatter_": f"x = x.at[mask].set(values): {_NEVER}",
    "apply_": "ft.vmap(f)(x), or fnp.vectorize(f)(x)",
    "masked_select": "x[mask], or fnp.where(mask, x, value) under jit",
    "lerp": "x + t * (y - x)",
    "mv": "x @ y",
    "element_size": "x.itemsize",
    "nelement": "x.size",
    "ndimension": "x.ndim",
    "stride": "np.asarray(x).strides",
    "data_ptr": "x.unsafe_buffer_pointer()",
    **dict.fromkeys(("storage", "untyped_storage"), "np.asarray(x), whose memory is read-only"),
    "is_contiguous": "True: the memory of arrays is always contiguous",
    "is_floating_point": 'fnp.isdtype(x.dtype, "real floating")',
    "is_complex": "fnp.iscomplexobj(x)",
    "get_device": "x.device",
    "pin_memory": "x itself: ft.data.prefetch copies the next batches meanwhile",
    "new_empty": "fnp.empty(shape, x.dtype)",
    **dict.fromkeys(
        ("register_hook", "retain_grad", "grad_fn", "is_leaf"),
        "ft.grad(f)(x): a derivative belongs to a function; ft.custom_vjp changes one",
    ),
    "values": "x itself: fnp.max(x, axis) gives the values, fnp.argmax(x, axis) the positions",
    "indices": "fnp.argmax(x, axis), or fnp.argsort(x, axis)",
    "to_list": "x.tolist()",
    "short": 'x.astype("int16")',
    "byte": 'x.astype("uint8")',
    "char": 'x.astype("int8")',
    "newbyteorder": "np.asarray(x).newbyteorder(), or x.byteswap()",
}


#: What arrays have and traced values do not, which are nowhere yet.
OF_VALUES = dict.fromkeys(
    ("device", "devices", "sharding", "addressable_shards", "global_shards", "is_fully_addressable", "committed",
     "is_deleted", "delete", "copy_to_host_async", "unsafe_buffer_pointer"),
    "look at the arrays outside of the function; inside, lax.with_sharding_constraint(x, sharding) splits x",
)  # fmt: skip


class Missing:
    """A name that an array or a traced value does not have: reading it is an AttributeError, and `hasattr` is False."""

    def __init__(self, name: str, reason: str) -> None:
        self.name, self.reason = name, reason

    @without_frames
    def __get__(self, array: Any, kind: type | None = None) -> Any:
        raise AttributeError(self.reason, name=self.name)


class Renamed(Missing):
    """A name for which arrays have another; assigning it is an AttributeError, too.

    Assignments would go unnoticed without an error: `x.requires_grad = True` changes nothing.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name, f"an array has no attribute {name!r}; use {INSTEAD[name]}")

    def __set__(self, array: Any, value: Any) -> None:
        self.__get__(array)


def listing(array: Any) -> list[str]:
    """`dir` of an array, without the names it does not have."""
    return [name for name in object.__dir__(array) if name not in INSTEAD]
