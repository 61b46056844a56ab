"""Calls of Python functions from programs: debug_callback, pure_callback and io_callback.

Outside of transformations the function is called at once. A compiled program calls it on the host, each time that it
reaches the call.
"""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from functorch_like import core, source_info
from functorch_like.avals import ShapedArray
from functorch_like.backends import xla
from functorch_like.backends.xla.callbacks import checked
from functorch_like.core import ArrayImpl, BatchAxis, NotDefined, Primitive, SampleInput, Tracer, aval_of, state
from functorch_like.errors import FtError, UnsupportedError
from functorch_like.primitives import structural

#: Ways of `vmap` with a pure_callback.
METHODS = (None, "sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized")


_NOTE = "raised in the callback of "


class Host:
    """A Python function of NumPy arrays, as a parameter of a primitive. Each is equal to itself alone.

    Args:
        fun: takes flat arrays, returns a sequence of flat results.
        name: name of the calling function in messages.
        results: avals of its results.
        source: the user's line, for messages; the current one if None.
    """

    __slots__ = ("fun", "name", "results", "source")

    def __init__(
        self, fun: Callable[..., Sequence[Any]], name: str, results: Sequence[ShapedArray] = (), source: Any = None
    ) -> None:
        self.fun, self.name, self.results = fun, name, tuple(results)
        self.source = xla.here() if source is None else source

    def __call__(self, *arrays: Any) -> list[Any]:
        """Call the function as if outside of all transformations: a program may run while one is active.

        An exception names the user's line, which its traceback lacks if a compiled program made the call.
        """
        try:
            return self._checked(*arrays)
        except BaseException as error:
            error.add_note(f"{_NOTE}{self.name} at {source_info.user_line(self.source)}")
            raise

    def _checked(self, *arrays: Any) -> list[Any]:
        with _outside():
            outs = self.fun(*arrays)
        try:
            return checked(outs, self.results)
        except FtError as error:
            raise error.add_context(operation=self.name, at=str(source_info.user_line(self.source) or ""))  # noqa: B904

    def returning(self, results: Sequence[ShapedArray]) -> Host:
        """The function for arrays with further dimensions."""
        return Host(self.fun, self.name, results, self.source)

    @property
    def __name__(self) -> str:
        return source_info.name_of(self.fun)


class Each:
    """A host function called for each element of a batch in turn.

    Args:
        host: a `Host`, or another `Each`.
        mapped: which operands have the batch, as their first axis.
        size: of the batch.
    """

    __slots__ = ("host", "mapped", "results", "size")

    def __init__(self, host: Any, mapped: tuple[bool, ...], size: int) -> None:
        self.host, self.mapped, self.size = host, mapped, size
        self.results = _wider(host.results, size)

    def __call__(self, *arrays: Any) -> list[Any]:
        outs = [np.empty(aval.shape, aval.dtype) for aval in self.results]
        for k in range(self.size):
            element = [a[k, ...] if m else a for a, m in zip(arrays, self.mapped, strict=True)]
            for out, value in zip(outs, self.host(*element), strict=True):
                out[k, ...] = value
        return outs

    @property
    def __name__(self) -> str:
        return self.host.__name__


def _wider(results: Sequence[ShapedArray], size: int) -> tuple[ShapedArray, ...]:
    return tuple(r.update(shape=(size, *r.shape)) for r in results)


@contextmanager
def _outside() -> Generator[None]:
    saved = state.source, state.axes
    state.source, state.axes = None, ()
    try:
        with core.set_current_trace(core.EVALUATE):
            yield
    finally:
        state.source, state.axes = saved


# ------------------------------------------------------------------------------------------------------------- rules
def _evaluate(args: Sequence[Any], params: dict[str, Any]) -> list[Any]:
    for a in args:
        if isinstance(a, Tracer):
            raise core.leak(a, "a callback")
    values = [xla.to_numpy(a) if type(a) is ArrayImpl else np.asarray(a, aval_of(a).dtype) for a in args]
    outs = params["fun"](*values)
    place = next((a._sharding for a in args if type(a) is ArrayImpl and a._committed), None)
    if place is not None and type(place) is not xla.OneDevice:
        place = place.update(())
    return [xla.device_put(out, place) for out in outs]


def _effects(*, ordered: bool, **_: Any) -> frozenset[str]:
    return frozenset(["ordered" if ordered else "unordered"])


def _lower(e: Any, *operands: Any, fun: Any, ordered: bool) -> list[Any]:
    return e.callback(fun, operands, e.outs, _effects(ordered=ordered))


