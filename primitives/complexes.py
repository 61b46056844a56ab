"""Floor 4. Complex numbers taken apart and put together.

A cotangent w stands for the linear form t -> Re(w t), so transposes conjugate nothing: that of `real` makes ct + 0i,
that of `imag` makes 0 - i ct.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from functorch_like import dtypes
from functorch_like.core import Lin, Sample, aval_of
from functorch_like.primitives.rows import KIND, elementwise, neg, samples_of, unary
from functorch_like.primitives.shapes import zeros

real = unary(
    "real", np.real, "real", lambda g, x, y: real(g), takes="c", gives=dtypes.real_part,
    transpose=lambda ct: complex(ct, zeros(aval_of(ct))),
)  # fmt: skip
imag = unary(
    "imag", np.imag, "imag", lambda g, x, y: imag(g), takes="c", gives=dtypes.real_part,
    transpose=lambda ct: complex(zeros(aval_of(ct)), neg(ct)),
)  # fmt: skip


def _conj_lower(e: Any, x: Any) -> Any:
    re, im, part = halves(e, x, e.outs[0])
    return e.op("stablehlo.complex", [re, e.op("stablehlo.negate", [im], [part])], e.outs)


conj = unary("conj", np.conj, _conj_lower, lambda g, x, y: conj(g), takes="c", transpose=lambda ct: conj(ct))


def _complex_ref(re: np.ndarray, im: np.ndarray) -> np.ndarray:
    out = np.empty(re.shape, dtypes.complex_of(re.dtype))
    out.real, out.imag = re, im
    return out


def _complex_jvp(primals: Any, tangents: Any) -> tuple[Any, Any]:
    return complex(*primals), complex(
        *[zeros(aval_of(p)) if t is None else t for p, t in zip(primals, tangents, strict=True)]
    )


def _complex_transpose(ct: Any, args: Any) -> list[Any]:
    return [real(ct) if isinstance(args[0], Lin) else None, neg(imag(ct)) if isinstance(args[1], Lin) else None]


def _complex_samples() -> list[Sample]:
    kept = ("float32", "float64")
    return [s for s in samples_of(2, "f", (-2.0, 2.0), ({},), True) if s.operands[0].dtype.name in kept]


complex = elementwise(
    "complex", _complex_ref, "complex", count=2, takes="f", jvp=_complex_jvp, transpose=_complex_transpose,
    gives=dtypes.complex_of, samples=_complex_samples,
)  # fmt: skip


# ------------------------------------------------------------------------------------------ lowerings with signed zeros
def halves(e: Any, x: Any, aval: Any) -> tuple[Any, Any, Any]:
    """Real and imaginary part, and their aval."""
    part = aval.update(dtype=dtypes.real_part(aval.dtype))
    return e.op("stablehlo.real", [x], [part]), e.op("stablehlo.imag", [x], [part]), part


def following(op: str, which: str, opposite: bool = False) -> Any:
    """Lowers to `op`, and if complex gives one part of the result the sign of the same part of the operand.

    On a branch cut the sign of a zero says from which side it is reached; XLA forgets it.
    """

    def lower(e: Any, x: Any) -> Any:
        (out,) = e.outs
        y = e.op(op, [x], [out])
        if KIND[out.dtype] != "c":
            return y
        *given, part = halves(e, x, out)
        *got, _ = halves(e, y, out)
        at = ("real", "imag").index(which)
        bits = part.update(dtype=np.dtype(f"int{part.dtype.itemsize * 8}"))
        flags = part.update(dtype=dtypes.bool_, weak_type=False)
        negative = e.compare(
            "LT", e.op("stablehlo.bitcast_convert", [given[at]], [bits]), e.full(0, bits), flags, "SIGNED"
        )
        size = e.op("stablehlo.abs", [got[at]], [part])
        both = [size, e.op("stablehlo.negate", [size], [part])]
        got[at] = e.op("stablehlo.select", [negative, *(both if opposite else both[::-1])], [part])
        return e.op("stablehlo.complex", got, [out])

    return lower


def circular(op: str, turned: bool, odd: bool) -> Any:
    """Lowers the complex sin, cos (turned) and sinh, cosh by the real ones of their parts; `odd` for sin and sinh.

    XLA's own take exp(b) - exp(-b), which cancels where b is small.
    """

    def lower(e: Any, x: Any) -> Any:
        (out,) = e.outs
        if KIND[out.dtype] != "c":
            small = turned or out.dtype not in (dtypes.float32, dtypes.float64)
            return e.op(op, [x], [out]) if small else _hyperbolic(e, x, out, odd)
        re, im, part = halves(e, x, out)
        angle, size = (re, im) if turned else (im, re)
        sin, cos = e.op("stablehlo.sine", [angle], [part]), e.op("stablehlo.cosine", [angle], [part])
        sinh, cosh = e.op("chlo.sinh", [size], [part]), e.op("chlo.cosh", [size], [part])
        flags = part.update(dtype=dtypes.bool_, weak_type=False)
        limit = dtypes.finfo(part.dtype).max

        def times(wave: Any, growth: Any) -> Any:  # 0 times infinity is 0 here, as the growth is infinite by rounding
            still = e.compare("EQ", wave, e.full(0, part), flags, "FLOAT")
            finite = e.op("stablehlo.clamp", [e.full(-limit, part), growth, e.full(limit, part)], [part])
            growth = e.op("stablehlo.select", [still, finite, growth], [part])
            return e.op("stablehlo.multiply", [wave, growth], [part])

        if turned:
            one, other = (times(sin, cosh), times(cos, sinh)) if odd else (times(cos, cosh), times(sin, sinh))
            other = other if odd else e.op("stablehlo.negate", [other], [part])
        else:
            one, other = (times(cos, sinh), times(sin, cosh)) if odd else (times(cos, cosh), times(sin, sinh))
        return e.op("stablehlo.complex", [one, other], [out])

    return lower


def _hyperbolic(e: Any, x: Any, out: Any, odd: bool) -> Any:
    """The real sinh and cosh, by exp(|x| / 2) twice: exp(|x| + log(1/2)), as XLA has it, loses digits."""
    op = lambda name, *xs: e.op(f"stablehlo.{name}", list(xs), [out])
    half = e.full(0.5, out)
    size = op("abs", x)
    root = op("exponential", op("multiply", size, half))
    grown = op("multiply", op("multiply", root, half), root)
    shrunk = op("divide", op("divide", half, root), root)
    if not odd:
        return op("add", grown, shrunk)
    flags = out.update(dtype=dtypes.bool_, weak_type=False)
    y = op("subtract", grown, shrunk)
    y = op("select", e.compare("LT", x, e.full(0, out), flags, "FLOAT"), op("negate", y), y)
    near = e.compare("LT", size, e.full(1, out), flags, "FLOAT")
    return op("select", near, e.op("chlo.sinh", [x], [out]), y)
