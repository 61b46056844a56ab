"""`jax.scipy.ndimage`: modes of `map_coordinates` by JAX's meaning of their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from functorch_like.scipy import ndimage

_MODES = {"constant": "grid-constant", "wrap": "grid-wrap"}


def map_coordinates(input: Any, coordinates: Sequence[Any], order: int, mode: str = "constant", cval: Any = 0.0) -> Any:
    """Call `ft.scipy.ndimage.map_coordinates`; "constant" and "wrap" are SciPy's "grid-constant" and "grid-wrap".

    Args:
        input: array.
        coordinates: an array for each dimension of the input.
        order: 0 takes the nearest element, 1 interpolates.
        mode: what stands beyond the edges.
        cval: value beyond the edges, for "constant".

    Returns:
        An array of the shape of the coordinates and the dtype of the input.

    Raises:
        ArgumentError: for another order or mode.
    """
    return ndimage.map_coordinates(input, coordinates, order, _MODES.get(mode, mode), cval)