def _front(args: Sequence[Any], dims: Sequence[Any]) -> list[Any]:
    return [a if d is None else structural.move(a, d, 0) for a, d in zip(args, dims, strict=True)]


def _each(axis: BatchAxis, dims: Sequence[Any], fun: Any) -> Each:
    return Each(fun, tuple(d is not None for d in dims), axis.size)


def _batch(
    prim: Primitive, axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, fun: Any, ordered: bool
) -> tuple[Any, Any]:
    """Batch primitives with effects: a callback is called for one element after the other, then the next callback."""
    if ordered and fun.results:
        raise UnsupportedError(
            f"an ordered callback with results ({fun.__name__}) has no place under vmap: what an element computes from "
            "them, and its later calls, come after the calls for all other elements",
            fix="leave out ordered=True, or map with lax.map or a Python loop, which take one element after the other",
        )
    return prim(*_front(args, dims), fun=_each(axis, dims, fun), ordered=ordered), [0] * len(fun.results)


# ---------------------------------------------------------------------------------------- debug_callback, io_callback
def _debug_jvp(primals: Sequence[Any], tangents: Sequence[Any], **params: Any) -> tuple[list[Any], list[Any]]:
    return debug_callback(*primals, **params), []


_NOT_A_VALUE = NotDefined("a callback is called for its effects; tests/effects shows them")

debug_callback = Primitive(
    "debug_callback",
    shape=lambda *xs, fun, ordered: (),
    ref=_NOT_A_VALUE,
    lower=_lower,
    jvp=_debug_jvp,
    transpose=lambda cts, args, **_: [None for _ in args],
    batch=lambda *given, **params: _batch(debug_callback, *given, **params),
    samples=list,
    evaluate=_evaluate,
    effects=_effects,
    multiple_results=True,
)

io_callback = Primitive(
    "io_callback",
    shape=lambda *xs, fun, ordered: fun.results,
    ref=_NOT_A_VALUE,
    lower=_lower,
    jvp=NotDefined(
        "a function with effects has no derivative; take its operands for constants by lax.stop_gradient, or give it "
        "one with custom_jvp"
    ),
    transpose=NotDefined("a function with effects is not linear; take its operands for constants by lax.stop_gradient"),
    batch=lambda *given, **params: _batch(io_callback, *given, **params),
    samples=list,
    evaluate=_evaluate,
    effects=_effects,
    multiple_results=True,
)


# ------------------------------------------------------------------------------------------------------ pure_callback
def _pure_lower(e: Any, *operands: Any, fun: Any, vmap_method: str | None) -> list[Any]:
    return e.callback(fun, operands, e.outs)


def _pure_batch(
    axis: BatchAxis, args: Sequence[Any], dims: Sequence[Any], *, fun: Any, vmap_method: str | None
) -> tuple[Any, Any]:
    if vmap_method is None:
        raise UnsupportedError(
            f"vmap of the callback {fun.__name__} is undefined, because it has no vmap_method",
            fix='pass vmap_method="sequential" (a call per element), or "expand_dims" or "broadcast_all" where the '
            "function takes leading dimensions",
        )
    leading = _front(args, dims)
    if vmap_method.startswith("sequential"):
        fun = _each(axis, dims, fun)
    else:
        fun = fun.returning(_wider(fun.results, axis.size))
        if vmap_method != "legacy_vectorized":
            size = axis.size if vmap_method == "broadcast_all" else 1
            leading = [structural.widen(a, size) if d is None else a for a, d in zip(leading, dims, strict=True)]
    return pure_callback(*leading, fun=fun, vmap_method=vmap_method), [0] * len(fun.results)


def _samples() -> list[SampleInput]:
    matrix, number = ShapedArray((2, 3), np.float32), ShapedArray((), np.int32)
    fun = lambda x, n: [x * n.astype(np.float32), x.sum(dtype=np.float32)]
    host = Host(fun, "pure_callback", [matrix, ShapedArray((), np.float32)])
    return [SampleInput((matrix, number), {"fun": host, "vmap_method": "sequential"})]


pure_callback = Primitive(
    "pure_callback",
    shape=lambda *xs, fun, vmap_method: fun.results,
    ref=lambda *xs, fun, vmap_method: tuple(fun(*xs)),
    lower=_pure_lower,
    jvp=NotDefined(
        "the derivative of a Python function is not known; give it one with custom_jvp, or take the result for a "
        "constant by lax.stop_gradient of the operands"
    ),
    transpose=NotDefined("a Python function is not known to be linear; use primitives, or custom_jvp"),
    batch=_pure_batch,
    samples=_samples,
    evaluate=_evaluate,
    multiple_results=True,
)
