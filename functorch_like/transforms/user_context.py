"""`make_user_context`: values of the user's own that traced functions read, in the cache keys of jit."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from functorch_like.backends.xla.configuration import ContextValues, user_contexts
from functorch_like.calling.call_signature import kinds_of
from functorch_like.errors import ArgumentError

if TYPE_CHECKING:
    from functorch_like.typing import Block


class UserContext:
    """A value that holds in blocks of one thread; jitted functions are traced anew for each of its values.

    Attributes:
        default: the value outside of blocks.
    """

    def __init__(self, default: Any) -> None:
        self.default = default

    @property
    def value(self) -> Any:
        """The value of the innermost block of this thread, or the default."""
        return next((value for context, _, value in user_contexts.value if context is self), self.default)

    def __call__(self, value: Any) -> Block:
        """Return a block, or decorator, in which the context has a value.

        Args:
            value: anything hashable.

        Raises:
            ArgumentError: for a value that is not hashable.
        """
        try:
            entry = (self, kinds_of(value), value)
            hash(entry)
        except TypeError:
            raise ArgumentError(
                f"the value {value!r:.60} of a user context is not hashable, and jit looks programs up by it",
                fix="use a tuple, a frozenset or a frozen dataclass",
            ) from None
        return _Held(entry)


class _Held:
    """Block and decorator; it takes the other contexts as they are when it is entered, and may be entered again."""

    def __init__(self, entry: tuple[UserContext, Any, Any]) -> None:
        self._entry = entry
        self._tokens: list[Any] = []

    def __enter__(self) -> Any:
        others = {entry for entry in user_contexts.value if entry[0] is not self._entry[0]}
        self._tokens.append(user_contexts.swap_local(ContextValues({*others, self._entry})))
        return self._entry[2]

    def __exit__(self, *exception: object) -> None:
        user_contexts.restore(self._tokens.pop())

    def __call__(self, fun: Any) -> Any:
        from functools import wraps

        @wraps(fun)
        def called(*args: Any, **kwargs: Any) -> Any:
            with _Held(self._entry):
                return fun(*args, **kwargs)

        return called


def make_user_context(default_value: object = None) -> UserContext:
    """Make a value that functions may read while they are traced: jit traces them again where it differs.

    Args:
        default_value: its value outside of blocks.

    Returns:
        An object `context`: `with context(value):` sets the value in this thread, `context.value` reads it. Values are
        hashable.

    >>> import functorch_like as ft
    >>> scale = ft.make_user_context(1)
    >>> f = ft.jit(lambda x: x * scale.value)
    >>> with scale(3):
    ...     int(f(2))
    6
    >>> int(f(2))
    2
    """
    return UserContext(default_value)
