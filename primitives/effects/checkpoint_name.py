"""`name`: the identity, which gives a value a name that policies of checkpoints read."""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like.avals import ShapedArray
from functorch_like.core import Primitive, SampleInput

name = Primitive(
    "name",
    shape=lambda x, *, name: x,
    ref=lambda x, *, name: np.array(x),
    lower=lambda e, x, *, name: x,
    jvp=lambda primals, tangents, *, name: (_named(primals[0], name), tangents[0]),
    transpose=lambda ct, args, *, name: [ct],
    batch=lambda axis, args, dims, *, name: (_named(args[0], name), dims[0]),
    samples=lambda: [
        SampleInput((ShapedArray(shape, dtype),), {"name": "x"})
        for shape, dtype in [((), "float32"), ((2, 3), "complex64"), ((0, 2), "bfloat16"), ((3,), "int32")]
    ],
    kind="movement",
)


def _named(x: Any, label: str) -> Any:
    return name(x, name=label)
