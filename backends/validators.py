"""Kinds of values of settings: they check values given in code, and parse environment variables."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any


class Kind:
    """A set of values.

    Args:
        allowed: text of the values taken, after "use" in an error.
        check: gives the canonical, hashable form of a value; raises ValueError or TypeError for one that is not taken.
        parse: likewise for the text of an environment variable; `check` if not given.
        names: names of values, of which errors suggest the nearest.
    """

    def __init__(
        self,
        allowed: str,
        check: Callable[[Any], Any],
        parse: Callable[[str], Any] | None = None,
        names: tuple[str, ...] = (),
    ) -> None:
        self.allowed, self.check, self.parse, self.names = allowed, check, parse or check, names


_TRUE, _FALSE = ("1", "true", "on", "yes"), ("0", "false", "off", "no")


def _boolean(value: Any) -> bool:
    if type(value) is not bool and value not in (0, 1):
        raise ValueError
    return bool(value)


def parse_boolean(text: str) -> bool:
    """True or False, from the usual spellings of an environment variable."""
    lower = text.strip().lower()
    if lower not in (*_TRUE, *_FALSE):
        raise ValueError
    return lower in _TRUE


#: True or False.
boolean = Kind("True or False (1 or 0 in an environment variable)", _boolean, parse_boolean)


def one_of(*values: str | None) -> Kind:
    """One of these strings, in upper or lower case; and None, if it is among them."""
    canonical = {v.lower(): v for v in values if v is not None}

    def check(value: Any) -> str | None:
        if value is None and None in values:
            return None
        if not isinstance(value, str):
            raise ValueError
        try:
            return canonical[value.strip().lower()]
        except KeyError:
            raise ValueError from None

    def parse(text: str) -> str | None:
        return None if None in values and text.strip().lower() == "none" else check(text)

    names = tuple(canonical.values())
    allowed = "one of " + ", ".join(map(repr, names)) + (" or None" if None in values else "")
    return Kind(allowed, check, parse, names)


def integer(low: int, high: int | None = None, *, none: str = "") -> Kind:
    """An int from `low` to `high`, both included; `none` is the meaning of None, where it is taken too."""

    def check(value: Any) -> int | None:
        if value is None:
            if not none:
                raise ValueError
            return None
        if isinstance(value, bool) or operator.index(value) != value:
            raise ValueError
        if value < low or (high is not None and value > high):
            raise ValueError
        return int(value)

    parse: Callable[[str], Any] = lambda text: check(None if none and text.strip().lower() == "none" else int(text))
    bounds = f"an int of at least {low}" if high is None else f"an int from {low} to {high}"
    return Kind(bounds + (f", or None ({none})" if none else ""), check, parse)


def subset_of(*names: str) -> Kind:
    """Some of these names: True is all, False none, else one name or several, as text separated by commas.

    The canonical form is a tuple in the order of `names`.
    """

    def check(value: Any) -> tuple[str, ...]:
        if type(value) is bool:
            return names if value else ()
        values = [v.strip() for v in value.split(",")] if isinstance(value, str) else list(value)
        if not set(values) <= set(names):
            raise ValueError
        return tuple(n for n in names if n in values)

    def parse(text: str) -> tuple[str, ...]:
        try:
            return check(parse_boolean(text))
        except ValueError:
            return check(text)

    return Kind(f"True (all), False (none), or some of {', '.join(map(repr, names))}", check, parse, names)
