"""Type variables of functions that take functions."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, ParamSpec, TypeVar

#: Parameters and result of a user's function, and the whole of it.
P = ParamSpec("P")
R = TypeVar("R")
F = TypeVar("F", bound=Callable[..., Any])
#: Its first argument, and of a pair that it returns with `has_aux` the second.
T = TypeVar("T")
Aux = TypeVar("Aux")
#: What a loop carries, reads and stacks.
Carry = TypeVar("Carry")
X = TypeVar("X")
Y = TypeVar("Y")
