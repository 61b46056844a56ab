"""Initializers of weights: functions of a key, a shape and a dtype.

Most of them choose the variance by the number of inputs or outputs of a unit, fan_in and fan_out: the size of one axis
of the shape, times the receptive field. The receptive field is the product of the sizes of all other axes.

>>> nn.initializers.he_normal()(ft.random.key(0), (3, 3, 16, 32)).shape
(3, 3, 16, 32)
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from functorch_like import dtypes, lax, random
from functorch_like import numpy as fnp
from functorch_like.backends import random as random_settings
from functorch_like.calling import api_boundary
from functorch_like.errors import ArgumentError, ShapeError
from functorch_like.numpy import binary, creation, promotion, shapes
from functorch_like.numpy.axes import shape_of
from functorch_like.random import typed_keys

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike, DTypeLike, Shape

Initializer = Callable[..., Any]


def _dtype(dtype: Any) -> Any:
    return dtypes.default_float() if dtype is None else dtypes.as_dtype(dtype)


def _initializer(init: Initializer, option: object = None) -> Initializer:
    """Return an initializer as users call it, unless a key was given for the first option of its maker."""
    if getattr(option, "dtype", None) == "uint32" or typed_keys.is_keys(option):
        raise promotion.error(
            ArgumentError,
            "the functions of nn.initializers make initializers, which take the key",
            "call the result: nn.initializers.he_normal()(key, shape)",
        )
    init.__name__ = init.__qualname__ = "initializer"
    return api_boundary.public(init)


def _times(x: Any, factor: float) -> Any:
    return binary.multiply(x, factor)


# ---------------------------------------------------------------------------------------------------- constant values
def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer with a constant value.

    Args:
        value: number, or array that broadcasts to the shape.
        dtype: dtype for calls of the initializer without one; the default float dtype if None.

    Returns:
        A function `(key, shape, dtype)` that gives an array of that shape and dtype.

    >>> nn.initializers.constant(2.0)(ft.random.key(0), (2,)).tolist()
    [2.0, 2.0]
    """

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        return creation.full(shape, value, _dtype(dtype))

    return _initializer(init)


def zeros(key: ArrayLike | None, shape: Shape, dtype: DTypeLike | None = None) -> Array:
    """Return zeros; the key is not used.

    Args:
        key: not used.
        shape: shape of the result.
        dtype: dtype of the result; the default float dtype if None.

    Returns:
        An array of that shape, in that dtype.

    >>> nn.initializers.zeros(ft.random.key(0), (2,)).tolist()
    [0.0, 0.0]
    """
    return creation.zeros(shape, dtype)


def ones(key: ArrayLike | None, shape: Shape, dtype: DTypeLike | None = None) -> Array:
    """Return ones; the key is not used.

    Args:
        key: not used.
        shape: shape of the result.
        dtype: dtype of the result; the default float dtype if None.

    Returns:
        An array of that shape, in that dtype.

    >>> nn.initializers.ones(ft.random.key(0), (2,)).tolist()
    [1.0, 1.0]
    """
    return creation.ones(shape, dtype)


