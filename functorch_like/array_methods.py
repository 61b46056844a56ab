"""Methods, operators and protocols of arrays and tracers. `install` attaches them; the package does so once.

An operator on two arrays is one short Python function over a C++-dispatched kernel; on tracers it calls the body of
the function, and with it the primitive, directly.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NoReturn

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.arrays import conversions
from functorch_like.backends import xla
from functorch_like.backends.xla import dlpack
from functorch_like.backends.xla.arrays import present
from functorch_like.calling.api_boundary import wrap_public_function
from functorch_like.core import INT32, Array, ArrayImpl, Tracer, is_value
from functorch_like.errors import ArgumentError, DtypeError, FtError
from functorch_like.foreign import methods as foreign_methods
from functorch_like.frames import without_frames
from functorch_like.numpy import binary, logic, matrix_products, unary
from functorch_like.numpy.creation import asarray
from functorch_like.numpy.promotion import blame
from functorch_like.on_import import on_import
from functorch_like.primitives import structural

_F32, _I32 = dtypes.float32, dtypes.int32
_LOW, _HIGH = INT32


# ----------------------------------------------------------------------------------------------------------- operators
def _other(function: Any, self: Any, other: Any, *, reflected: bool = False) -> Any:
    """Apply an operator to an operand that is neither array nor number.

    One with `__jax_array__` is converted. For others Python tries the operator of their class.

    Raises:
        DtypeError: for a list or a tuple; and for text, None or a dict, unless they are compared for equality. Python
            would repeat text by an index.
    """
    if hasattr(type(other), "__jax_array__"):
        value = other.__jax_array__()
        return function(value, self) if reflected else function(self, value)
    kind, operator = type(other), function.__name__
    fix = _UNCOMBINED.get(kind, "")  # not for a subclass of list, which may have operators of its own
    if isinstance(other, (str, bytes)) and not (operator == "multiply" and _repeats(self)):
        fix = "convert the text to a number: float(...)"
    if fix and (kind in (list, tuple) or operator not in ("equal", "not_equal")):
        named = "None" if other is None else f"a {kind.__name__}"
        e = DtypeError(f"an array and {named} are not combined", fix=fix)
        blame(e, operator, self, other)
        raise e
    return NotImplemented


_UNCOMBINED = {
    list: "convert the list: fnp.asarray(...)",
    tuple: "convert the tuple: fnp.asarray(...)",
    dict: "compute with its values: ft.tree.map(lambda value: ..., tree)",
    type(None): "give an array or a number; a function without `return` gives None",
}


def _repeats(x: Any) -> bool:
    """Return True for an array that Python takes as a number of repetitions."""
    return x.aval.ndim == 0 and x.aval.dtype.kind in "iu"


def _left(function: Any) -> Callable[[Any, Any], Any]:
    """`x + other` of an array: the common cases go straight to the kernel."""
    fast = function.fast

    def method(self: Any, other: Any) -> Any:
        kind = type(other)
        try:  # `try` costs nothing without an error; a decorator would cost a call
            if kind is ArrayImpl:
                return fast(self, other)
            if kind is float:
                if self.aval.dtype is _F32:
                    return fast(self, other)
            elif kind is int:
                dtype = self.aval.dtype
                if (dtype is _F32 or dtype is _I32) and _LOW <= other <= _HIGH:
                    return fast(self, other)
            return function(self, other) if is_value(other) else _other(function, self, other)
        except Exception as e:
            blame(e, function.__name__, self, other)
            raise

    method.is_boundary = True  # type: ignore[attr-defined]
    return method


def _right(function: Any) -> Callable[[Any, Any], Any]:
    """`other + x` of an array."""
    fast = function.fast

    def method(self: Any, other: Any) -> Any:
        kind = type(other)
        try:
            if kind is float:
                if self.aval.dtype is _F32:
                    return fast(other, self)
            elif kind is int and self.aval.dtype is _F32 and _LOW <= other <= _HIGH:
                return fast(other, self)
            return function(other, self) if is_value(other) else _other(function, self, other, reflected=True)
        except Exception as e:
            blame(e, function.__name__, other, self)
            raise

    method.is_boundary = True  # type: ignore[attr-defined]
    return method


def _tracer_left(function: Any) -> Callable[[Any, Any], Any]:
    body = getattr(function, "body", function)

    def method(self: Any, other: Any) -> Any:
        try:
            known = isinstance(other, Tracer) or is_value(other)
            return body(self, other) if known else _other(function, self, other)
        except FtError as e:
            blame(e, function.__name__, self, other)
            raise

    method.is_boundary = True  # type: ignore[attr-defined]
    return method


def _tracer_right(function: Any) -> Callable[[Any, Any], Any]:
    body = getattr(function, "body", function)
    return lambda self, other: body(other, self) if is_value(other) else _other(function, self, other, reflected=True)


def _slow_left(function: Any) -> Callable[[Any, Any], Any]:
    return lambda self, other: function(self, other) if is_value(other) else _other(function, self, other)


def _slow_right(function: Any) -> Callable[[Any, Any], Any]:
    return lambda self, other: (
        function(other, self) if is_value(other) else _other(function, self, other, reflected=True)
    )


def _matmul(self: Any, other: Any) -> Any:
    if type(other) is ArrayImpl:
        return matrix_products._matmul_kernel(self, other)
    return matrix_products.matmul(self, other) if is_value(other) else _other(matrix_products.matmul, self, other)


_BINARY = {
    "add": binary.add, "sub": binary.subtract, "mul": binary.multiply, "truediv": binary.divide,
    "floordiv": binary.floor_divide, "mod": binary.remainder, "and": logic.bitwise_and, "or": logic.bitwise_or,
    "xor": logic.bitwise_xor, "lshift": logic.left_shift, "rshift": logic.right_shift,
}  # fmt: skip
_COMPARE = {
    "eq": logic.equal, "ne": logic.not_equal, "lt": logic.less, "le": logic.less_equal, "gt": logic.greater,
    "ge": logic.greater_equal,
}  # fmt: skip
_SLOW = {"pow": binary.power, "divmod": binary.divmod}
_UNARY: dict[str, Any] = {
    "neg": unary.negative,
    "pos": unary.positive,
    "abs": unary.absolute,
    "invert": logic.invert,
}


def _operators() -> tuple[dict[str, Any], dict[str, Any]]:
    arrays: dict[str, Any] = {}
    tracers: dict[str, Any] = {}
    for name, function in _BINARY.items():
        arrays[f"__{name}__"], arrays[f"__r{name}__"] = _left(function), _right(function)
        tracers[f"__{name}__"], tracers[f"__r{name}__"] = _tracer_left(function), _tracer_right(function)
    for name, function in _COMPARE.items():
        arrays[f"__{name}__"], tracers[f"__{name}__"] = _left(function), _tracer_left(function)
    for name, function in _SLOW.items():
        for table in (arrays, tracers):
            table[f"__{name}__"], table[f"__r{name}__"] = _slow_left(function), _slow_right(function)
    for name, function in _UNARY.items():
        arrays[f"__{name}__"] = (lambda fast: lambda self: fast(self))(function.fast)
        tracers[f"__{name}__"] = (lambda body: lambda self: body(self))(function.body)
    arrays["__matmul__"] = _matmul
    tracers["__matmul__"] = lambda self, other: (
        matrix_products._matmul(self, other) if is_value(other) else _other(matrix_products.matmul, self, other)
    )
    for table in (arrays, tracers):
        table["__rmatmul__"] = _slow_right(matrix_products.matmul)
        table["__round__"] = _round
    return arrays, tracers


# ------------------------------------------------------------------------------------------------------------- methods
def _round(self: Any, ndigits: int | None = None) -> Any:
    """Return `round(x, ndigits)`; without `ndigits` integers, as Python's function gives."""
    if ndigits is None:
        return fnp.astype(fnp.round(self), dtypes.default_int())
    return fnp.round(self, ndigits)


