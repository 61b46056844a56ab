"""Dtypes: names, defaults and the promotion lattice.

Promotion follows the lattice of JAX's type promotion semantics (https://docs.jax.dev/en/latest/type_promotion.html):
a weakly typed value (from a Python scalar) yields to any strong one of its kind or higher. All 64-bit types are
always there; only the defaults are 32-bit, and `set_default_dtype` changes them.
"""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import ml_dtypes
import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.backends import promotion, xla
from functorch_like.backends.external_settings import External
from functorch_like.backends.settings import Values, in_force
from functorch_like.errors import ArgumentError, DtypeError

if TYPE_CHECKING:
    from functorch_like.typing import DTypeLike

DType = np.dtype[Any]

bool_ = np.dtype(np.bool_)
int8, int16, int32, int64 = (np.dtype(f"int{n}") for n in (8, 16, 32, 64))
uint8, uint16, uint32, uint64 = (np.dtype(f"uint{n}") for n in (8, 16, 32, 64))
float16, float32, float64 = (np.dtype(f"float{n}") for n in (16, 32, 64))
complex64, complex128 = np.dtype("complex64"), np.dtype("complex128")
bfloat16 = np.dtype(ml_dtypes.bfloat16)
int4, uint4 = np.dtype(ml_dtypes.int4), np.dtype(ml_dtypes.uint4)
float8_e4m3fn, float8_e5m2 = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.float8_e5m2)
float8_e4m3b11fnuz = np.dtype(ml_dtypes.float8_e4m3b11fnuz)
float8_e4m3fnuz, float8_e5m2fnuz = np.dtype(ml_dtypes.float8_e4m3fnuz), np.dtype(ml_dtypes.float8_e5m2fnuz)
float8_e3m4, float8_e4m3 = np.dtype(ml_dtypes.float8_e3m4), np.dtype(ml_dtypes.float8_e4m3)
float8_e8m0fnu, float4_e2m1fn = np.dtype(ml_dtypes.float8_e8m0fnu), np.dtype(ml_dtypes.float4_e2m1fn)

#: The dtype of derivatives with respect to integers and booleans: it has one value, zero, and no bytes.
float0 = np.dtype([("float0", np.void, 0)])

#: Floats of a byte, and of half a byte.
FLOAT8 = (float8_e4m3fn, float8_e5m2, float8_e4m3b11fnuz, float8_e4m3fnuz, float8_e5m2fnuz, float8_e3m4, float8_e4m3,
          float8_e8m0fnu, float4_e2m1fn)  # fmt: skip
SIGNED = (int8, int16, int32, int64)
UNSIGNED = (uint8, uint16, uint32, uint64)
FLOATS = (bfloat16, float16, float32, float64)
COMPLEX = (complex64, complex128)
# Without int2 and uint2: XLA's CPU compiler ends the process on their concatenation (jaxlib 0.10.2).
SMALL = (int4, uint4, *FLOAT8)
ALL = (bool_, *SIGNED, *UNSIGNED, *FLOATS, *COMPLEX, *SMALL)


def is_float(dtype: DType) -> bool:
    """Return True for real floating point, the narrow kinds included."""
    return dtype.kind == "f" or dtype == bfloat16 or dtype in FLOAT8


def is_complex(dtype: DType) -> bool:
    """Return True for complex floating point."""
    return dtype.kind == "c"


def is_inexact(dtype: DType) -> bool:
    """Return True for real or complex floating point: the dtypes with derivatives."""
    return dtype.kind in "fc" or dtype == bfloat16 or dtype in FLOAT8


def is_integer(dtype: DType) -> bool:
    """Return True for signed or unsigned integers, int4 included; not for bool."""
    return dtype.kind in "iu" or dtype in (int4, uint4)


def is_signed(dtype: DType) -> bool:
    """Return True for signed integers."""
    return dtype.kind == "i" or dtype == int4


def is_unsigned(dtype: DType) -> bool:
    """Return True for unsigned integers."""
    return dtype.kind == "u" or dtype == uint4


def real_part(dtype: DType) -> DType:
    """Return the dtype of the real part: complex64 to float32, complex128 to float64, others unchanged."""
    return {complex64: float32, complex128: float64}.get(dtype, dtype)


