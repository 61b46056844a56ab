"""Dependence on the platform that a program is compiled for: platform_index."""

from __future__ import annotations

import numpy as np

from functorch_like import dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import NotDefined, Primitive, SampleInput
from functorch_like.errors import UnsupportedError


def index_of(platform: str, platforms: tuple[str, ...]) -> int:
    """The position of a platform, or of "default"."""
    same = {"cuda": "gpu"}
    names = [same.get(p, p) for p in platforms]
    if platform not in names and "default" not in names:
        raise UnsupportedError(
            f"there is no function for the platform {platform!r}, only for {platforms}", fix="give one, or a default"
        )
    return names.index(platform if platform in names else "default")


_NONE = NotDefined("platform_index has no operands that could be differentiated or mapped; none is needed")

#: Index of the platform, among several, that the program is compiled for; ("cpu", "default") are 0 and 1.
platform_index = Primitive(
    "platform_index",
    shape=lambda *, platforms: ShapedArray((), dtypes.int32),
    ref=lambda *, platforms: np.int32(index_of("cpu", platforms)),
    lower=lambda e, *, platforms: e.constant(
        np.int32(index_of("gpu" if e.platform == "cuda" else e.platform, platforms))
    ),
    jvp=_NONE,
    transpose=_NONE,
    batch=_NONE,
    samples=lambda: [SampleInput((), {"platforms": p}) for p in [("cpu",), ("cuda", "cpu"), ("gpu", "default")]],
)