def _reshape(self: Any, *shape: Any, order: str = "C", copy: bool | None = None) -> Any:
    """Return the elements in another shape: `x.reshape(2, -1)` or `x.reshape((2, -1))`."""
    return fnp.reshape(self, shape[0] if len(shape) == 1 else shape, order, copy=copy)


def _transpose(self: Any, *axes: Any) -> Any:
    """Return the array with its axes permuted, by default reversed."""
    if not axes or (len(axes) == 1 and axes[0] is None):
        return fnp.transpose(self)
    return fnp.transpose(self, axes[0] if len(axes) == 1 and not isinstance(axes[0], int) else axes)


def _astype(self: Any, dtype: Any, copy: bool = False, device: Any = None) -> Any:
    """Return the array in another dtype; from complex to real takes the real part."""
    return asarray(self, dtype, copy=copy or None, device=device)


def _copy(self: Any, memo: Any = None) -> Any:
    """Return a copy, in memory of its own."""
    return structural.copy(self)


def _flatten(self: Any, order: str = "C") -> Any:
    """Return the elements in one dimension."""
    return fnp.ravel(self, order)


def _clip(self: Any, min: Any = None, max: Any = None) -> Any:
    """Return the elements limited to the interval from `min` to `max`."""
    return fnp.clip(self, min, max)