def complex_of(dtype: DType) -> DType:
    """Return the complex dtype that holds values of this one."""
    return complex128 if dtype in (float64, complex128, int64, uint64) else complex64


def accumulator(dtype: DType) -> DType:
    """Return the dtype in which sums and products accumulate: float32 for narrower floats."""
    return float32 if dtype.itemsize < 4 and is_float(dtype) else dtype


def finfo(dtype: Any) -> Any:
    """Return the limits of a floating dtype, as `numpy.finfo`; bfloat16 and float8 included."""
    return ml_dtypes.finfo(np.dtype(dtype))


def iinfo(dtype: DTypeLike | None) -> Any:
    """Return the limits of an integer dtype, as `numpy.iinfo`; int4 included.

    Args:
        dtype: integer dtype, or an array.

    Returns:
        An object with `bits`, `min`, `max` and `dtype`.

    >>> ft.numpy.iinfo("int4").max
    7
    """
    return ml_dtypes.iinfo(np.dtype(dtype if isinstance(dtype, type) else getattr(dtype, "dtype", dtype)))


# ------------------------------------------------------------------------------------------------------- defaults
# Part of the jit key: a program traced under one default must not be reused under another.
_DEFAULT_FLOAT = xla.config("default_float", "float32")
_DEFAULT_INT = xla.config("default_int", "int32")
for _config in (_DEFAULT_FLOAT, _DEFAULT_INT):
    External(
        _config.name,
        _config.value,
        "The dtype that Python numbers and creation functions give.",
        changes="jaxpr: dtypes",
        read=lambda config=_config: config.value,
        by="ft.set_default_dtype",
    )


def set_default_dtype(dtype: DTypeLike) -> None:
    """Set the dtype that Python numbers and creation functions give, in every thread.

    Args:
        dtype: a float dtype (float16, bfloat16, float32, float64) sets the default of floats, and with it that of
            complex numbers; int32 or int64 sets the default of ints.

    Raises:
        ArgumentError: for any other dtype.

    >>> set_default_dtype("float64"); default_float().name
    'float64'
    >>> set_default_dtype("float32")
    """
    new = exact_dtype(dtype)
    if new == float64:
        _NARROW.set_global(False)
    if new in FLOATS:
        _DEFAULT_FLOAT.set_global(new.name)
    elif new in (int32, int64):
        _DEFAULT_INT.set_global(new.name)
    else:
        raise ArgumentError(
            f"{new.name} cannot be a default dtype",
            fix="give a float dtype (float16, bfloat16, float32, float64), or int32 or int64",
        )


def default_float() -> DType:
    """Return the dtype of Python floats and of arrays that creation functions make."""
    return np.dtype(_DEFAULT_FLOAT.value)


def default_int() -> DType:
    """Return the dtype of Python ints."""
    return np.dtype(_DEFAULT_INT.value)


def default_complex() -> DType:
    """Return the dtype of Python complex numbers."""
    return complex128 if _DEFAULT_FLOAT.value == "float64" else complex64


def default_for(kind: type) -> DType:
    """Return the default dtype of Python's bool, int, float or complex."""
    return {bool: bool_, int: default_int(), float: default_float(), complex: default_complex()}[kind]


# ------------------------------------------------------------------------------------------------ 64 bits as 32
#: True to treat the 64-bit dtypes that users name, and NumPy arrays of them, as 32-bit. Set under JAX's names only, as
#: JAX does without `jax_enable_x64`.
_NARROW = xla.config("narrow_64", False)
_HALVES = {float64: float32, int64: int32, uint64: uint32, complex128: complex64}

#: True to count NumPy's scalars and arrays of rank 0, as arguments of users, as arrays of their dtype, and not as
#: numbers. Set under JAX's names only.
STRONG_SCALARS = xla.config("strong_numpy_scalars", False)


def narrow_int() -> DType:
    """Return the dtype of integers made of booleans, and of places of a search: int32 under JAX's names."""
    return int32 if STRONG_SCALARS.value else default_int()


