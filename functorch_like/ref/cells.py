"""The value of a Ref in one trace, the type of Refs, and the error where jit follows Python's control flow."""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np

from functorch_like import source_info
from functorch_like.avals import ShapedArray
from functorch_like.core import ArrayImpl, Tracer, native, state, transform_stack
from functorch_like.errors import FtError, UnsupportedError
from functorch_like.ir.trace_to_jaxpr import follower
from functorch_like.primitives import structural

if TYPE_CHECKING:
    from functorch_like.typing import Shape


class Cell:
    """The value of a Ref in one trace.

    Attributes:
        value: an array or tracer, of the shape and dtype of the Ref.
        given: False if a staged function uses the Ref, and its value is not an argument.
        written: whether the value was set.
    """

    __slots__ = ("given", "value", "written")

    def __init__(self, value: Any, given: bool = True) -> None:
        self.value, self.given, self.written = value, given, False


@dataclasses.dataclass(frozen=True)
class AbstractRef:
    """The type of a Ref: `ft.typeof(ref)`.

    Attributes:
        inner_aval: shape and dtype of the value.
    """

    inner_aval: ShapedArray

    @property
    def shape(self) -> Shape:
        """Shape of the value."""
        return self.inner_aval.shape

    @property
    def dtype(self) -> np.dtype[Any]:
        """Dtype of the value."""
        return self.inner_aval.dtype

    def __repr__(self) -> str:
        return f"Ref({self.inner_aval!r})"


def error(cls: type[FtError], reason: str, fix: str) -> FtError:
    """Return an error with the user's line and the transformations in force."""
    return cls(reason, fix=fix, chain=transform_stack(state.trace), at=str(source_info.user_line(state.source) or ""))


def refuse_paths(what: Any) -> None:
    """Raise where Python's control flow is followed: the state of Python that is compared has no values of Refs.

    Raises:
        UnsupportedError: in a function that is traced with `control_flow="paths"`.
    """
    if follower(state.trace) is not None:
        raise error(
            UnsupportedError,
            f"{what!r} is used in a function whose Python control flow is followed (control_flow='paths')",
            "jit it with control_flow='error', and choose with lax.cond, or carry the value instead of a Ref",
        )


def as_held(x: Any, dtype: np.dtype[Any]) -> Any:
    """Return a value as Refs hold it: an array or tracer of a dtype, strongly typed, with no other owner."""
    if isinstance(x, (ArrayImpl, Tracer)):
        if x.aval.dtype == dtype and not x.aval.weak_type:
            # A copy: the user may donate the original array later.
            return x if isinstance(x, Tracer) or state.trace.staging else structural.copy(x)
        return structural.convert_element_type(x, new_dtype=dtype, weak_type=False)
    host = np.asarray(x if isinstance(x, int) else native(np.asarray(x)), dtype)
    return structural.copy(np.array(host))