def _sort(
    self: Any, axis: int | None = -1, *, kind: None = None, order: None = None, stable: bool = True,
    descending: bool = False,
) -> Any:  # fmt: skip
    """Return a sorted copy."""
    return fnp.sort(self, axis, kind=kind, order=order, stable=stable, descending=descending)


def _argpartition(self: Any, kth: Any, axis: int | None = -1) -> Any:
    """Return the indices that partition the array, as `fnp.argpartition`."""
    return fnp.argpartition(self, kth, axis)


def _choose(self: Any, choices: Any, out: None = None, mode: str = "raise") -> Any:
    """Select from `choices` by these integers, as `fnp.choose`."""
    return fnp.choose(self, choices, out, mode)


def _compress(
    self: Any, condition: Any, axis: int | None = None, *, out: None = None, size: int | None = None,
    fill_value: Any = 0,
) -> Any:  # fmt: skip
    """Return the slices where a condition is true, as `fnp.compress`."""
    return fnp.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def _view(self: Any, dtype: Any = None, type: None = None) -> Any:
    """Reinterpret the bytes as another dtype: a narrower one makes the last dimension longer, a wider one shorter."""
    if isinstance(dtype, (int, tuple, list)):
        sizes = dtype if type is None else (dtype, type)
        raise ArgumentError(f"x.view takes a dtype, got sizes: {sizes!r}", fix="for sizes, use x.reshape(...)")
    if type is not None:
        raise ArgumentError(f"x.view got type={type!r}, but there is one type of arrays", fix="give a dtype alone")
    from functorch_like.numpy import byte_views

    return byte_views.view(self, dtype)


def _byteswap(self: Any, inplace: bool = False) -> Any:
    """Return the array with the bytes of each element reversed."""
    if inplace:
        raise ArgumentError("x.byteswap cannot change an array in place", fix="leave inplace out and use the result")
    from functorch_like.numpy import byte_views

    return byte_views.byteswap(self)


_VERSIONS = ("2021.12", "2022.12", "2023.12", "2024.12")


def _namespace(self: Any, *, api_version: str | None = None) -> Any:
    """Return `functorch_like.numpy`, the namespace that the array API standard requires."""
    if api_version is not None and api_version not in _VERSIONS:
        raise ArgumentError(
            f"version {api_version!r} of the array API standard is unknown", fix=f"use {', '.join(_VERSIONS)}"
        )
    return fnp


def _at(self: Any) -> Any:
    from functorch_like.numpy.at_updates import IndexUpdate  # late: many programs do not scatter

    return IndexUpdate(self)


def _contains(self: Any, value: Any) -> bool:
    return bool(fnp.any(self == value))


class _Later:
    """A method whose module is imported at the first use.

    Args:
        name: name of the method.
        module: module in `functorch_like.numpy` that defines it; that package if empty.
        function: name of the function in the module, if it is not `name`.
    """

    def __init__(self, name: str, module: str = "", function: str = "") -> None:
        self.name, self._module, self._function = name, module, function or name

    def __get__(self, instance: Any, owner: type) -> Any:
        home = importlib.import_module(f"functorch_like.numpy.{self._module}") if self._module else fnp
        method = wrap_public_function(getattr(home, self._function), name=self.name)
        xla.attach(self.name, method)
        for kind in (Array, Tracer):
            setattr(kind, self.name, method)
        return method.__get__(instance, owner)


