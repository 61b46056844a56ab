"""Display of arrays: type, devices, values and statistics. Nothing is compiled, and little is copied."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from functorch_like.avals import dtype_name
from functorch_like.backends import xla
from functorch_like.core import ArrayImpl, Tracer, transform_stack
from functorch_like.debug.sharding_picture import Picture
from functorch_like.errors import ArgumentError, FtError, bytes_text
from functorch_like.markup import elements, terminal
from functorch_like.markup.display import Display
from functorch_like.random.keys import key_data
from functorch_like.random.typed_keys import KeyArray

#: Arrays with more elements get statistics, and those with more than `SAMPLED` from a sample.
FEW, SAMPLED = 16, 2**18
#: Larger arrays on other devices than CPUs, or on several, are not copied to be shown.
MOST_COPIED = 2**24
#: Arrays with more elements, or more rows, are printed without their middle.
_PRINTED, _LINES = 200, 16
#: Number of elements printed then at each end of a dimension, by the number of dimensions.
_EDGES = (8, 4, 2, 1, 1, 1)


class ArrayDisplay(Display):
    """An array with its type, place, values and statistics.

    Args:
        x: an array, a traced value or a NumPy array.

    Raises:
        ArgumentError: for another value.
    """

    def __init__(self, x: Any) -> None:
        if isinstance(x, KeyArray):
            x = key_data(x)
        if not isinstance(x, (ArrayImpl, Tracer, np.ndarray)):
            raise ArgumentError(
                f"ft.inspect.array takes an array, got a {type(x).__name__}",
                fix="see ft.inspect.tree for other values",
            )
        self._x = x

    def layout(self, paint: terminal.Paint = terminal.plain) -> str:
        """Return facts, statistics and values as text."""
        pairs, values = self._contents()
        widest = max(len(name) for name, _ in pairs)
        lines = [paint(title(self._x), "head")]
        for name, text in pairs:
            wrapped = terminal.wrapped(text, f"  {name:<{widest}}  ")
            lines += [paint(wrapped[0][: widest + 2], "blue") + wrapped[0][widest + 2 :], *wrapped[1:]]
        return "\n".join([*lines, *(f"  {line}" for line in values.split("\n"))] if values else lines)

    def markup(self) -> elements.Markup:
        """Return the same as HTML, with a picture of an array on several devices."""
        pairs, values = self._contents()
        # Short facts stand beside the title, where they take no height.
        short = [text for name, text in pairs if name in ("bytes", "device", "in")]
        rest = [(name, text) for name, text in pairs if name not in ("bytes", "device", "in")]
        about = (elements.element("span", text, cls="grey", style="margin-left:1em") for text in short)
        head = elements.element("div", elements.span(title(self._x), "head"), *about)
        shown = elements.element("pre", values) if values else None
        return elements.join([head, elements.facts(rest) if rest else None, shown, _picture(self._x)])

    def _contents(self) -> tuple[list[tuple[str, str]], str]:
        """Names and values of facts, and the elements as text."""
        x = self._x
        facts = [("bytes", bytes_text(int(x.size) * x.dtype.itemsize)), *_place(x)]
        values, why = values_of(x)
        if values is None:
            return [*facts, ("values", why)], ""
        return [*facts, *statistics(values)], elements_text(values) or "no elements"


def title(x: Any) -> str:
    """Return the kind of a value with its shape and dtype, on one line."""
    weak = ", weak type" if getattr(x, "weak_type", False) else ""
    kind = "NumPy array" if isinstance(x, np.ndarray) else "Traced value" if isinstance(x, Tracer) else "Array"
    return f"{kind} {_type_text(x)}{weak}"


def _type_text(x: Any) -> str:
    return f"{dtype_name(x.dtype)}[{','.join(map(str, x.shape))}]"


def _place(x: Any) -> list[tuple[str, str]]:
    if isinstance(x, np.ndarray):
        return []
    if isinstance(x, Tracer):
        trace: Any = x._trace
        return [("in", transform_stack(trace) or trace.name or "a transformation")]
    where = x.sharding
    devices = sorted(map(str, where.device_set))
    if len(devices) == 1:
        return [("device", devices[0])]
    shown = ", ".join(devices[:8]) + (f", ... {len(devices) - 8} more" if len(devices) > 8 else "")
    return [("devices", shown), ("sharding", terminal.trimmed(repr(where), 300))]


def values_of(x: Any) -> tuple[np.ndarray[Any, Any] | None, str]:
    """Return the values of an array, or None and why they are not shown.

    A computation that runs is waited for. A large array is copied only from where that costs nothing.
    """
    if isinstance(x, np.ndarray):
        return x, ""
    if isinstance(x, Tracer):
        value = None if x._trace.finished else x.concrete()
        return (None, "not known while a function is traced") if value is None else (np.asarray(value), "")
    if x.is_deleted():
        return None, "none: the array was donated to a computation, or deleted"
    where, nbytes = x.sharding, x.nbytes
    is_host = len(where.device_set) == 1 and next(iter(where.device_set)).platform == "cpu"
    if nbytes > MOST_COPIED and not is_host:
        return None, f"not copied from {'several devices' if len(where.device_set) > 1 else 'the device'}: too large"
    if not xla.values_are_here(x):
        return None, "parts of them belong to other processes; see x.addressable_shards"
    try:
        return xla.to_numpy(x), ""
    except FtError as error:
        return None, f"none, the computation failed: {error.reason}"


def _picture(x: Any) -> elements.Markup | None:
    """The sharding of an array on several devices, where it can be drawn."""
    if type(x) is not ArrayImpl or len(x.sharding.device_set) == 1 or x.ndim not in (1, 2):
        return None
    try:
        return elements.details("its parts by device", Picture(x.shape, x.sharding).markup())
    except FtError:
        return None


# ------------------------------------------------------------------------------------------------------ statistics
def statistics(values: np.ndarray[Any, Any]) -> list[tuple[str, str]]:
    """Return statistics of an array, as names and texts. A very large array is sampled, and a text states that.

    Args:
        values: an array of any dtype. Few elements, and those of dtypes without numbers, have no statistics.
    """
    if values.size <= FEW or values.dtype.names or values.dtype.kind not in "biufcV":
        return []
    sample, about = _sample(values)
    try:
        pairs = _of_bools(sample) if sample.dtype == bool else _of_numbers(sample)
    except (TypeError, ValueError):  # NumPy has no arithmetic for this dtype
        return []
    return [*pairs, ("statistics", about)] if about else pairs


def _sample(values: np.ndarray[Any, Any]) -> tuple[np.ndarray[Any, Any], str]:
    """All elements, or evenly spaced ones."""
    if values.size <= SAMPLED:
        return values.reshape(-1), ""
    if not values.flags.c_contiguous:  # flattening copies
        picked = np.linspace(0, values.size - 1, SAMPLED // 8).astype(np.int64)
        return values[np.unravel_index(picked, values.shape)], f"of a sample of {len(picked)} of {values.size} elements"
    # Whole runs, one at each of many places: single elements would touch as many pages of memory.
    run, places = 256, SAMPLED // 256
    flat = values.reshape(-1)
    starts = np.linspace(0, values.size - run, places).astype(np.int64)
    taken = np.concatenate([flat[k : k + run] for k in starts.tolist()])
    return taken, f"of a sample of {taken.size} of {values.size} elements"


def _of_bools(sample: np.ndarray[Any, Any]) -> list[tuple[str, str]]:
    count = int(np.count_nonzero(sample))
    return [("true", f"{count} of {sample.size} ({count / sample.size:.1%})")]


def _of_numbers(sample: np.ndarray[Any, Any]) -> list[tuple[str, str]]:
    # NumPy's sums of float16, bfloat16, float8 and int4 need a wider dtype.
    wide: Any = sample.astype(np.float64) if sample.dtype.kind in "fV" or sample.dtype.itemsize < 4 else sample
    finite = wide[np.isfinite(wide)]
    pairs: list[tuple[str, str]] = []
    if finite.size and wide.dtype.kind == "c":
        size = np.abs(finite.astype(np.complex128))
        pairs = [("absolute values", f"{_number(size.min())} to {_number(size.max())}, mean {_number(size.mean())}")]
    elif finite.size:
        low, high = finite.min(), finite.max()
        largest = float(max(abs(float(low)), abs(float(high)))) or 1.0
        scaled = finite / largest  # sums and squares of large numbers overflow
        mean, spread = scaled.mean() * largest, scaled.std() * largest
        pairs = [("range", f"{_number(low)} to {_number(high)}")]
        pairs.append(("mean", f"{_number(mean)}, standard deviation {_number(spread)}"))
    odd = {"zero": wide == 0, "NaN": np.isnan(wide), "infinite": np.isinf(wide)}
    counts = {name: int(np.count_nonzero(mask)) for name, mask in odd.items()}
    text = ", ".join(f"{count} {name} ({count / wide.size:.2%})" for name, count in counts.items() if count)
    return [*pairs, ("of these", text)] if text else pairs


def _number(value: Any) -> str:
    return str(int(value)) if isinstance(value, np.integer) else f"{float(value):.4g}"


# ------------------------------------------------------------------------------------------------------ values
def elements_text(values: np.ndarray[Any, Any], columns: int = 96) -> str:
    """Return the elements as NumPy prints them, without the middle of each dimension where there are many.

    Args:
        values: of any dtype.
        columns: length of a line.
    """
    if values.size == 0:
        return ""
    if values.ndim > 6:  # two of each dimension would be many
        if values.size <= 8:
            return np.array2string(values.reshape(-1), separator=", ")
        ends = (", ".join(map(str, part.tolist())) for part in (values.flat[:4], values.flat[-4:]))
        return ", ..., ".join(ends)
    edge = _EDGES[values.ndim - 1] if values.ndim else 1
    is_short = values.size <= _PRINTED and math.prod(values.shape[:-1]) <= _LINES
    formatter: Any = None
    if values.dtype.kind == "O" or values.dtype.names:
        formatter = {"all": lambda element: terminal.trimmed(str(element), 40)}
    return np.array2string(
        values, separator=", ", threshold=_PRINTED if is_short else 0, edgeitems=edge,
        max_line_width=columns, formatter=formatter, precision=4,
    )  # fmt: skip
