"""Exceptions of the package, and the formatting of their messages.

Besides the reason, a message has five parts: the operation with its operands' shapes and dtypes, the chain of
transformations, the user's line, the line of the rule that raised, and what to do. The code that raises gives the
reason and the remedy; `core.py` adds the rest as the error passes through it. This file alone formats them.

JAX's names for some of them stand at the end.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = [
    "ArgumentError", "AxisError", "AxisNameError", "BoundsError", "CheckError", "CheckpointError", "CompileError",
    "ConcretizationError", "ConcretizationTypeError", "DeviceError", "DifferentiationError", "DistributedError",
    "DonatedError", "DtypeError", "ExchangeError", "FtError", "ImmutableError", "JaxRuntimeError", "KeyReuseError",
    "LeakError", "NonConcreteBooleanIndexError", "NonFiniteError", "NumberError", "OutOfMemoryError", "ProtocolError",
    "SettingError", "ShapeError", "ShardingTypeError", "StaleProgramError", "TracerArrayConversionError",
    "TracerBoolConversionError", "TracerIntegerConversionError", "TreeDepthError", "TreeError", "TypePromotionError",
    "UnexpectedTracerError", "UnsupportedArgumentError", "UnsupportedError", "WideningWarning",
]  # fmt: skip


class FtError(Exception):
    """Base of all errors of this package.

    Args:
        reason: the fault, quoting the values.
        fix: the remedy, for the user.
        operation: the operation with the avals of its operands, e.g. ``add(f32[3], f32[2])``.
        chain: the transformations in force, outermost first, e.g. ``jit(loss) > grad``.
        at: the user's line.
        rule: file and line of the primitive whose rule raised.

    Attributes:
        promotion: "strict" for an error of strict promotion; "nested" for one inside of a function of the package.
        has_left: True once it has propagated out of a public function.
    """

    promotion: str = ""
    has_left: bool = False

    def __init__(
        self, reason: str, *, fix: str = "", operation: str = "", chain: str = "", at: str = "", rule: str = ""
    ) -> None:
        super().__init__(reason)
        self.reason, self.fix = reason, fix
        self.operation, self.chain, self.at, self.rule = operation, chain, at, rule

    def add_context(self, **parts: str) -> FtError:
        """Set those parts that are still empty, and return the error, for `raise e.add_context(...)`."""
        for name, text in parts.items():
            if text and not getattr(self, name):
                setattr(self, name, text)
        return self

    def __str__(self) -> str:
        head = f"{self.operation}: {self.reason}" if self.operation else self.reason
        return "\n".join([head, *(f"  {name}: {text}" for name, text in self._rows() if text)])

    def _rows(self) -> tuple[tuple[str, str], ...]:
        """Return name and text of each part that stands below the reason."""
        return ("under", self.chain), ("at", self.at), ("rule", self.rule), ("what to do", self.fix)

    def _parts(self) -> list[tuple[str, str]]:
        """Return all parts, for displays: the operation stands first, without a name."""
        head = [("", self.operation), ("reason", self.reason)] if self.operation else [("", self.reason)]
        return [*head, *self._rows()]

    def _render_traceback_(self) -> list[str]:
        """Return the traceback as IPython shows it, with the parts laid out and wrapped at words."""
        from functorch_like.markup import error_page  # only where IPython shows an error

        return error_page.traceback(self, self._parts())

    def _repr_html_(self) -> str:
        from functorch_like.markup import elements, error_page

        return str(elements.document(error_page.markup(type(self).__name__, self._parts())))

    def __reduce__(self) -> tuple[Any, ...]:
        return _rebuild, (type(self), self.reason, self.__dict__)


def nearest(name: str, names: Any, likeness: float = 0.5) -> str:
    """Return "; did you mean 'x'?" for the most similar of some names; "" if none is similar.

    Args:
        name: the unknown name.
        names: the known names.
        likeness: ratio of `difflib` from which on a name is similar. One with an equal beginning is similar, too.
    """
    import difflib  # seldom needed

    names = sorted(names, key=len)
    begins = [n for start in (name, name[:-1]) if len(start) >= 3 for n in names if n.startswith(start)]
    matches = difflib.get_close_matches(name, names, n=1, cutoff=max(likeness, 0.8))
    matches = matches or begins or difflib.get_close_matches(name, names, n=1, cutoff=likeness)
    return f"; did you mean {matches[0]!r}?" if matches else ""


def _rebuild(cls: type[FtError], reason: str, fields: dict[str, Any]) -> FtError:
    error = cls(reason)
    error.__dict__.update(fields)
    return error


def refuse_pickling(what: str) -> Callable[[Any, Any], Any]:
    """Return a `__reduce_ex__` that raises ArgumentError, for objects that are valid in one process only."""

    def reduce(self: Any, protocol: Any) -> Any:
        raise ArgumentError(
            f"{what} cannot be pickled",
            fix="pickle the function itself, which is traced and compiled where it is loaded; or export it: ft.export",
        )

    return reduce


class ShapeError(FtError, ValueError, TypeError):
    """Shapes, axes or sizes do not fit the operation."""


class ShardingTypeError(FtError, ValueError, TypeError):
    """Operands are split over Explicit axes of a mesh such that the split of the result is in doubt."""


class AxisError(ShapeError, IndexError):
    """An array has no such axis."""


class DtypeError(FtError, TypeError, ValueError):
    """The operation does not take this dtype, or this kind of value at all."""


class ArgumentError(FtError, ValueError, TypeError):
    """An argument of a transformation or function has a wrong value."""


class KeyReuseError(FtError, RuntimeError):
    """A key is used a second time, in a block of `random.check_key_reuse`."""


class AxisNameError(ArgumentError, NameError):
    """No axis of this name is in scope: no vmap and no shard_map around the call has it."""


class TreeError(FtError, ValueError, TypeError):
    """Two pytrees differ in structure where they must be equal."""


class TreeDepthError(TreeError, RecursionError):
    """A pytree contains itself, or is nested deeper than recursion allows."""


class DifferentiationError(FtError, TypeError, ValueError):
    """A function cannot be differentiated in the requested way."""


class ConcretizationError(FtError, TypeError):
    """A traced value was used where Python needs a concrete one."""


class TracerBoolConversionError(ConcretizationError):
    """A traced value was converted to a bool: `if x > 0`."""


class TracerIntegerConversionError(ConcretizationError):
    """A traced value was used as an index of a Python list, or as a size."""


class TracerArrayConversionError(ConcretizationError):
    """A traced value was passed to NumPy."""


class NonConcreteBooleanIndexError(ConcretizationError, IndexError):
    """A traced boolean mask gives a result of unknown size."""


class LeakError(FtError, RuntimeError):
    """A traced value outlived its transformation."""


class StaleProgramError(FtError, RuntimeError):
    """A jitted function's code would give another program than the one that was traced (`debug.stale_programs`)."""


