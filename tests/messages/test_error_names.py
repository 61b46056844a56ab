"""Names by which users catch errors, JAX's names included."""

import numpy as np
import pytest

import functorch_like as ft
import functorch_like.numpy as fnp
from functorch_like import errors

X = np.ones(3, np.float32)
CASES = {
    "truth": (errors.TracerBoolConversionError, lambda x: 1 if x[0] > 0 else 0),
    "index": (errors.TracerIntegerConversionError, lambda x: [1, 2, 3][x[0].astype("int32")]),
    "size": (errors.TracerIntegerConversionError, lambda x: list(range(x[0].astype("int32")))),
    "numpy": (errors.TracerArrayConversionError, lambda x: np.sin(x)),
    "asarray": (errors.TracerArrayConversionError, lambda x: np.asarray(x)),
    "mask": (errors.NonConcreteBooleanIndexError, lambda x: x[x > 0]),
    "update": (errors.NonConcreteBooleanIndexError, lambda x: x.at[x > 0].set(X)),
    "number": (errors.ConcretizationTypeError, lambda x: float(x[0])),
}


@pytest.mark.parametrize("name", CASES)
def test_what_a_traced_value_cannot_be_has_a_name(name):
    kind, fun = CASES[name]
    with pytest.raises(kind) as caught:
        ft.jit(fun)(X)
    assert type(caught.value) is kind and isinstance(caught.value, (TypeError, errors.ConcretizationError))
    assert "what to do" in str(caught.value)


def test_other_names():
    kept = []
    ft.jit(lambda x: kept.append(x) or x)(X)
    with pytest.raises(errors.UnexpectedTracerError):
        kept[0] + 1
    with pytest.raises(errors.TypePromotionError):
        fnp.ones(2, "float8_e5m2") + fnp.ones(2, "float16")
    assert issubclass(errors.NonConcreteBooleanIndexError, IndexError)
    assert issubclass(errors.JaxRuntimeError, RuntimeError)
