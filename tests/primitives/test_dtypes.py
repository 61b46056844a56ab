"""A primitive's error about a wrong dtype names the dtypes that it takes."""

import re

import numpy as np
import pytest

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import TABLE, aval_of
from functorch_like.errors import DtypeError, FtError

KINDS = (dtypes.bool_, dtypes.int32, "uint8", dtypes.complex64, dtypes.float32, dtypes.FLOAT8[0])
WORDS = r"floating point|integer|complex|real|bool|number|float32|int32"


def refusal(primitive, avals, params):
    """Return the reason of the error about the dtype; None if there is no error or another one."""
    try:
        primitive.shape(*avals, **params)
    except DtypeError as error:
        return error.reason
    except FtError:
        return None
    return None


@pytest.mark.parametrize("primitive", [pytest.param(r, id=r.name) for r in TABLE.values() if r.partial_eval is None])
def test_what_is_refused_names_what_is_taken(primitive):
    for sample in primitive.samples()[:1]:
        avals = [o if hasattr(o, "weak_type") else aval_of(o) for o in sample.operands]
        for dtype in KINDS:
            given = [a.update(dtype=dtype) if a.dtype == avals[0].dtype else a for a in avals]
            said = refusal(primitive, given, sample.params)
            assert said is None or re.search(WORDS, re.sub(r"\w+\[[\d,]*\]", "", said)), said


def test_positions_must_fit_their_dtype():
    for name in ("argmax", "argmin"):
        primitive = TABLE[name]
        assert (
            primitive.shape(ShapedArray((128,), "float32"), axes=(0,), index_dtype=np.dtype(np.int8)).dtype == np.int8
        )
        with pytest.raises(DtypeError, match="int8 cannot hold positions"):
            primitive.shape(ShapedArray((129,), "float32"), axes=(0,), index_dtype=np.dtype(np.int8))