def inexact_dtype(dtype: DType) -> DType:
    """Return the dtype of floats made of an array: its own of floats, that of quotients and means of others."""
    if is_inexact(dtype):
        return dtype
    return float32 if dtype.itemsize < 8 and STRONG_SCALARS.value else default_float()


def narrowed(dtype: DType) -> DType:
    """Return the dtype of arrays for which a user names this dtype: 32 bits for 64 under `narrow_64`."""
    return _HALVES.get(dtype, dtype) if _NARROW.value else dtype


def is_constant(x: np.ndarray[Any, Any] | np.generic) -> bool:
    """Return True for a constant of the package: a read-only array of rank 0 that is not a view."""
    return type(x) is np.ndarray and not x.ndim and not x.flags.writeable and x.flags.owndata


def of_host(x: Any) -> DType:
    """Return the dtype that a NumPy array or scalar has as an operand; constants of the package keep theirs."""
    result = exact_dtype(x.dtype)
    if _NARROW.value and result in _HALVES and not is_constant(x):
        return _HALVES[result]
    return result


def is_narrowed(x: Any) -> bool:
    """Return True for a NumPy array or scalar that does not keep its dtype as an operand."""
    return _NARROW.value and isinstance(x, (np.ndarray, np.generic)) and x.dtype in _HALVES and of_host(x) != x.dtype


def may_be_narrowed(dtype: DType) -> bool:
    """Return True if NumPy arrays of a dtype are narrowed anywhere in the process."""
    return dtype in _HALVES and _NARROW.global_value


_PYTHON = {bool: "bool", int: int, float: float, complex: complex}


def as_dtype(dtype: Any) -> DType:
    """Return a NumPy dtype for a dtype, name, scalar type or Python type; int, float and complex give the defaults.

    Raises:
        DtypeError: for a dtype that arrays do not have, and for an array, whose own dtype may not be meant.
    """
    if hasattr(dtype, "__array__") and not isinstance(dtype, (type, np.generic)):
        raise DtypeError(
            f"an array of shape {getattr(dtype, 'shape', ())} is not a dtype",
            fix="use x.dtype for the dtype of an array x; arrays to join go in one list: [a, b]",
        )
    return narrowed(exact_dtype(dtype))


def is_python_type(dtype: Any) -> bool:
    """Return True for Python's `int`, `float` and `complex`: `np.dtype("float64") == float` is True as well."""
    return type(dtype) is type and dtype in (int, float, complex)


def exact_dtype(dtype: Any) -> DType:
    """Return a dtype as `as_dtype` does, without narrowing: for saved values, and for queries.

    Raises:
        DtypeError: for a dtype that arrays do not have.
    """
    if is_python_type(dtype):
        return default_for(dtype)
    try:
        made = np.dtype(dtype)
    except TypeError:
        size = "; the sizes of a shape are one tuple: (3, 4)" if isinstance(dtype, int) else ""
        fix = f"give a name such as 'float32' or a NumPy dtype{size}"
        raise DtypeError(f"{dtype!r} is not a dtype", fix=fix) from None
    known = _KNOWN.get(made)
    if known is None:
        if not made.isnative and made.newbyteorder("=") in _KNOWN:
            raise DtypeError(
                f"{made} has the byte order of other processors",
                fix='convert a NumPy array with x.astype(x.dtype.newbyteorder("=")), or by fnp.asarray(x); '
                f"as a dtype name {made.newbyteorder('=').name!r}",
            )
        name = "bfloat16" if made.itemsize == 2 else made.names[0] if made.names else "float8_e4m3fn"
        if made.kind == "V" and (made.names or (name,)) == (name,) and made.itemsize in (1, 2):
            raise DtypeError(
                f"{made} is the dtype of bfloat16, float8 and int4 in files that NumPy reads without their names",
                fix=f'name it with x.view("{name}") or another name; fnp.save, savez and load keep such dtypes',
            )
        if made.kind in "OSUT":
            raise DtypeError(
                f"{made} is not a dtype of arrays here, which hold numbers",
                fix="convert objects to numbers, x.astype('float32'), where they are some; encode names as integers, "
                "np.unique(x, return_inverse=True)[1]; keep text outside",
            )
        fix = _CONVERSIONS.get("fields" if made.names else made.kind) or f"use one of {', '.join(d.name for d in ALL)}"
        raise DtypeError(f"{made} is not a dtype of arrays here", fix=fix)
    return known


