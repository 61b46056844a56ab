"""Functions that inspect dtypes, under JAX's names."""

import ml_dtypes
import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import dtypes
from functorch_like.errors import DtypeError


def test_sizes_and_kinds():
    assert [dtypes.itemsize_bits(d) for d in ("int4", "uint4", "float8_e5m2", "bool", "complex128")] == [
        4,
        4,
        8,
        8,
        128,
    ]
    kinds = [
        dtypes.scalar_type_of(x) for x in (True, 1, 1.0, 1j, np.int8(1), fnp.ones(2, "bfloat16"), "uint4", fnp.bool_)
    ]
    assert kinds == [bool, int, float, complex, int, float, int, bool]
    assert dtypes.canonicalize_dtype(fnp.float16) == np.float16
    assert dtypes.canonicalize_dtype(int) == np.int32
    with pytest.raises(DtypeError, match="not a dtype"):
        dtypes.canonicalize_dtype("float3")


def test_issubdtype_knows_the_dtypes_that_numpy_does_not():
    for issubdtype in (dtypes.issubdtype, fnp.issubdtype):
        assert issubdtype("bfloat16", np.floating) and issubdtype(dtypes.float8_e5m2, np.inexact)
        assert issubdtype("int4", np.signedinteger) and not issubdtype("uint4", np.signedinteger)
        assert issubdtype(dtypes.bfloat16.type, np.floating) and issubdtype("bfloat16", dtypes.bfloat16.type)
        assert issubdtype(np.floating, np.inexact) and issubdtype(fnp.float8_e4m3fn, np.floating)
        assert not issubdtype("bfloat16", np.integer) and issubdtype(np.int32, np.number)
    assert ft.jit(lambda x: x * dtypes.issubdtype(x.dtype, np.floating))(2.0) == 2.0


@pytest.mark.parametrize("name", ["float8_e3m4", "float8_e4m3", "float8_e8m0fnu", "float4_e2m1fn"])
def test_rare_floats(name):
    """Such arrays are converted, compared, added, sorted and joined. float8_e8m0fnu has no zero and no sign."""
    x = fnp.asarray([1.0, 2.0, 0.5]).astype(name)
    assert getattr(fnp, name)(1).dtype == name == x.dtype
    assert np.asarray(x).dtype.name == name
    assert fnp.asarray(np.asarray(x)).astype("float32").tolist() == [1.0, 2.0, 0.5]
    assert (x + x).astype("float32").tolist() == [2.0, 4.0, 1.0]
    assert (x > x[2]).tolist() == [True, True, False]
    assert fnp.concat([fnp.sort(x), x[::2]]).astype("float32").tolist() == [0.5, 1.0, 2.0, 1.0, 0.5]
    assert fnp.max(x).astype("float32") == 2.0
    assert fnp.issubdtype(name, fnp.floating) and fnp.isdtype(name, "real floating")
    assert fnp.finfo(name).max == float(ml_dtypes.finfo(name).max)
    with pytest.raises(TypeError, match="astype"):
        x + fnp.ones(3)
