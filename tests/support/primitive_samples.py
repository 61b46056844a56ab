"""Sample inputs of all primitives as test cases: random operands, and derivatives by finite differences."""

from __future__ import annotations

import dataclasses
import functools
import itertools
import math
import zlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

import functorch_like  # noqa: F401  (fills the table)
from functorch_like import core, dtypes
from functorch_like.avals import ShapedArray
from functorch_like.core import NotDefined, Primitive, SampleInput
from functorch_like.ir.jaxpr import Jaxpr

#: Relative and absolute tolerance against a value computed with more precision.
TOLERANCE = {"float64": 1e-10, "float32": 3e-5, "bfloat16": 2e-2, "float16": 3e-3}
WIDE = {"float32": "float64", "bfloat16": "float64", "float16": "float64", "complex64": "complex128"}


class Case(NamedTuple):
    """One sample input of one primitive."""

    prim: Primitive
    index: int
    sample: SampleInput

    @property
    def label(self) -> str:
        """Name of the case in test ids."""
        shown = [repr(o) if isinstance(o, ShapedArray) else repr(core.aval_of(o)) for o in self.sample.operands]
        shown += [f"{k}={v}" for k, v in self.sample.params.items() if _shown(v)]
        return f"{self.prim.name}-{self.index}({','.join(shown)})".replace(" ", "")[:90]

    def seed(self, salt: int) -> np.random.Generator:
        return np.random.default_rng([zlib.crc32(self.prim.name.encode()), self.index, salt])

    def draw(self, salt: int = 0) -> list[np.ndarray[Any, Any]]:
        """Draw operands: random values in the domain, or the arrays of the sample."""
        rng = self.seed(salt)
        return [self._one(o, rng) for o in self.sample.operands]

    def _one(self, operand: Any, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        if not isinstance(operand, ShapedArray):
            return np.asarray(operand)
        x = self._random(operand, rng)
        return x if self.sample.prepare is None else np.asarray(self.sample.prepare(x), x.dtype)

    def _random(self, operand: ShapedArray, rng: np.random.Generator) -> np.ndarray[Any, Any]:
        low, high = self.sample.domain
        shape, dtype = operand.shape, operand.dtype
        if dtypes.is_complex(dtype):
            return (rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)).astype(dtype)
        if dtypes.is_inexact(dtype):
            return np.asarray(rng.uniform(low, high, shape)).astype(dtype)
        if dtype == dtypes.bool_:
            return np.asarray(rng.integers(0, 2, shape)).astype(dtype)
        least, most = dtypes.iinfo(dtype).min, dtypes.iinfo(dtype).max
        least, most = max(math.ceil(low), int(least)), min(math.floor(high), int(most))
        return np.asarray(rng.integers(least, most, shape, endpoint=True)).astype(dtype)

    def variants(self, position: int, size: int) -> list[np.ndarray[Any, Any]]:
        """Return different values for one operand, as elements of a batch."""
        operand = self.sample.operands[position]
        if isinstance(operand, ShapedArray):
            return [self._one(operand, self.seed(100 + 10 * position + k)) for k in range(size)]
        x = np.asarray(operand)
        if x.dtype == bool:
            made = [x, ~x, x]
        elif x.ndim >= 2 or (x.ndim and x.dtype.kind not in "iu"):
            made = [x, np.roll(x, 1, 0), x[::-1]]
        else:
            made = [x, np.where(x > 0, x - x.dtype.type(1), x), x] if x.dtype.kind in "iu" else [x, x, x]
        return [np.asarray(made[k % 3], x.dtype) for k in range(size)]

    @property
    def wide(self) -> Case:
        """The same sample in double precision."""
        operands = tuple(map(_widen, self.sample.operands))
        params = {k: _widen_dtype(v) if isinstance(v, np.dtype) else v for k, v in self.sample.params.items()}
        return self._replace(sample=dataclasses.replace(self.sample, operands=operands, params=params))

    @property
    def floats(self) -> list[int]:
        """Positions of the operands that have derivatives."""
        return [k for k, o in enumerate(self.sample.operands) if dtypes.is_inexact(o.dtype)]


def _shown(param: Any) -> bool:
    """Return True if a parameter is short enough for a label."""
    if isinstance(param, tuple):
        return param != () and not any(isinstance(p, Jaxpr) for p in param)
    return isinstance(param, (bool, int, str))


def _widen_dtype(dtype: np.dtype[Any]) -> np.dtype[Any]:
    return np.dtype(WIDE.get(dtype.name, dtype))


def _widen(operand: Any) -> Any:
    dtype = _widen_dtype(operand.dtype)
    return operand.update(dtype=dtype) if isinstance(operand, ShapedArray) else operand.astype(dtype)


def cases() -> Iterator[Case]:
    """Yield every sample of every primitive."""
    for prim in list(core.TABLE.values()):
        for index, sample in enumerate(prim.samples()):
            yield Case(prim, index, sample)


def kind_of(case: Case) -> str:
    """Return the kind of number of a sample's derivatives; empty if it has none, or operands or results are empty."""
    if isinstance(case.prim.jvp, NotDefined) or not case.floats or not all(o.size for o in case.sample.operands):
        return ""
    dtype = case.sample.operands[case.floats[0]].dtype
    if not any(o.size and dtypes.is_inexact(o.dtype) for o in ref(case, case.draw())):
        return ""
    return "complex" if dtypes.is_complex(dtype) else "real" if dtype.itemsize > 2 else "half"