#: Methods that are functions of `fnp` under the same name.
_LATER = (
    "all", "any", "argmax", "argmin", "argsort", "cumprod", "cumsum", "diagonal", "dot", "max", "mean", "min",
    "nonzero", "prod", "ptp", "repeat", "round", "searchsorted", "std", "sum", "take", "trace", "var",
)  # fmt: skip
_METHODS: dict[str, Any] = {
    "reshape": _reshape, "transpose": _transpose, "astype": _astype, "copy": _copy, "flatten": _flatten, "clip": _clip,
    "sort": _sort, "__getitem__": _Later("__getitem__", "indexing", "getitem"), "__setitem__": conversions.setitem,
    "__delitem__": conversions.delitem, "__len__": conversions.length,
    "__iter__": conversions.rows, "__contains__": _contains, "__array_namespace__": _namespace, "__copy__": _copy,
    "__deepcopy__": _copy, "ravel": fnp.ravel, "squeeze": fnp.squeeze, "swapaxes": fnp.swapaxes,
    "argpartition": _argpartition, "choose": _choose, "compress": _compress, "view": _view, "byteswap": _byteswap,
    "conj": unary.conjugate, "conjugate": unary.conjugate, **{name: _Later(name) for name in _LATER},
}  # fmt: skip


#: What is written in place of the assignments that NumPy's arrays have.
_ASSIGNED = {
    "shape": "x = x.reshape(shape)",
    "dtype": "x = x.astype(dtype); or x = x.view(dtype), which reads the same bytes",
    "real": "x = lax.complex(value, x.imag)",
    "imag": "x = lax.complex(x.real, value)",
    "T": "x = value.T",
    "flat": "x = x.at[...].set(value), or fnp.asarray(values).reshape(x.shape)",
}


def _assign(name: str) -> Callable[[Any, Any], NoReturn]:
    @without_frames
    def refuse(self: Any, value: Any) -> NoReturn:
        raise AttributeError(f"arrays are immutable, and x.{name} was assigned to; use {_ASSIGNED[name]}", name=name)

    return refuse


def _flat(self: Any) -> Any:
    from functorch_like.numpy.flat_elements import FlatElements  # late: few programs need it

    return FlatElements(self)


def _property(get: Callable[[Any], Any], doc: str) -> property:
    return property(get, doc=doc)


_PROPERTIES = {
    "shape": _property(lambda self: self.aval.shape, "The size of each dimension."),
    "dtype": _property(lambda self: self.aval.dtype, "The dtype of the elements."),
    "ndim": _property(lambda self: self.aval.ndim, "The number of dimensions."),
    "size": _property(lambda self: self.aval.size, "The number of elements."),
    "itemsize": _property(lambda self: self.aval.dtype.itemsize, "Bytes of an element."),
    "nbytes": _property(lambda self: self.aval.size * self.aval.dtype.itemsize, "Bytes of all elements."),
    "weak_type": _property(lambda self: self.aval.weak_type, "True if the dtype adapts, as a Python number's does."),
    "T": _property(lambda self: fnp.transpose(self), "The dimensions in reverse order."),
    "mT": _property(lambda self: fnp.matrix_transpose(self), "The last two dimensions exchanged."),
    "real": _property(lambda self: unary.real(self), "The real part."),
    "imag": _property(lambda self: unary.imag(self), "The imaginary part."),
    "at": _property(_at, "Updates by index, out of place: x.at[idx].set(value), .add(value), ..."),
    "flat": _property(_flat, "The elements in row-major order: an iterator that can be indexed."),
}
for _name in _ASSIGNED:
    _PROPERTIES[_name] = _PROPERTIES[_name].setter(_assign(_name))

_CONVERSIONS = {
    "__bool__": (conversions.array_bool, conversions.tracer_bool),
    "__int__": (conversions.array_int, conversions.tracer_int),
    "__float__": (conversions.array_float, conversions.tracer_float),
    "__complex__": (conversions.array_complex, conversions.tracer_complex),
    "__index__": (conversions.array_index, conversions.tracer_index),
    "item": (conversions.array_item, conversions.tracer_item),
    "tolist": (conversions.array_tolist, conversions.tracer_tolist),
    "tobytes": (conversions.array_tobytes, conversions.tracer_tobytes),
    "__repr__": (conversions.array_repr, conversions.tracer_repr),
    "__str__": (conversions.array_str, conversions.tracer_repr),
    "__format__": (conversions.array_format, conversions.tracer_format),
}


def _to_device(self: Any, device: Any, /, *, stream: Any = None) -> Any:
    """Return the array on another device."""
    return xla.device_put(self, xla.find_device(device))


def _copy_to_host_async(self: Any) -> None:
    """Start to copy the array to the host; a later read waits for the copy. Does nothing for several devices."""
    xla.arrays.check_alive(self)
    if len(self.devices()) == 1:
        self._copy_single_device_array_to_host_async()