#: How NumPy's arrays of other kinds become numbers.
_CONVERSIONS = {
    "M": "convert times to numbers: (t - t[0]) / np.timedelta64(1, 's') are seconds",
    "m": "convert durations to numbers: d / np.timedelta64(1, 's') are seconds",
    "f": "convert it to 64 bits, x.astype('float64'), or less",
    "c": "convert it to 128 bits, x.astype('complex128'), or less",
    "fields": "elements are single numbers: take the fields apart, {name: x[name] for name in x.dtype.names}",
}


#: One object for each dtype: NumPy makes equal ones (`newbyteorder`), and fast paths compare by identity.
_KNOWN = {dtype: dtype for dtype in ALL}

# --------------------------------------------------------------------------------------------------------- lattice
# Nodes are dtypes, and the three weak kinds; an edge leads to the next wider node.
_I, _F, _C = "int*", "float*", "complex*"
_EDGES: dict[Any, tuple[Any, ...]] = {
    bool_: (_I,),
    _I: (uint8, int8),
    uint8: (int16, uint16), uint16: (int32, uint32), uint32: (int64, uint64), uint64: (_F,),
    int8: (int16,), int16: (int32,), int32: (int64,), int64: (_F,),
    _F: (bfloat16, float16, _C),
    bfloat16: (float32,), float16: (float32,), float32: (float64, complex64), float64: (complex128,),
    _C: (complex64,), complex64: (complex128,), complex128: (),
}  # fmt: skip
for _f8 in FLOAT8:
    _EDGES[_f8] = ()
    _EDGES[_F] += (_f8,)
for _i4 in (int4, uint4):
    _EDGES[_i4] = ()
    _EDGES[_I] += (_i4,)


def _above(node: Any) -> frozenset[Any]:
    return frozenset({node}).union(*(_above(n) for n in _EDGES[node]))


_UPPER = {node: _above(node) for node in _EDGES}


def _node(dtype: DType, weak: bool) -> Any:
    if not weak or dtype == bool_:
        return dtype
    return _I if is_integer(dtype) else _C if is_complex(dtype) else _F


@functools.lru_cache(maxsize=4096)
def _join(nodes: frozenset[Any]) -> Any:
    common = frozenset.intersection(*(_UPPER[n] for n in nodes))
    for node in common:
        if common <= _UPPER[node]:
            return node
    return None


def promote(*avals: ShapedArray) -> tuple[DType, bool]:
    """Return the dtype that values of these avals promote to, and whether it is weak.

    Raises:
        DtypeError: where the lattice has no common dtype (float8 and int4 promote to no other dtype implicitly), or
            promotion is strict (`backends.promotion`) and the dtypes differ.
    """
    return promotion_of(avals)[:2]


def promotion_of(avals: Sequence[ShapedArray]) -> tuple[DType, bool, bool]:
    """Return the result of `promote`, and whether it widens floating-point arrays to 64 bits."""
    kinds = tuple((a.dtype, a.weak_type) for a in avals)
    narrow = _NARROW.global_value and _DEFAULT_INT.value == "int32"  # in the package's own functions, too
    return _promote(kinds, _DEFAULT_FLOAT.value, _DEFAULT_INT.value, narrow, in_force())