class UnsupportedError(FtError, NotImplementedError):
    """A primitive has no such rule, on purpose; the text is the reason and what to do instead."""


class UnsupportedArgumentError(ArgumentError, UnsupportedError):
    """An argument was given that signatures have for NumPy's sake only, such as `out=`."""


class ImmutableError(FtError, TypeError):
    """An array was assigned to in place."""


class BoundsError(FtError, IndexError, TypeError):
    """An index is of a wrong type or outside of a static shape."""


class SettingError(FtError, AttributeError, ValueError):
    """No setting has this name."""


class NumberError(FtError, OverflowError):
    """A Python number does not fit its dtype."""


class DeviceError(FtError, ValueError, RuntimeError):
    """A device or platform is missing, or operands are on different devices."""


class ExchangeError(FtError, BufferError, ValueError):
    """Memory cannot be exchanged with another library in the requested way."""


class ProtocolError(FtError, AttributeError, TypeError):
    """An object lacks the protocol by which it would become an array."""


class DonatedError(FtError, RuntimeError, ValueError):
    """The memory of an array was donated to a computation, or deleted, and the array is used again."""


class CheckError(FtError, ValueError):
    """A condition that a program checks is false."""

    # The text is the user's: `core.py` adds no operation and no rule to it.
    operation = rule = property(lambda self: "", lambda self, text: None)  # type: ignore[assignment]


class NonFiniteError(FtError, FloatingPointError):
    """A computation gave NaN or infinity under `debug.nans` or `debug.infs`."""


class CompileError(FtError, RuntimeError):
    """XLA refused or failed to compile or run a program."""


class CheckpointError(FtError, ValueError):
    """A saved tree cannot be written or read, is damaged, or does not fit the tree it is restored into."""


class DistributedError(FtError, RuntimeError):
    """Processes that compute together cannot start, do not agree, or have lost one of them."""


class OutOfMemoryError(CompileError, MemoryError):
    """An array, or an intermediate value of a program, does not fit into memory."""


def bytes_text(count: int) -> str:
    """Return a number of bytes as text, in a binary unit with three digits: `373 GiB`."""
    size, units = float(min(count, 10**300)), ["bytes", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"]
    while size >= 999.5 and len(units) > 1:  # four digits would be shown as an exponent
        size, units = size / 1024, units[1:]
    return f"{size:.3g} {units[0]}"


class WideningWarning(UserWarning):
    """A NumPy array has widened the result of an operation with a narrower array, most often float32 to float64.

    The message has the operation, the user's line and the remedy. It is issued once for each line;
    `backends.promotion.widening` turns it off, or into an error.
    """


ConcretizationTypeError = ConcretizationError
UnexpectedTracerError = LeakError
JaxRuntimeError = CompileError
TypePromotionError = DtypeError