_SHARDING = {
    "sharding": "The devices that hold the array, and the part of it on each.",
    "addressable_shards": "The parts on devices of this process, as `Shard`s.",
    "global_shards": "The parts on all devices, as `Shard`s.",
    "is_fully_replicated": "True if each device has the whole array.",
    "committed": "True if the user chose the device of the array, or of an array that it was computed from.",
    "is_fully_addressable": "True if all devices belong to this process.",
}


def _of_sharding(name: str) -> Callable[[Any], Any]:
    def get(self: Any) -> Any:
        from functorch_like.backends.xla import sharded_arrays  # late: few programs have meshes

        return sharded_arrays.PROPERTIES[name](self)

    return get


def _repr_html(self: Any) -> str:
    """Return the display for notebooks: type, device, values and statistics."""
    from functorch_like.debug.array_display import ArrayDisplay  # only notebooks need it

    return ArrayDisplay(self)._repr_html_()


_DOC = """An array: immutable elements of one dtype, on a device, or on several.

Traced values are instances, too: `isinstance(x, ft.Array)` is true of both. Make arrays with `fnp.asarray`.
"""

#: By module of another library, the function in `adapters` that makes it take arrays and tracers.
_ADAPTED = {
    "einops._backends": "einops_backend",
    "array_api_extra._at": "out_of_place_updates",
    "array_api_extra._lib._at": "out_of_place_updates",  # of older versions, and the copies in other libraries
    "scipy._lib.array_api_extra._lib._at": "out_of_place_updates",
    "scipy._external.array_api_extra._lib._at": "out_of_place_updates",
    "sklearn.externals.array_api_extra._at": "out_of_place_updates",
    "sklearn.externals.array_api_extra._lib._at": "out_of_place_updates",
}


def install() -> None:
    """Attach the methods, operators and properties to arrays and tracers. A second call changes nothing."""
    arrays, tracers = _operators()
    for name, (array, tracer) in _CONVERSIONS.items():
        arrays[name], tracers[name] = array, tracer
    for table in (arrays, tracers):
        table.update(_METHODS)
        table.update(_PROPERTIES)
    for name in ("__array__", "__reduce__"):  # those that `backends.xla.arrays` has attached
        arrays[name] = getattr(ArrayImpl, name)
    arrays["__dir__"] = tracers["__dir__"] = foreign_methods.listing
    memory = wrap_public_function(conversions.array_interface)
    arrays["__array_interface__"] = _property(memory, "Memory of the array, for NumPy and PIL.")
    arrays["__array_priority__"] = 1000  # NumPy's operators defer to the array's; its functions get a NumPy array
    arrays["device"] = _property(xla.device_of, "The device the array is on.")
    arrays["devices"] = xla.devices_of
    arrays["to_device"] = _to_device
    arrays["copy_to_host_async"] = _copy_to_host_async
    for name, doc in _SHARDING.items():
        arrays[name] = _property(_of_sharding(name), doc)
    arrays["_repr_html_"] = tracers["_repr_html_"] = _repr_html
    arrays["addressable_data"] = lambda self, index: self.addressable_shards[index].data
    arrays["__dlpack__"], arrays["__dlpack_device__"] = dlpack.to_dlpack, dlpack.dlpack_device
    tracers["__hash__"] = conversions.tracer_hash
    tracers["block_until_ready"] = lambda self: self
    tracers["__array__"], tracers["__dlpack__"], tracers["__reduce__"] = (
        conversions.tracer_array,
        conversions.tracer_dlpack,
        conversions.tracer_reduce,
    )
    for name, attribute in arrays.items():
        xla.attach(name, wrap_public_function(attribute, name=name))
    present(arrays, _DOC)
    for name, attribute in tracers.items():
        setattr(Tracer, name, wrap_public_function(attribute, name=name))
    for name in foreign_methods.INSTEAD:
        xla.attach(name, foreign_methods.Renamed(name))
        setattr(Tracer, name, foreign_methods.Renamed(name))
    for name, remedy in foreign_methods.OF_VALUES.items():
        reason = f"a traced value has no attribute {name!r}: it is on no device yet; {remedy}"
        setattr(Tracer, name, foreign_methods.Missing(name, reason))
    for module, adapter in _ADAPTED.items():
        on_import(module, ("functorch_like.adapters", adapter))
