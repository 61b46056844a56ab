"""Check that a format string and the values passed with it fit together."""

from __future__ import annotations

import string
from collections.abc import Mapping, Sequence
from typing import Any

from functorch_like.errors import ArgumentError


class _Anything:
    """Stand-in for a value that does not exist yet: it has all items and attributes, and any format."""

    def __format__(self, spec: str) -> str:
        return ""

    def __getattr__(self, name: str) -> _Anything:
        return self

    def __getitem__(self, key: Any) -> _Anything:
        return self


class _Checker(string.Formatter):
    def get_value(self, key: int | str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if key not in (kwargs if isinstance(key, str) else range(len(args))):
            raise ArgumentError(f"there is no value for the field {{{key}}}", fix="pass a value for each field")
        return super().get_value(key, args, kwargs)

    def check_unused_args(self, used: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        unused = [f"value {i}" for i in range(len(args)) if i not in used]
        unused += [name for name in kwargs if name not in used]
        if unused:
            raise ArgumentError(f"there is no field for {', '.join(unused)}", fix="write {} or {name} where it belongs")


def check_format(who: str, fmt: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raise unless a format string has a field for each value, and a value for each field."""
    if not isinstance(fmt, str):
        raise ArgumentError(
            f"{who} takes a format string, got {fmt!r:.60} of type {type(fmt).__name__}", fix='pass "{}", x'
        )
    if "Traced<" in fmt and " with value " not in fmt:
        raise ArgumentError(
            f"{who} got a string in which a traced value has already been formatted: {fmt!r:.60}",
            fix='leave out the f before the string, and pass the value: "x is {x}", x=x',
        )
    stand_in = _Anything()
    try:
        _Checker().vformat(fmt, [stand_in] * len(args), dict.fromkeys(kwargs, stand_in))
    except ArgumentError as error:
        error.reason = f"in the format string {fmt!r}, {error.reason}"
        raise
    except ValueError as error:
        raise ArgumentError(f"{fmt!r} is not a format string: {error}", fix="write {{ for a brace itself") from None
