"""Shared parts of distributions: promotion, location and scale, invalid parameters, documentation.

A distribution's file writes them for location 0 and scale 1; a `Family`, as a decorator, makes the public
functions.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol, cast

from functorch_like import dtypes
from functorch_like import numpy as fnp
from functorch_like.calling.api_boundary import finalize_error
from functorch_like.core import aval_of
from functorch_like.errors import ArgumentError, DtypeError, FtError
from functorch_like.numpy import promotion
from functorch_like.numpy.operands import given
from functorch_like.transforms.eager_jit import eager_jit

if TYPE_CHECKING:
    from functorch_like.core import Array
    from functorch_like.typing import ArrayLike


class Distribution(Protocol):
    """A function of a distribution, as users call it: of x, k or q, shape parameters, location and scale."""

    __name__: str

    def __call__(self, *operands: ArrayLike, **named: ArrayLike) -> Array:
        """Compute each element; the function's own signature names its operands."""
        ...

    def standard(self, *operands: Any) -> Any:
        """Compute it for location 0 and scale 1."""
        ...


_TITLES = {
    "pdf": "The density", "logpdf": "log of the density", "pmf": "The probability", "logpmf": "log of the probability",
    "cdf": "The probability of at most x", "logcdf": "log of the probability of at most x",
    "sf": "The probability of more than x", "logsf": "log of the probability of more than x",
    "ppf": "The x up to which the probability is q", "isf": "The x beyond which the probability is q",
}  # fmt: skip

_DOC = """{title}, of {family}.

    Args:
{args}

    Returns:
        An array of the shape they broadcast to, in floating point; NaN for parameters out of bounds.

    Raises:
        DtypeError: for complex numbers.

    >>> bool(np.isfinite(ft.scipy.stats.{module}.{name}({at})))
    True
    """


class Family:
    """A distribution: called with a function of its standard form, it gives the function that users call.

    Args:
        title: its name in documentation.
        at: arguments of examples.
        valid: function of the shape parameters; it returns where they are admissible.
        discrete: whether it is a distribution of whole numbers, which has a location and no scale.
    """

    def __init__(self, title: str, at: str, valid: Callable[..., Any] | None = None, *, discrete: bool = False) -> None:
        self.title, self.at, self.valid, self.discrete = title, at, valid, discrete

    def __call__(self, body: Callable[..., Any]) -> Distribution:
        """Return the public function, from a function of the standard form with the same name."""
        name, module = body.__name__, body.__module__
        own = list(inspect.signature(body).parameters)
        positional = inspect.Parameter.POSITIONAL_OR_KEYWORD
        parameters = [inspect.Parameter(p, positional) for p in own]
        parameters.append(inspect.Parameter("loc", positional, default=0))
        if not self.discrete:
            parameters.append(inspect.Parameter("scale", positional, default=1))
        signature = inspect.Signature(parameters)
        typed = [p.replace(annotation="ArrayLike") for p in parameters]

        def general(*xs: Any) -> Any:
            return self._general(name, body, *xs)

        general.__name__ = f"{module.rpartition('.')[2]}_{name}"
        fast = eager_jit(ints=True)(general)

        def function(*args: Any, **kwargs: Any) -> Any:
            try:
                try:
                    bound = signature.bind(*args, **kwargs)
                except TypeError as e:
                    what = f"stats.{general.__name__.replace('_', '.', 1)}{signature}"
                    raise promotion.error(ArgumentError, f"{what}: {e}", "give these arguments") from None
                bound.apply_defaults()
                return fast(*given(*bound.args))
            except FtError as e:
                finalize_error(e)
                raise

        lines = [f"        {p}: array or number." for p in signature.parameters]
        at = self.at if name not in ("ppf", "isf") else ", ".join(["0.5", *self.at.split(", ")[1:]])
        doc = _DOC.format(title=_TITLES[name], family=self.title, args="\n".join(lines), name=name, at=at,
                          module=module.rpartition(".")[2])  # fmt: skip
        made: Any = promotion.named(function, name, doc, module)
        made.is_boundary, made.standard = True, body
        made.__signature__ = inspect.Signature(typed, return_annotation="Array")
        return cast("Distribution", made)

    def exp(self, log: Distribution) -> Distribution:
        """Make a function from its logarithm."""
        return self._through(log, fnp.exp, log.__name__.removeprefix("log"))

    def log(self, plain: Distribution) -> Distribution:
        """Make the logarithm of a function."""
        return self._through(plain, fnp.log, f"log{plain.__name__}")

    def mirrored(self, other: Distribution, name: str) -> Distribution:
        """Make a function of a symmetric distribution from its opposite: sf from cdf."""
        return self.reflected(other, name, other.__module__)

    def reflected(self, other: Distribution, name: str, module: str) -> Distribution:
        """Make a function of the mirror image of a distribution from its opposite function."""

        def body(x: Any, *shapes: Any) -> Any:
            return -other.standard(x, *shapes) if name in ("ppf", "isf") else other.standard(-x, *shapes)

        return self._of(other, body, name, module)

    def _through(self, function: Distribution, outer: Callable[[Any], Any], name: str) -> Distribution:
        return self._of(function, lambda *xs: outer(function.standard(*xs)), name, function.__module__)

    def _of(self, function: Distribution, body: Callable[..., Any], name: str, module: str) -> Distribution:
        body.__name__, body.__module__ = name, module
        body.__signature__ = inspect.signature(function.standard)  # type: ignore[attr-defined]
        return self(body)

    def _general(self, name: str, body: Callable[..., Any], *xs: Any) -> Any:
        values = promotion.align_inexact(*xs)
        dtype = aval_of(values[0]).dtype
        if dtypes.is_complex(dtype):
            raise promotion.error(
                DtypeError, f"stats takes real numbers, got {aval_of(values[0])!r}", "take the real part"
            )
        if dtype.itemsize < 4:
            values = [promotion.convert(v, dtypes.float32) for v in values]
        values = [promotion.convert(v, aval_of(v).dtype, aval_of(v).weak_type) for v in values]
        *rest, loc, scale = (*values, 1) if self.discrete else values
        x, *shapes = rest
        if name in ("ppf", "isf"):
            inside = (x >= 0) & (x <= 1)
            out = loc + scale * body(fnp.where(inside, x, 0.5), *shapes)
            good = inside
        else:
            good = True
            x = x - loc if self.discrete else (x - loc) / scale
            whole = fnp.floor(x) if self.discrete else x
            out = body(whole, *shapes)
            if self.discrete and name in ("pmf", "logpmf"):
                out = fnp.where(x == whole, out, 0 if name == "pmf" else -math.inf)
            if self.discrete:
                out = fnp.where(x != x, x, out)
            else:
                if name == "logpdf":
                    impossible = out == -math.inf  # for all scales near by, so that the derivative is 0
                    out = out - fnp.log(fnp.where(impossible, 1, scale))
                out = out / scale if name == "pdf" else out
        good = good if self.discrete else good & (scale > 0)
        if self.valid is not None:
            good = good & self.valid(*shapes)
        out = out if good is True else fnp.where(good, out, math.nan)
        return promotion.convert(out, dtype) if dtype.itemsize < 4 else out