@functools.lru_cache(maxsize=4096)
def _promote(
    kinds: tuple[tuple[DType, bool], ...], _float: str, _int: str, narrow: bool, _set: Values
) -> tuple[DType, bool, bool]:
    nodes = frozenset(_node(d, w) for d, w in kinds)
    joined = _join(nodes)
    if narrow and not any(d in _HALVES for d, _ in kinds):  # uint32 and int32 are no int64
        joined = _HALVES.get(joined, joined)
    strong = {node for node in nodes if not isinstance(node, str)}
    if strong and strong != {joined} and promotion.dtypes == "strict":
        kind = lambda d: "int" if is_integer(d) else "complex" if is_complex(d) else "float"
        names = ", ".join(dict.fromkeys(f"a Python {kind(d)}" if w else d.name for d, w in kinds))
        error = DtypeError(
            f"{names} meet, and promotion is strict",
            fix="convert one of them with x.astype(...), or leave out numpy_dtype_promotion('strict')",
        )
        error.promotion = "strict"
        raise error
    if joined is None:
        names = ", ".join(dict.fromkeys(d.name for d, _ in kinds))
        raise DtypeError(f"no implicit common dtype of {names}", fix="convert one of them with x.astype(...)")
    if not isinstance(joined, str):
        widens = real_part(joined) == float64 and any(not w and is_narrow(d) for d, w in kinds)
        return joined, all(w for _, w in kinds) and joined != bool_, widens
    weak_dtypes = {d for d, w in kinds if w and _node(d, w) == joined}
    default = {_I: default_int(), _F: default_float(), _C: default_complex()}[joined]
    return _joined_weak(weak_dtypes, joined) if weak_dtypes else default, True, False


def _joined_weak(kinds: set[DType], node: str) -> DType:
    """Return the dtype of a weak result: that of the lattice (np.float64(2) stays 64-bit), without a change of kind."""
    joined = _join(frozenset(kinds))
    if joined is None or isinstance(joined, str) or _node(joined, True) != node:
        return max(kinds, key=lambda d: (d.itemsize, d.kind == "i", d.name))
    return joined


def is_narrow(dtype: DType) -> bool:
    """Return True for real or complex floating point with less than 64 bits for a real number."""
    return is_inexact(dtype) and real_part(dtype) != float64


def result_type(*values: Any) -> DType:
    """Return the dtype that dtypes (strong) and avals promote to."""
    avals = [v if isinstance(v, ShapedArray) else ShapedArray((), as_dtype(v)) for v in values]
    return promote(*avals)[0]


# ------------------------------------------------------------------------------------------------------- questions
def issubdtype(arg1: DTypeLike, arg2: DTypeLike) -> bool:
    """Return True if a dtype is of a kind: `fnp.floating`, `fnp.integer`, ... or another dtype.

    Args:
        arg1: dtype, name of one, or kind.
        arg2: kind, or dtype.

    Returns:
        True or False.

    >>> import functorch_like.numpy as fnp
    >>> fnp.issubdtype(fnp.bfloat16, fnp.floating)
    True
    """
    is_numpy_type = isinstance(arg1, type) and issubclass(arg1, (np.number, np.bool_))  # kinds of dtypes among them
    if not is_numpy_type and isinstance(arg2, type) and issubclass(arg2, np.generic):
        dtype = exact_dtype(arg1)
        if not issubclass(dtype.type, (np.number, np.bool_)):  # a kind of number that NumPy does not have
            kind = np.floating if is_float(dtype) else np.signedinteger if is_signed(dtype) else np.unsignedinteger
            return issubclass(kind, arg2) or dtype.type is arg2
    return bool(np.issubdtype(arg1, arg2))


def canonicalize_dtype(dtype: Any) -> DType:
    """Return the dtype that a dtype, name, scalar type or Python type means. (64-bit dtypes stay as they are.)

    Raises:
        DtypeError: for something that is not a dtype of arrays here.

    >>> canonicalize_dtype("int64").name, canonicalize_dtype(float).name
    ('int64', 'float32')
    """
    return as_dtype(dtype)


def itemsize_bits(dtype: Any) -> int:
    """Return the number of bits of an element.

    >>> itemsize_bits("float32"), itemsize_bits("int4")
    (32, 4)
    """
    exact = exact_dtype(dtype)
    return 4 if exact in (int4, uint4, float4_e2m1fn) else 8 * exact.itemsize


def scalar_type_of(x: Any) -> type:
    """Return the Python type of a number: bool, int, float or complex.

    Args:
        x: an array, a number or a dtype.

    Returns:
        The type whose kind the dtype is of.

    >>> scalar_type_of(1), scalar_type_of(np.ones(2)), scalar_type_of("bfloat16")
    (<class 'int'>, <class 'float'>, <class 'float'>)
    """
    if type(x) in _PYTHON:
        return type(x)
    dtype = as_dtype(getattr(x, "dtype", x))
    return bool if dtype == bool_ else int if is_integer(dtype) else complex if is_complex(dtype) else float