def normal(stddev: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer with normal numbers of mean 0.

    Args:
        stddev: standard deviation.
        dtype: dtype for calls of the initializer without one; the default float dtype if None.

    Returns:
        A function `(key, shape, dtype) -> array`.

    >>> nn.initializers.normal(0.1)(ft.random.key(0), (2, 3)).shape
    (2, 3)
    """

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        return _times(random.normal(key, shape, _dtype(dtype)), stddev)

    return _initializer(init, stddev)


def uniform(scale: float = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer with uniform numbers in [0, scale).

    Args:
        scale: upper bound.
        dtype: dtype for calls of the initializer without one; the default float dtype if None.

    Returns:
        A function `(key, shape, dtype) -> array`.

    >>> bool((nn.initializers.uniform(0.1)(ft.random.key(0), (9,)) < 0.1).all())
    True
    """

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        return random.uniform(key, shape, _dtype(dtype), 0.0, scale)

    return _initializer(init, scale)


def truncated_normal(
    stddev: float = 1e-2, dtype: DTypeLike | None = None, lower: float = -2.0, upper: float = 2.0
) -> Initializer:
    """An initializer with normal numbers, truncated to [lower, upper] and then multiplied by `stddev`.

    Args:
        stddev: factor of the numbers.
        dtype: dtype for calls of the initializer without one; the default float dtype if None.
        lower: lower bound, before the factor.
        upper: upper bound, before the factor.

    Returns:
        A function `(key, shape, dtype) -> array`.

    >>> bool((abs(nn.initializers.truncated_normal(1.0)(ft.random.key(0), (99,))) <= 2).all())
    True
    """

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        return _times(random.truncated_normal(key, lower, upper, shape, _dtype(dtype)), stddev)

    return _initializer(init, stddev)


# ---------------------------------------------------------------------------------------------------------- orthogonal
def orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of uniformly distributed orthogonal matrices, which preserve the length of vectors.

    A. M. Saxe, J. L. McClelland, S. Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep linear
    neural networks", arXiv:1312.6120.

    Args:
        scale: the factor.
        column_axis: the axis of the columns; all others together are the rows. The columns are orthonormal if there
            are no more of them than rows, otherwise the rows.
        dtype: dtype for calls of the initializer without one; the default float dtype if None.

    Returns:
        A function `(key, shape, dtype)` that gives an array of that shape and dtype.

    Raises:
        ShapeError: from the initializer, for a shape of fewer than two dimensions.

    >>> w = nn.initializers.orthogonal()(ft.random.key(0), (4, 3))
    >>> bool(fnp.allclose(w.T @ w, fnp.eye(3), atol=1e-5))
    True
    """

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        sizes, at = _columns(shape, column_axis, 2)
        columns = sizes[at]
        rows = math.prod(sizes) // max(columns, 1)
        matrix = random.orthogonal(key, rows, (), _dtype(dtype), columns)
        rest = [n for d, n in enumerate(sizes) if d != at]
        return _times(shapes.moveaxis(shapes.reshape(matrix, (*rest, columns)), -1, at), scale)

    return _initializer(init, scale)


def delta_orthogonal(scale: float = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """An initializer of kernels of convolutions that are orthogonal matrices in their centre and zero elsewhere.

    L. Xiao et al., "Dynamical isometry and a mean field theory of CNNs", arXiv:1806.05393.

    Args:
        scale: the factor.
        column_axis: the axis of outputs, which is one of the last two; the other is the axis of inputs.
        dtype: dtype for calls of the initializer without one; the default float dtype if None.

    Returns:
        A function `(key, shape, dtype)` that gives an array of that shape and dtype.

    Raises:
        ShapeError: from the initializer, for a shape of fewer than three or more than five dimensions, or with more
            inputs than outputs.

    >>> nn.initializers.delta_orthogonal()(ft.random.key(0), (3, 2, 4))[0].tolist()
    [[0.0, 0.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0]]
    """

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        sizes, at = _columns(shape, column_axis, 3)
        if len(sizes) > 5 or at < len(sizes) - 2:
            raise promotion.error(
                ShapeError,
                f"delta_orthogonal takes shapes of three to five dimensions, not {sizes}",
                "give one to three sizes of the window, then inputs and outputs",
            )
        ins, outs = sizes[len(sizes) - 2 if at == len(sizes) - 1 else -1], sizes[at]
        if ins > outs:
            raise promotion.error(
                ShapeError,
                f"delta_orthogonal takes at least as many outputs as inputs, not {ins} inputs and {outs} outputs",
                "give more outputs, or use orthogonal",
            )
        matrix = _times(random.orthogonal(key, ins, (), _dtype(dtype), outs), scale)
        if at != len(sizes) - 1:
            matrix = shapes.swapaxes(matrix, 0, 1)
        centre = tuple((n - 1) // 2 for n in sizes[:-2])
        return creation.zeros(sizes, matrix.dtype).at[centre].set(matrix)

    return _initializer(init, scale)


def _columns(shape: Any, axis: int, least: int) -> tuple[tuple[int, ...], int]:
    """Return a checked shape, and its axis of columns counted from 0."""
    sizes = shape_of(shape, "an initializer")
    if len(sizes) < least or not -len(sizes) <= axis < len(sizes):
        raise promotion.error(
            ShapeError,
            f"orthogonal initializers take shapes of at least {least} dimensions and a column_axis among them, not "
            f"{sizes} and {axis}",
            "give a shape with inputs and outputs, and column_axis=-1",
        )
    return sizes, axis % len(sizes)


# ----------------------------------------------------------------------------------------------------- variance scaling
#: The standard deviation of the standard normal distribution truncated to (-2, 2).
_TRUNCATED = 0.87962566103423978


def _axes(axis: Any) -> tuple[int, ...]:
    return (axis,) if isinstance(axis, int) else tuple(axis)


def variance_scaling(
    scale: float, mode: str, distribution: str, in_axis: int | Sequence[int] = -2, out_axis: int | Sequence[int] = -1,
    batch_axis: int | Sequence[int] = (), dtype: DTypeLike | None = None,
) -> Initializer:  # fmt: skip
    """An initializer of variance scale / fan.

    Args:
        scale: positive number.
        mode: "fan_in", "fan_out", "fan_avg" (their mean) or "fan_geo_avg" (the root of their product).
        distribution: "normal", "uniform", or "truncated_normal" (within two standard deviations). Of complex numbers
            the variance is that of both parts together, and the bound one of the absolute value.
        in_axis: the axis, or axes, of inputs.
        out_axis: the axis, or axes, of outputs; an axis of both inputs and outputs, as of embeddings, divides the
            receptive field by its size.
        batch_axis: axes that count neither for fan_in nor for fan_out.
        dtype: dtype for calls of the initializer without one; the default float dtype if None.

    Returns:
        A function `(key, shape, dtype)` that gives an array of that shape and dtype.

    Raises:
        ArgumentError: for another mode or distribution, or a scale that is not positive.
        ShapeError: from the initializer, for a shape without these axes.

    >>> nn.initializers.variance_scaling(2.0, "fan_in", "normal")(ft.random.key(0), (4, 5)).shape
    (4, 5)
    """
    if mode not in ("fan_in", "fan_out", "fan_avg", "fan_geo_avg"):
        raise promotion.error(
            ArgumentError, f"mode={mode!r} is unknown", "use 'fan_in', 'fan_out', 'fan_avg' or 'fan_geo_avg'"
        )
    if distribution not in ("normal", "uniform", "truncated_normal"):
        raise promotion.error(
            ArgumentError, f"distribution={distribution!r} is unknown", "use 'normal', 'uniform' or 'truncated_normal'"
        )
    if not scale > 0:
        raise promotion.error(ArgumentError, f"scale={scale} is not positive", "use initializers.zeros for zeros")

    def init(key: Any, shape: Any, dtype: Any = dtype) -> Any:
        sizes, result_dtype = shape_of(shape, "an initializer"), _dtype(dtype)
        fan_in, fan_out = _fans(sizes, _axes(in_axis), _axes(out_axis), _axes(batch_axis))
        fans = {
            "fan_in": fan_in,
            "fan_out": fan_out,
            "fan_avg": (fan_in + fan_out) / 2,
            "fan_geo_avg": math.sqrt(fan_in * fan_out),
        }
        variance = scale / max(fans[mode], 1.0)
        if dtypes.is_complex(result_dtype) and distribution != "normal":
            return _times(_in_disc(key, sizes, result_dtype, _RADII[distribution]), math.sqrt(variance))
        if distribution == "uniform":
            limit = math.sqrt(3 * variance)
            return random.uniform(key, sizes, result_dtype, -limit, limit)
        if distribution == "normal":
            return _times(random.normal(key, sizes, result_dtype), math.sqrt(variance))
        return _times(random.truncated_normal(key, -2.0, 2.0, sizes, result_dtype), math.sqrt(variance) / _TRUNCATED)

    return _initializer(init, in_axis)


def _in_disc(key: Any, shape: tuple[int, ...], dtype: Any, radius: Any) -> Any:
    """Draw complex numbers of any angle, whose absolute values are a function of uniform numbers."""
    first, second = random.split(key)
    real = dtypes.real_part(dtype)
    size, angle = radius(random.uniform(first, shape, real)), 2 * math.pi * random.uniform(second, shape, real)
    return lax.complex(size * fnp.cos(angle), size * fnp.sin(angle))


def _truncated_radius(u: Any) -> Any:
    """Absolute values of complex normal numbers in a disc of radius 2, divided by their standard deviation."""
    # JAX divides by another constant, from which a variance of 1.019 comes.
    deviation = math.sqrt(1 - 4 / math.expm1(4)) if random_settings.are_native() else 0.9531116438049121
    return fnp.sqrt(-fnp.log1p(math.expm1(-4) * u)) / deviation


#: Absolute values as functions of uniform numbers; both distributions have variance 1.
_RADII = {"uniform": lambda u: fnp.sqrt(2 * u), "truncated_normal": _truncated_radius}


def _fans(
    shape: tuple[int, ...], ins: tuple[int, ...], outs: tuple[int, ...], batch: tuple[int, ...]
) -> tuple[float, float]:
    ndim = len(shape)
    if not all(-ndim <= a < ndim for a in (*ins, *outs, *batch)):
        raise promotion.error(
            ShapeError, f"the shape {shape} has no axes {ins} of inputs and {outs} of outputs",
            "give weights these axes, or initialise biases with initializers.zeros",
        )  # fmt: skip
    size = lambda axes: math.prod(shape[a] for a in axes)
    # The receptive field: an axis of both inputs and outputs, as of embeddings, divides it by its size.
    uses = Counter(a % ndim for a in (*ins, *outs, *batch))
    field = math.prod(float(n or 1) ** (1 - uses[d]) if uses[d] else n for d, n in enumerate(shape))
    return float(size(ins) * field), float(size(outs) * field)


_DOC = """An initializer of variance {variance}.

    {source}

    Args:
        in_axis: the axis, or axes, of inputs.
        out_axis: the axis, or axes, of outputs.
        batch_axis: axes that count neither for fan_in nor for fan_out.
        dtype: dtype for calls of the initializer without one; the default float dtype if None.

    Returns:
        A function `(key, shape, dtype)` that gives an array of that shape and dtype.

    Raises:
        ShapeError: from the initializer, for a shape without these axes.

    >>> nn.initializers.{name}()(ft.random.key(0), (4, 5)).shape
    (4, 5)
    """
_GLOROT = 'X. Glorot, Y. Bengio, "Understanding the difficulty of training deep feedforward neural networks", 2010.'
_LECUN = 'Y. LeCun et al., "Efficient backprop", 1998.'
_HE = 'K. He et al., "Delving deep into rectifiers", arXiv:1502.01852.'


def _scaled(name: str, scale: float, mode: str, distribution: str, variance: str, source: str) -> Any:
    def function(
        in_axis: int | Sequence[int] = -2,
        out_axis: int | Sequence[int] = -1,
        batch_axis: int | Sequence[int] = (),
        dtype: DTypeLike | None = None,
    ) -> Initializer:
        return variance_scaling(scale, mode, distribution, in_axis, out_axis, batch_axis, dtype)

    return promotion.named(function, name, _DOC.format(name=name, variance=variance, source=source), __name__)


glorot_normal = _scaled(
    "glorot_normal", 1.0, "fan_avg", "truncated_normal", "2 / (fan_in + fan_out), normal within two deviations", _GLOROT
)
glorot_uniform = _scaled("glorot_uniform", 1.0, "fan_avg", "uniform", "2 / (fan_in + fan_out), uniform", _GLOROT)
lecun_normal = _scaled(
    "lecun_normal", 1.0, "fan_in", "truncated_normal", "1 / fan_in, normal within two deviations", _LECUN
)
lecun_uniform = _scaled("lecun_uniform", 1.0, "fan_in", "uniform", "1 / fan_in, uniform", _LECUN)
he_normal = _scaled("he_normal", 2.0, "fan_in", "truncated_normal", "2 / fan_in, normal within two deviations", _HE)
he_uniform = _scaled("he_uniform", 2.0, "fan_in", "uniform", "2 / fan_in, uniform", _HE)
xavier_normal, xavier_uniform = glorot_normal, glorot_uniform
kaiming_normal, kaiming_uniform = he_normal, he_uniform