def rule_cases() -> Iterator[Case]:
    """Yield the samples whose rules are compiled: each primitive's first, and its largest of each kind of number."""
    for _, group in itertools.groupby(all_cases(), lambda c: c.prim):
        same = list(group)
        chosen = {same[0].index}
        for kind in {kind_of(c) for c in same} - {""}:
            of_kind = [c for c in same if kind_of(c) == kind]
            chosen.add(max(of_kind, key=lambda c: sum(o.size for o in c.sample.operands)).index)
        yield from (c for c in same if c.index in chosen)


@functools.cache
def differentiable(smooth: bool = False) -> list[Case]:
    """Return the samples whose derivatives exist, in double precision, without duplicates."""
    found: dict[Any, Case] = {}
    for case in all_cases():
        if isinstance(case.prim.jvp, NotDefined) or not case.floats or (smooth and not case.sample.smooth):
            continue
        if any(o.dtype in dtypes.FLOAT8 for o in case.sample.operands):
            continue
        # Jaxprs fix the dtype of each variable, so samples of primitives that have one stay in their precision.
        if case.prim.partial_eval is None and not any(isinstance(v, Jaxpr) for v in case.sample.params.values()):
            case = case.wide
        key = (case.prim.name, repr(case.sample.operands), repr(case.sample.params), case.sample.domain)
        found.setdefault(key, case)
    return list(found.values())


def results(prim: Primitive, out: Any) -> list[Any]:
    """Return one or several results as a list."""
    return list(out) if prim.multiple_results else [out]


def ref(case: Case, operands: Sequence[Any]) -> list[np.ndarray[Any, Any]]:
    """Evaluate the primitive in NumPy."""
    with np.errstate(all="ignore"):
        return [np.asarray(o) for o in results(case.prim, case.prim.ref(*operands, **case.sample.params))]


def close(got: Any, want: Any, rtol: float | None = None, atol: float | None = None, what: str = "") -> None:
    """Raise unless values agree within the tolerance of their dtype; dtypes and shapes must be equal."""
    got, want = np.asarray(got), np.asarray(want)
    assert got.shape == want.shape, f"{what}: shape {got.shape}, wanted {want.shape}"
    assert got.dtype == want.dtype, f"{what}: dtype {got.dtype}, wanted {want.dtype}"
    if not dtypes.is_inexact(want.dtype):
        np.testing.assert_array_equal(got, want, err_msg=what)
        return
    tolerance = TOLERANCE.get(dtypes.real_part(want.dtype).name, 0.2)
    exact = np.complex128 if dtypes.is_complex(want.dtype) else np.float64
    np.testing.assert_allclose(
        got.astype(exact),
        want.astype(exact),
        rtol=tolerance if rtol is None else rtol,
        atol=tolerance if atol is None else atol,
        err_msg=what,
    )


def along(
    fun: Callable[[list[Any]], list[np.ndarray[Any, Any]]], xs: Sequence[Any], vs: Sequence[Any], step: float = 2e-4
) -> list[np.ndarray[Any, Any]]:
    """Return the directional derivative by central differences of fourth order; directions that are None are zero."""

    def at(h: float) -> list[np.ndarray[Any, Any]]:
        moved = [x if v is None else np.asarray(x + h * v, x.dtype) for x, v in zip(xs, vs, strict=True)]
        return fun(moved)

    near, far = (at(step), at(-step)), (at(2 * step), at(-2 * step))
    return [
        np.asarray((8 * (a - b) - (c - d)) / (12 * step)).astype(a.dtype) if dtypes.is_inexact(a.dtype) else None
        for a, b, c, d in zip(*near, *far, strict=True)
    ]


def direction(case: Case, xs: Sequence[Any], salt: int) -> list[np.ndarray[Any, Any] | None]:
    """Return random tangents, complex ones for complex operands; None for integers."""
    rng = case.seed(salt)
    return [random_like(x, rng) for x in xs]


def random_like(x: Any, rng: np.random.Generator) -> np.ndarray[Any, Any] | None:
    if not dtypes.is_inexact(x.dtype):
        return None
    made = rng.normal(size=x.shape)
    return np.asarray(made + 1j * rng.normal(size=x.shape) if x.dtype.kind == "c" else made).astype(x.dtype)


def pair(cotangents: Sequence[Any], tangents: Sequence[Any]) -> float:
    """Return Re sum(ct * t), without conjugation: the real pairing that makes transposes of complex maps unique."""
    return float(
        sum(np.sum(c * t).real for c, t in zip(cotangents, tangents, strict=True) if c is not None and t is not None)
    )


def in_axes(case: Case, most: int = 300) -> list[tuple[int | None, ...]]:
    """Return the choices of mapped axes for the operands, or an even selection of at most `most`."""
    choices = [(None, *range(o.ndim + 1)) for o in case.sample.operands]
    found = [dims for dims in itertools.product(*choices) if any(d is not None for d in dims)]
    return found[:: -(-len(found) // most)] if len(found) > most else found


@functools.cache
def all_cases() -> tuple[Case, ...]:
    return tuple(cases())
